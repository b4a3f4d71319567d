"""Near-duplicates on both databases: told from pages that only look alike, left out, counted, listed, never leaked."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from bench.near_duplicates import (
    PRECISION,
    PROMISED,
    RECALL,
    Mutation,
    Page,
    Random,
    Words,
    articles,
    generated,
    mutated,
    scores,
    text_of,
)
from holdfast.search.near_duplicates import SimilarResults
from holdfast.search.outbox import rebuild
from holdfast.search.search import BadSearch, ResultKind, SearchAnswer, SearchService, Sort
from holdfast.withdrawals.visibility import SnapshotNotFound
from tests.search_bed import DAY, Bed, Capture, open_bed

PAGES, SNAPSHOTS = ResultKind.PAGES, ResultKind.SNAPSHOTS
COLLAPSE, SHOW = SimilarResults.COLLAPSE, SimilarResults.SHOW


@pytest.mark.parametrize("length", [30, 100, 400])
def test_copies_are_told_from_pages_that_only_look_alike(length: int) -> None:
    found = scores(generated(length, 200, seed=17), PROMISED, seed=18)

    missed = {
        mutation.value: (score.precision, score.recall)
        for mutation, score in found.items()
        if score.precision < PRECISION or score.recall < RECALL
    }
    assert not missed


@functools.cache
def _stories() -> tuple[list[Page], Words, Random]:
    """Return the pages of this file and what they are changed by; made once, and not while tests are collected."""
    random = np.random.default_rng(23)
    words = Words("en", random)
    return list(articles(words, random, 120, 3)), words, random


def _story(number: int, *, copied: bool = False, said: str = "parrot") -> str:
    pages, words, random = _stories()
    page = pages[number]
    return f"{text_of(mutated(page, Mutation.MIXED, words, random) if copied else page)}\n{said}"


def _captures() -> list[Capture]:
    """Return three stories; the first stands on four more pages of three sources, one of them captured twice."""
    first = [
        Capture(url="https://one.test/story", title="A story", text=_story(0)),
        Capture(url="https://one.test/again", title="A story", text=_story(0, copied=True), at=DAY + timedelta(days=1)),
        Capture(url="https://two.test/story", title="A story", text=_story(0, copied=True), source="other"),
        Capture(
            url="https://two.test/story", title="A story", text=_story(0), source="other", at=DAY + timedelta(days=2)
        ),
        Capture(
            url="https://three.test/", text=_story(0, copied=True, said="parrot macaw"), source="third", language="fr"
        ),
        Capture(url="https://one.test/plain", text=_story(0, copied=True, said="cockatoo"), at=DAY + timedelta(days=3)),
    ]
    others = [Capture(url=f"https://one.test/{n}", title="A story", text=_story(n)) for n in (1, 2)]
    short = [Capture(url=f"https://short.test/{n}", text="parrot in few words, the same on both") for n in (1, 2)]
    return [*first, *others, *short]


@pytest.fixture
def bed(migrated_url: str, tmp_path: Path) -> Iterator[Bed]:
    """The stories on each kind of database."""
    with open_bed(migrated_url, tmp_path / "home") as opened:
        opened.fill(_captures())
        yield opened


def _urls(answer: SearchAnswer) -> set[str]:
    return {hit.row.url for hit in answer.hits}


_STORY = {"https://one.test/story", "https://one.test/again", "https://two.test/story", "https://three.test/"}


@pytest.mark.parametrize(("view", "left_out"), [(PAGES, 3), (SNAPSHOTS, 4)])
def test_they_are_left_out_behind_the_best_one_within_a_source_and_across(
    bed: Bed, view: ResultKind, left_out: int
) -> None:
    shown, collapsed = bed.ask("parrot", view=view, similar=SHOW), bed.ask("parrot", view=view, similar=COLLAPSE)

    # The best of the story, two stories that are like no other, two pages that are too short to tell.
    assert len(collapsed.hits) == 5
    assert collapsed.collapsed == left_out == len(shown.hits) - len(collapsed.hits)
    assert [hit.similar for hit in collapsed.hits if hit.row.url in _STORY] == [left_out]
    assert sum(hit.similar or 0 for hit in collapsed.hits) == left_out
    best = next(hit.row.id for hit in shown.hits if hit.row.url in _STORY)
    assert best in [hit.row.id for hit in collapsed.hits]
    assert shown.collapsed == 0
    assert {hit.similar for hit in shown.hits} == {None}
    assert (collapsed.total, shown.total) == (len(collapsed.hits), len(shown.hits))


@pytest.mark.parametrize("view", [PAGES, SNAPSHOTS])
def test_those_left_out_are_listed_with_the_same_question(bed: Bed, view: ResultKind) -> None:
    shown, collapsed = bed.ask("parrot", view=view, similar=SHOW), bed.ask("parrot", view=view, similar=COLLAPSE)
    best = next(hit for hit in collapsed.hits if hit.similar)

    listed = bed.ask("parrot", view=view, similar_to=best.row.id)

    hidden = {hit.row.id for hit in shown.hits} - {hit.row.id for hit in collapsed.hits}
    assert {hit.row.id for hit in listed.hits} == hidden
    assert listed.total == best.similar
    assert bed.ask("macaw", view=view, similar_to=best.row.id).total == 1


def test_without_a_question_all_of_the_archive_are_listed_newest_first(bed: Bed) -> None:
    story_id = bed.ask("https://one.test/story").hits[0].row.id

    pages, captures = bed.ask(similar_to=story_id, view=PAGES), bed.ask(similar_to=story_id)

    assert [hit.row.url for hit in pages.hits] == [
        "https://one.test/plain",
        "https://two.test/story",
        "https://one.test/again",
        "https://three.test/",
    ]
    # Two captures of the other source's page; the capture itself is none of its own.
    assert (captures.total, story_id in {hit.row.id for hit in captures.hits}) == (5, False)
    assert bed.urls(similar_to=story_id, source="third") == ["https://three.test/"]


def test_captures_of_one_page_are_one_page_and_no_near_duplicates_of_it(bed: Bed) -> None:
    both = bed.ask("https://two.test/story").hits

    pages = bed.ask(similar_to=both[0].row.id, view=PAGES)
    captures = bed.ask(similar_to=both[0].row.id)

    assert len(both) == 2
    assert "https://two.test/story" not in _urls(pages)
    assert both[1].row.id in {hit.row.id for hit in captures.hits}


def test_what_is_too_short_is_like_nothing(bed: Bed) -> None:
    short = bed.ask("https://short.test/1").hits[0].row

    assert bed.ask(similar_to=short.id).total == 0


def test_captures_are_all_shown_unless_collapsing_is_requested(bed: Bed) -> None:
    bed.fill([Capture(url="https://one.test/story", text=_story(0), at=DAY + timedelta(days=9))])
    collapse = {"similar": COLLAPSE}

    for asked in (
        {"q": "parrot"},
        {"q": "parrot", "sort": Sort.NEWEST},
        {},
        {"q": "https://one.test/story"},
        {"q": "parrot", "duplicates": True},
    ):
        as_it_is, less = bed.ask(**asked, page_size=100), bed.ask(**asked, page_size=100, **collapse)
        assert (as_it_is.collapsed, as_it_is.total) == (0, len(as_it_is.hits))
        assert len(less.hits) == less.total == as_it_is.total - less.collapsed < as_it_is.total, asked


@pytest.mark.parametrize("view", [PAGES, SNAPSHOTS])
def test_pages_of_results_repeat_and_lose_nothing(bed: Bed, view: ResultKind) -> None:
    asked = {"q": "parrot", "view": view, "similar": COLLAPSE}
    whole = [hit.row.id for hit in bed.ask(**asked, page_size=100).hits]

    for size in (1, 2, 3):
        pages = [bed.ask(**asked, page=page, page_size=size).hits for page in range(1, 8)]
        assert [hit.row.id for page in pages for hit in page] == whole


def test_what_is_withdrawn_neither_shows_nor_counts_nor_leaves_anything_out(bed: Bed) -> None:
    best = next(hit for hit in bed.ask("parrot", view=PAGES).hits if hit.similar)

    bed.withdraw(url=best.row.url)

    after = bed.ask("parrot", view=PAGES)
    next_best = next(hit for hit in after.hits if hit.similar)
    assert next_best.row.url in _STORY - {best.row.url}
    assert (next_best.similar, after.collapsed) == (2, 2)
    listed = bed.ask(similar_to=next_best.row.id, view=PAGES)
    assert best.row.url not in _urls(listed)
    with pytest.raises(SnapshotNotFound):
        bed.ask(similar_to=best.row.id)


def test_a_capture_that_there_is_not_and_a_contradiction_are_refused(bed: Bed) -> None:
    with pytest.raises(SnapshotNotFound):
        bed.ask(similar_to=999)
    for wrong in (0, 2**63):
        with pytest.raises(BadSearch):
            bed.ask(similar_to=wrong)
    with pytest.raises(BadSearch):
        bed.ask(similar_to=1, similar=COLLAPSE)


def test_a_rebuilt_index_leaves_out_the_same(bed: Bed, tmp_path: Path) -> None:
    def told(of: Bed) -> list[tuple[int, int | None]]:
        views = (PAGES, SNAPSHOTS)
        found = [hit for view in views for hit in of.ask("parrot", view=view, similar=COLLAPSE).hits]
        return [(hit.row.id, hit.similar) for hit in found]

    before = told(bed)
    other = tmp_path / "other"
    rebuild(bed.database, other, bed.clock)

    assert told(replace(bed, home=other, search=SearchService(bed.database, other, bed.clock))) == before
