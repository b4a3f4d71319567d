"""Browsing without words: the same as a walk over all captures, at a cost that does not grow with them."""

from __future__ import annotations

import threading
from datetime import date, timedelta
from typing import Any

import pytest

from holdfast.search.search import ResultKind, SearchRequest, SearchService, Sort
from tests.clock import FakeClock
from tests.search_bed import DAY, Bed, Capture, pages

_CAPTURES = [
    Capture(
        url=f"https://h{n % 3}.test/p{n % 7}", text=f"text {n % 11}", at=DAY + timedelta(hours=13 * n),
        source=f"s{n % 4}", language=("en", "fr")[n % 2], status=(200, 200, 404, 301)[n % 4 if n % 5 else 0],
        media_type="application/pdf" if n % 9 == 0 else "text/html", noindex=n % 17 == 0,
    )
    for n in range(120)
]  # fmt: skip
_FILTERS: list[dict[str, Any]] = [
    {"source": "s1"},
    {"language": "fr"},
    {"source": "s2", "language": "en", "type": "html"},
    {"status": "4xx"},
    {"host": "h1.test"},
    {"host": "h1.test", "source": "s3"},
    {"start": date(2025, 3, 20), "end": date(2025, 4, 10)},
    {"source": "s0", "start": date(2025, 3, 20)},
    {"host": "nowhere.test"},
    {"source": "s1", "non_2xx": True, "duplicates": True},
    {"duplicates": True},
]


def _expected(bed: Bed, wish: dict[str, Any]) -> list[int]:
    """Return the ids that a walk over the rows gives, newest first, told by the captures themselves."""
    found = []
    for hit in (
        bed.ask(non_2xx=True, duplicates=True, page_size=100).hits
        + bed.ask(non_2xx=True, duplicates=True, page_size=100, page=2).hits
    ):
        row, day = hit.row, hit.row.captured_at.date()
        status = row.status or 0
        if not wish.get("non_2xx") and not wish.get("status") and status // 100 != 2:
            continue
        if wish.get("source") not in (None, hit.source_code) or wish.get("language") not in (None, row.language):
            continue
        if wish.get("status") not in (None, f"{status // 100}xx"):
            continue
        if wish.get("type") and ("pdf" if row.media_type == "application/pdf" else "html") != wish["type"]:
            continue
        if wish.get("host") not in (None, row.url.split("/")[2]):
            continue
        if day < wish.get("start", day) or day > wish.get("end", day):
            continue
        found.append(row.id)
    return found


@pytest.mark.parametrize("wish", _FILTERS, ids=str)
def test_filters_leave_what_a_walk_over_all_captures_leaves(bed: Bed, wish: dict[str, Any]) -> None:
    bed.fill(_CAPTURES)

    answer = bed.ask(page_size=100, **wish)

    assert [hit.row.id for hit in answer.hits] == _expected(bed, wish)
    assert (answer.total, answer.exact) == (len(answer.hits), True)


@pytest.mark.parametrize("wish", [one for one in _FILTERS if "nowhere.test" not in one.values()], ids=str)
def test_a_bounded_reading_shows_the_newest_and_says_that_it_is_not_all(bed: Bed, wish: dict[str, Any]) -> None:
    bed.fill(_CAPTURES)
    wish = {**wish, "non_2xx": True, "duplicates": True}
    whole = [hit.row for hit in bed.ask(page_size=100, **wish).hits]
    search = SearchService(bed.database, bed.home, bed.clock)
    search.browsed_rows = 5

    answer = search.ask(SearchRequest(page_size=100, **wish))

    found = [hit.row for hit in answer.hits]
    assert 1 <= len(found) <= 5 < len(whole), "five were read, of which some may fail another filter"
    newest = sorted(whole, key=lambda row: (row.captured_at, row.id), reverse=True)[: len(found)]
    assert found == sorted(newest, key=lambda row: (row.status or 0) // 100), "errors come after the rest"
    assert not answer.exact


class _Watched(SearchService):
    """A search that says on which thread it counts."""

    def _count(self, *given: Any) -> Any:
        self.__dict__.setdefault("threads", []).append(threading.current_thread().name)
        return super()._count(*given)


def test_all_pages_are_counted_before_a_new_state_of_the_index_serves(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.search.readers._INLINE_ROWS", 10)
    bed.fill(_CAPTURES[:60])
    clock = FakeClock()
    search = _Watched(bed.database, bed.home, clock)
    assert (search.ask(SearchRequest()).total, search.ask(SearchRequest(q=" ", page=2)).total) == (34, 34)

    bed.fill(_CAPTURES[60:])
    for _ in range(40):
        clock.advance(1)
        search.ask(SearchRequest())
        for thread in threading.enumerate():
            if thread.name == "search view":
                thread.join()
    totals = search.ask(SearchRequest()).total, search.ask(SearchRequest(view=ResultKind.PAGES, page_size=3)).total

    assert totals == (bed.ask().total, bed.ask(view=ResultKind.PAGES).total)
    threads = search.__dict__["threads"]
    assert threads[0] == threading.current_thread().name
    assert threads[1:] == ["search view"] * 2, "captures and pages, and no request waited for it"


def test_pages_are_browsed_newest_first_and_page_by_page(bed: Bed) -> None:
    bed.fill(_CAPTURES)
    whole = [hit.row.id for hit in bed.ask(view=ResultKind.PAGES, page_size=100).hits]
    parts = [hit.row.id for page in range(1, 20) for hit in bed.ask(view=ResultKind.PAGES, page_size=7, page=page).hits]

    assert parts == whole
    assert len(whole) == bed.ask(view=ResultKind.PAGES).total
    moments = [hit.row.captured_at for hit in bed.ask(view=ResultKind.PAGES, page_size=100).hits]
    assert moments == sorted(moments, reverse=True)


def test_a_page_counts_no_capture_that_is_withdrawn(bed: Bed) -> None:
    ids = bed.fill(Capture(url="https://a.test/", text=f"text {n}", at=DAY + timedelta(days=n)) for n in range(3))
    assert [hit.captures for hit in bed.ask(view=ResultKind.PAGES).hits] == [3]

    bed.withdraw(snapshot_id=ids[2])

    assert [(hit.captures, hit.row.id) for hit in bed.ask(view=ResultKind.PAGES).hits] == [(2, ids[1])]


def test_captures_of_a_page_are_those_that_can_be_reached(bed: Bed) -> None:
    ids = bed.fill(
        Capture(url="https://a.test/", text=f"text {n}", at=DAY + timedelta(days=n), noindex=n == 0) for n in range(5)
    )
    [new] = bed.add([Capture(url="https://a.test/", text="new", at=DAY + timedelta(days=9))])
    bed.withdraw(snapshot_id=new)
    assert [hit.captures for hit in bed.ask(view=ResultKind.PAGES).hits] == [4]

    bed.withdraw(snapshot_id=ids[1])
    assert [hit.captures for hit in bed.ask(view=ResultKind.PAGES).hits] == [3]
    bed.drain()
    assert [hit.captures for hit in bed.ask(view=ResultKind.PAGES).hits] == [3]


@pytest.mark.parametrize(
    "more", [{}, {"q": "words"}, {"q": "words", "view": ResultKind.PAGES}, {"host": "a.test"}], ids=str
)
def test_redirects_and_errors_come_after_the_rest_in_the_order_of_time_too(bed: Bed, more: dict[str, Any]) -> None:
    statuses = (200, 301, 404, 200, 500, 302, None)
    bed.fill(
        Capture(url=f"https://a.test/{n}", text=f"words {n}", status=status, at=DAY + timedelta(days=n))
        for n, status in enumerate(statuses)
    )

    hits = bed.ask(sort=Sort.NEWEST, non_2xx=True, **more).hits

    assert [hit.row.status for hit in hits] == [200, 200, 302, 301, None, 500, 404]
    assert [hit.row.url[-1] for hit in hits] == ["3", "0", "5", "1", "6", "4", "2"]
    pages = [bed.ask(sort=Sort.NEWEST, non_2xx=True, page=page, page_size=3, **more).hits for page in (1, 2, 3)]
    assert [hit.row.id for part in pages for hit in part] == [hit.row.id for hit in hits]


@pytest.mark.parametrize("q", [None, "text", "example.org"])
@pytest.mark.parametrize("view", list(ResultKind))
def test_page_far_behind_the_last_is_empty(bed: Bed, q: str | None, view: ResultKind) -> None:
    bed.fill(pages(["text"]))

    found = bed.ask(q, page=10**20, view=view)
    assert (found.total, found.hits) == (1, [])
