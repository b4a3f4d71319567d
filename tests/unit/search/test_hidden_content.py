"""Hidden captures change nothing that others see: corrections, similar captures, scores, names in facets."""

from __future__ import annotations

import pytest

from holdfast.search import matching
from holdfast.search.similar import NothingToGoBy
from tests.search_bed import Bed, Capture, pages


def _fill(bed: Bed, *, shown: list[str], hidden: list[str]) -> list[int]:
    """Index hidden pages before those that are shown; return the ids of those shown."""
    ids = bed.fill([*pages(hidden, host="hidden.test"), *pages(shown, host="shown.test")])
    for snapshot_id in ids[: len(hidden)]:
        bed.withdraw(snapshot_id=snapshot_id)
    return ids[len(hidden) :]


def test_correction_prefers_the_word_of_more_visible_pages(bed: Bed) -> None:
    _fill(bed, shown=["granita one", "granite two", "granite three"], hidden=[f"granita {n}" for n in range(5)])

    assert bed.ask("granitx").did_you_mean == "granite"


def test_correction_is_found_behind_many_hidden_words(bed: Bed) -> None:
    # Two edits away, as the visible word, and each on two pages.
    near = [f"lampba{first}{second}" for first in "defghij" for second in "bdefg"]
    _fill(bed, shown=["lamphagk"], hidden=[f"{' '.join(near)} {n}" for n in range(2)])

    assert bed.ask("lampback").did_you_mean == "lamphagk"


def test_visible_word_is_known_behind_many_hidden_pages(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "_WITNESSES", 2)
    _fill(bed, shown=["granite", "gneiss", "granita gneiss"], hidden=[f"granite {n}" for n in range(5)])

    found = bed.ask("granite gneiss")
    assert (found.mode, found.did_you_mean, found.total) == (matching.MatchMode.SOME_WORDS, None, 3)


def test_capture_is_not_compared_by_words_of_hidden_pages(bed: Bed) -> None:
    [shown] = _fill(bed, shown=["obsidian"], hidden=["obsidian quarry"])

    with pytest.raises(NothingToGoBy):
        bed.ask(like=shown)


def test_accents_count_behind_many_hidden_pages(bed: Bed) -> None:
    bed.search.exact_documents = 2
    _fill(bed, shown=["a résumé of it", "resume resume resume"], hidden=[f"résumé {n}" for n in "abcde"])

    # Its words score 1 at most, and its accents 1 more.
    assert bed.ask("résumé", explain=True).hits[0].parts["rankText"] > 1


def test_author_is_named_as_on_a_visible_page(bed: Bed) -> None:
    hidden, _ = bed.fill(
        [
            Capture(url="https://a.test/1", text="one", author="JÄNE DOE"),
            Capture(url="https://a.test/2", text="two", author="Jane Doe"),
        ]
    )
    bed.withdraw(snapshot_id=hidden)

    assert [(one.value, one.count) for one in bed.ask().facets["author"]] == [("Jane Doe", 1)]
