"""Highlights: pieces that join to the text itself, hits by stem and across accents, never markup of ours."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from holdfast.search.highlight import Finder, Piece, windows
from holdfast.search.query import Words

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


def test_the_passage_with_the_most_words_is_shown() -> None:
    text = "vaccination " + "x " * 300 + "the clinic gives a vaccination" + " y" * 300

    shown = Finder(_FLU, (), "en").passages(text)

    hits = [[piece.text for piece in passage if piece.hit] for passage in shown]
    assert ["clinic", "vaccination"] in hits
    assert all(sum(len(piece.text) for piece in passage) <= 320 for passage in shown)


def test_markup_in_a_page_stays_text() -> None:
    [passage] = Finder(_FLU, (), "en").passages("<b onclick=x>clinic</b>")

    assert "".join(piece.text for piece in passage) == "<b onclick=x>clinic</b>"


def test_substrings_are_marked_inside_words() -> None:
    assert Finder(Words(words=()), ("accin",), None).pieces("vaccine") == [
        Piece("v", False), Piece("accin", True), Piece("e", False),
    ]  # fmt: skip


@given(st.text(), st.lists(st.text(min_size=1, max_size=4), max_size=3))
def test_pieces_always_join_to_the_text(text: str, parts: list[str]) -> None:
    finder = Finder(_FLU, parts, "en")

    assert "".join(piece.text for piece in finder.pieces(text)) == text
    for passage in finder.passages(text):
        assert "".join(piece.text for piece in passage) in text


class _Counted(str):
    """A text that counts how often a piece of it is taken."""

    taken = 0

    def __getitem__(self, part: Any) -> str:
        type(self).taken += 1
        return super().__getitem__(part)


def test_passages_of_thousands_of_hits_are_chosen_in_one_pass() -> None:
    text = _Counted("abcdefghijklmnopqrstuvwxyz" * 100)
    places = [(at, at + 1) for at in range(len(text))]

    found = list(windows(text, places))

    assert _Counted.taken == 2 * len(places)
    assert found[0] == (-26, 0, 0, 199)
    assert found[-1] == (-1, 2599, 2599, 2599)
    assert [last - first for _, _, first, last in found[:2400]] == [199] * 2400
