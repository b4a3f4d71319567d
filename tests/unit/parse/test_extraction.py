"""The gate of extraction: the main text of pages that are known must be found as well as it ever was."""

from __future__ import annotations

from tests.golden.extraction.figures import complaints, floors, reached
from tests.golden.extraction.pages import CLASSES, LANGUAGES, golden_pages, word_f1


def test_the_main_text_of_known_pages_is_found_as_well_as_before() -> None:
    assert complaints(reached(), floors()) == []


def test_a_floor_that_was_lowered_is_noticed_as_well_as_a_figure_that_fell() -> None:
    least = {"article": 0.98, "total": 0.95}

    assert complaints({"article": 0.981, "total": 0.952}, least) == []
    assert complaints({"article": 0.97, "total": 0.952}, least)[0].startswith("article: 0.9700 is below")
    assert "to raise it" in complaints({"article": 0.981, "total": 0.99}, least)[0]
    assert complaints({"article": 0.981, "news": 0.5, "total": 0.952}, least)[0].startswith("news")
    assert complaints({"total": 0.952}, least) == ["article: a floor without a class"]


def test_there_are_enough_pages_and_each_is_written_the_same_every_time() -> None:
    pages = list(golden_pages())

    assert len(pages) == len(CLASSES) * len(LANGUAGES) >= 40
    assert pages == list(golden_pages())
    assert len({page.html for page in pages}) == len(pages)


def test_the_measure_counts_words_that_are_missing_and_words_that_are_too_many() -> None:
    assert word_f1("a b c", "a b c") == 1.0
    assert word_f1("a b", "a b c d") == word_f1("a b c d", "a b")
    assert word_f1("x y", "a b") == 0.0
    assert word_f1("aab", "ab b", by_letter=True) < 1.0
