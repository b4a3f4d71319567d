"""Highlights: pieces that join to the text itself, hits by stem and across accents, never markup of ours."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.search.highlight import Finder, Piece
from holdfast.search.passages import SearchedText
from holdfast.search.query import Words, parse_query

_FLU = Words(words=("vaccination", "clinic"))


def test_words_are_found_by_their_stem_across_accents() -> None:
    found = Finder(Words(words=("eleves", "securite")), (), "fr").pieces("La Sécurité de l’élève.")

    assert found == [
        Piece("La ", False),
        Piece("Sécurité", True),
        Piece(" de l’", False),
        Piece("élève", True),
        Piece(".", False),
    ]


def test_a_word_inside_another_is_no_hit() -> None:
    assert Finder(Words(words=("art",)), (), "en").places("party smart heart art") == [(18, 21)]


def test_markup_in_a_page_stays_text() -> None:
    [passage] = Finder(_FLU, (), "en").passages(SearchedText("<b onclick=x>clinic</b>"))

    assert "".join(piece.text for piece in passage) == "<b onclick=x>clinic</b>"


def test_substrings_are_marked_inside_words() -> None:
    assert Finder(Words(words=()), ("accin",), None).pieces("vaccine") == [
        Piece("v", False), Piece("accin", True), Piece("e", False),
    ]  # fmt: skip


@given(st.text(), st.lists(st.text(min_size=1, max_size=4), max_size=3))
def test_pieces_always_join_to_the_text(text: str, parts: list[str]) -> None:
    finder = Finder(_FLU, parts, "en")

    assert "".join(piece.text for piece in finder.pieces(text)) == text


@pytest.mark.parametrize(
    ("asked", "text", "hits"),
    [
        ("pg_ls_tmpdir", "See pg_ls_tmpdir ( oid ), not pg_ls_dir.", ["pg_ls_tmpdir"]),
        ("memory error", "It raises MemoryError, a memory error.", ["MemoryError", "memory", "error"]),
        ("MemoryError", "A memory error is a MemoryError.", ["memory error", "MemoryError"]),
        ("task group", "Use asyncio.TaskGroups for groups of tasks.", ["TaskGroups", "groups", "tasks"]),
        ("os.path.join", "Call os.path.join(a), or join(a).", ["os.path.join", "join"]),
        ("error", "MemoryError, not terror", ["Error"]),
        ("wal_level", "wal-level and WAL level", ["wal-level", "WAL level"]),
    ],
)
def test_compounds_are_found_as_one_and_by_their_parts(asked: str, text: str, hits: list[str]) -> None:
    pieces = Finder(parse_query(asked).words, (), "en", asked=asked).pieces(text)

    assert [piece.text for piece in pieces if piece.hit] == hits


@pytest.mark.parametrize(
    ("asked", "text", "hits"),
    [
        ("東京都庁", "東京都庁は新宿にある。", ["東京都庁"]),
        ("東京都庁舎", "東京都の庁舎", ["東京都", "庁舎"]),
        ("火", "火と水", ["火"]),
        ("ข้าวผัด", "ร้านนี้มีข้าวผัดอร่อย", ["ข้าวผัด"]),
        ("학교", "우리 학교에서", ["학교"]),
    ],
)
def test_runs_of_scripts_without_blanks_are_marked_as_they_matched(asked: str, text: str, hits: list[str]) -> None:
    pieces = Finder(parse_query(asked).words, (), None, asked=asked).pieces(text)

    assert [piece.text for piece in pieces if piece.hit] == hits


def test_what_a_query_leaves_out_is_no_compound() -> None:
    finder = Finder(Words(words=()), ("flu",), "en", asked="flu -cold_case")

    assert [piece.text for piece in finder.pieces("cold_case of flu") if piece.hit] == ["flu"]


@pytest.mark.parametrize(
    ("language", "asked", "text", "hits"),
    [
        ("fr", "cheval", "Les chevaux et le cheval dorment, pas au chevet.", ["chevaux", "cheval"]),
        ("en", "fly", "It flies, and so do I fly over Flint.", ["flies", "fly"]),
        ("en", "entries", "An entry.", ["entry"]),
        ("en", "use", "Making use of using it.", ["use", "using"]),
        ("en", "make", "Making use of using it.", ["Making"]),
        ("en", "sky", "Dying under blue skies, skiing.", ["skies"]),
        ("en", "die", "Dying under blue skies.", ["Dying"]),
        ("tr", "kitap", "Bu kitabı okudum, kitap iyi.", ["kitabı", "kitap"]),
        ("de", "strasse", "Die Straße und die STRASSE, der Straßenbau.", ["Straße", "STRASSE"]),
        ("de", "Straße", "Die Strasse.", ["Strasse"]),
        ("da", "Ærø", "Øen Ærø og aero.", ["Ærø", "aero"]),
        ("fr", "oeuvre", "Son œuvre, ses ŒUVRES.", ["œuvre", "ŒUVRES"]),
        ("en", "office", "The o\ufb03ce is \uff4fffice.", ["o\ufb03ce", "\uff4fffice"]),
        ("ar", "سفن", "وصلت السفن إلى الميناء", ["السفن"]),
        ("ar", "مكتبة", "في المكتبات كتب", ["المكتبات"]),
        ("ar", "كتاب", "هذا كتـــاب جديد", ["كتـــاب"]),
        ("ar", "محمد", "قال مُحَمَّدٌ ذلك", ["مُحَمَّدٌ"]),
        ("he", "שלום", "אמר שָׁלוֹם לכולם", ["שָׁלוֹם"]),
        ("hi", "मुंबई", "वह मुंबई में है", ["मुंबई"]),
        ("hi", "हिन्दी", "यह हिन्दी है", ["हिन्दी"]),
        ("ta", "சென்னை", "அவர் சென்னை நகரில்", ["சென்னை"]),
        ("en", "हिन्दी", "Hindi is हिन्दी there.", ["हिन्दी"]),
        ("vi", "tieng viet", "Tie\u0302\u0301ng Việt", ["Tie\u0302\u0301ng", "Việt"]),
        ("ru", "елка", "Ёлка и ёлки", ["Ёлка", "ёлки"]),
    ],
)
def test_what_the_index_finds_is_marked(language: str, asked: str, text: str, hits: list[str]) -> None:
    finder = Finder(parse_query(asked).words, (), language, asked=asked)

    assert [piece.text for piece in finder.pieces(text) if piece.hit] == hits
    assert [piece.text for passage in finder.passages(SearchedText(text)) for piece in passage if piece.hit] == hits


def test_a_word_inside_another_is_no_hit_behind_a_mark_either() -> None:
    assert Finder(Words(words=("मुंबई",)), (), "hi").places("नि\u094dमुंबई") == []


def test_substrings_are_marked_across_letters_that_fold_to_several() -> None:
    found = Finder(Words(words=()), ("rass", "ssen"), "de").pieces("Straßen")

    assert found == [Piece("St", False), Piece("raßen", True)]


@given(st.text(alphabet="Clinic ß\u0301\ufb03\u0640\ufdfaÆ\u05b8\U0001f600\ud800", max_size=80))
def test_pieces_join_to_a_text_of_letters_that_fold_to_none_or_several(text: str) -> None:
    finder = Finder(_FLU, ("c", "ss", "f"), "en")

    assert "".join(piece.text for piece in finder.pieces(text)) == text
    assert all(piece.text for piece in finder.pieces(text))


def test_passage_shows_a_word_behind_a_million_characters() -> None:
    text = "Tide tables of the coast.\n" * 60_000 + "The clinic opens at noon."

    [passage] = Finder(_FLU, (), "en").passages(SearchedText(text))

    assert Piece("clinic", True) in passage
