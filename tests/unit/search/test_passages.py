"""Passages: which part of a text is shown for a query, whole sentences, in bounds whatever the text is."""

from __future__ import annotations

import pytest
import zstandard
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.index.queries import searched_texts
from holdfast.parse.text import REST_MARK
from holdfast.search.highlight import Finder
from holdfast.search.passages import MAX_PASSAGES, PASSAGE_CHARS, SearchedText
from holdfast.search.query import parse_query

_FILLER = "Nothing of interest stands in this line, which is as long as a sentence of any other page may be. "


def _shown(query: str, text: str, *, title: str = "", headings: str = "", most: int = 1) -> list[str]:
    finder = Finder(parse_query(query).words, (), "en", asked=query)
    passages = finder.passages(SearchedText(text, title, headings), most=most)
    return ["".join(piece.text for piece in passage) for passage in passages]


def _first(query: str, text: str, **more: str) -> str:
    return _shown(query, text, **more)[0]  # type: ignore[arg-type]


def test_all_words_near_each_other_win_over_a_list_of_one_of_them() -> None:
    text = (
        "Pattern.group\nMatch.group\nMatch.groups\n"
        + _FILLER
        + "\n"
        + ("An asyncio task group waits for all of its tasks. More follows.")
    )

    assert _first("asyncio task group", text) == "An asyncio task group waits for all of its tasks. More follows."


def test_nearer_words_win() -> None:
    far = "A clinic is a place, and much is said of it before anything comes up about any vaccination at all."
    near = "The clinic gives a vaccination to all who ask for one, whatever the time of the year may be."

    assert _first("clinic vaccination", f"{far}\n{near}") == near


def test_exact_forms_win_over_stems() -> None:
    stemmed = "He vaccinated the whole town in a day, and wrote of it in the paper of the town."
    exact = "He spoke of the vaccination of the whole town, and wrote of it in the paper there."

    assert _first("vaccination", f"{stemmed}\n{exact}") == exact


def test_rare_words_win_over_frequent_ones() -> None:
    frequent = "The database is a database among databases, and each database is one of many."
    rare = "It is a quokka that lives on an island and not in a zoo, as some others do."
    finder = Finder(parse_query("database quokka").words, (), "en", rarity={"database": 0.15, "quokka": 1.0})

    [first, second] = finder.passages(SearchedText(f"{frequent}\n{rare}"), most=2)

    assert "".join(piece.text for piece in first) == rare
    assert "".join(piece.text for piece in second) == frequent


def test_of_equal_passages_the_first_is_shown() -> None:
    one = "The first clinic of the town opened in the year of the great flood."
    two = "The other clinic of the town opened in the year of the great drought."

    assert _first("clinic", f"{one}\n{_FILLER}\n{two}") == one


@pytest.mark.parametrize(
    "poor", ["clinic hours", "clinic | town | flood | maps", "clinic = open(clinic_path)[0](x=y_z)"]
)
def test_prose_wins_over_navigation_and_code(poor: str) -> None:
    prose = "The clinic of the town opened in the year of the great flood."

    assert _first("clinic", f"{poor}\n{poor} 2\n{_FILLER}\n{prose}") == prose


def test_title_and_headings_are_not_repeated_where_there_is_more() -> None:
    prose = "The town has one, and a vaccination costs nothing there, whoever asks for one."
    text = f"Clinic and vaccination\nVaccination clinic¶\n{prose}"

    assert _first("vaccination clinic", text, title="Clinic and vaccination — Town", headings="Vaccination clinic") == (
        prose
    )


def test_a_heading_is_shown_if_there_is_nothing_else() -> None:
    assert _first("clinic", "Clinic\nOther things.", headings="Clinic") == "Clinic · Other things."


def test_a_term_is_shown_with_what_explains_it() -> None:
    text = "An error\nexception MemoryError¶\nRaised when an operation runs out of memory.\nexception NameError¶"

    assert _first("MemoryError", text) == "exception MemoryError · Raised when an operation runs out of memory."


def test_words_that_stand_apart_are_shown_together() -> None:
    text = f"The clinic opened in spring. It is large.\n{_FILLER * 5}\nA vaccination costs nothing. Come by."

    found = _first("clinic vaccination", text)

    assert found == "The clinic opened in spring. It is large. … A vaccination costs nothing. Come by."


def test_a_frequent_word_is_found_near_a_rare_one_however_late_that_stands() -> None:
    text = ("The town is a town. " * 200) + "\nA quokka came to the town by boat in the winter of that year."

    [found] = Finder(parse_query("town quokka").words, (), "en").passages(SearchedText(text))

    assert [piece.text for piece in found if piece.hit] == ["quokka", "town"]


def test_a_passage_is_made_of_whole_sentences() -> None:
    line = f"{_FILLER}{_FILLER}Dr. Jones of the clinic has 3.5 beds. {_FILLER}{_FILLER}"

    found = _first("clinic", line)

    assert found.startswith("Dr. Jones of the clinic has 3.5 beds. Nothing")
    assert found.endswith("may be.")


def test_passage_is_found_far_down_a_long_text() -> None:
    text = f"{_FILLER}\n" * 3_000 + "A quokka came by boat.\n" + f"{_FILLER}\n" * 3_000

    assert _shown("quokka", text) == ["A quokka came by boat."]


def test_searched_texts_begin_with_the_start_of_a_long_text() -> None:
    main, rest = f"{_FILLER}é\n" * 5_000, "Imprint"
    packed = zstandard.compress(f"{main}{REST_MARK}{rest}".encode())

    start, whole, beside = map(bytes.decode, searched_texts(packed))

    assert main.startswith(f"{start}\n")
    assert start.endswith("é")
    assert (whole, beside) == (main, rest)


def test_searched_texts_of_a_short_one_are_whole() -> None:
    packed = zstandard.compress(f"Main{REST_MARK}Rest".encode())

    assert list(searched_texts(packed)) == [b"Main", b"Rest"]


def test_a_long_sentence_is_cut_between_words() -> None:
    line = "word " * 100 + "clinic " + "word " * 100

    found = _first("clinic", line.strip())

    assert found.startswith("…word")
    assert found.endswith("word…")
    assert 200 < len(found) <= PASSAGE_CHARS


def test_several_passages_are_different_and_the_best_comes_first() -> None:
    lines = [f"The clinic number {n} opened in the year of the great flood." for n in range(9)]
    best = "A vaccination in the clinic costs nothing for those who live in the town."

    found = _shown("clinic vaccination", "\n".join([*lines, lines[0], best]), most=MAX_PASSAGES)

    assert found[0] == best
    assert len(found) == len(set(found)) == MAX_PASSAGES


_HOSTILE = [
    "clinic" * 20_000,
    "clinic " * 20_000,
    "[" * 500_000 + " clinic " + "]" * 500_000,
    "clinic" + "\u0301" * 100_000,
    "\u0627\u0644 " * 30_000 + "clinic \u061f",
    "\ud800clinic\udfff " * 9_000,
    "clinic.vaccination_" * 9_000,
    "\n".join(["clinic"] * 30_000),
    ". ".join(["Clinic"] * 30_000),
    "ClinicVaccination" * 9_000,
    "\ufdfa" * 50_000 + " clinic",
    "\u00df\u0301" * 50_000 + "clinic\u0301" * 9_000,
]


@pytest.mark.parametrize("text", _HOSTILE, ids=range(len(_HOSTILE)))
@pytest.mark.parametrize("query", ["clinic", "clinic vaccination", "clinic.vaccination", '"clinic vaccination"'])
def test_hostile_texts_give_passages_in_bounds(text: str, query: str) -> None:
    for passage in _shown(query, text, title=text[:500], headings=text[:50_000], most=MAX_PASSAGES):
        assert len(passage) <= PASSAGE_CHARS


def _is_made_of(passage: str, text: str) -> bool:
    """Return whether a passage can be cut into parts of a text; the signs that join these may stand in the text too."""
    starts = {0}
    for at in range(len(passage) + 1):
        is_end = at == len(passage)
        if not is_end and passage[at : at + 3] not in {" … ", " · "}:
            continue
        if any(_is_part_of(passage[start:at], text) for start in starts if start <= at):
            if is_end:
                return True
            starts.add(at + 3)
    return False


def _is_part_of(part: str, text: str) -> bool:
    ends = (part, part.removeprefix("…"), part.removesuffix("…"), part.removeprefix("…").removesuffix("…"))
    return any(end in text for end in ends)


@given(st.text(alphabet="ab .\n…。¶·é\u0301東京", max_size=600), st.integers(1, MAX_PASSAGES))
@example("a\n… a", 1)
@example("a ·\na", 1)
def test_passages_are_parts_of_the_text(text: str, most: int) -> None:
    finder = Finder(parse_query("aaa bbb").words, ("a", "東京"), "en", asked="aaa bbb")

    for passage in finder.passages(SearchedText(text), most=most):
        joined = "".join(piece.text for piece in passage)
        assert len(joined) <= PASSAGE_CHARS
        assert _is_made_of(joined, text)


def test_what_is_no_part_of_a_text_is_told() -> None:
    assert _is_made_of("…a · b … c…", "a b\nc")
    assert not _is_made_of("a · d … c", "a b\nc")
