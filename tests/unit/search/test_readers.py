"""A reader that is open while the index moves on: what it adds to, what it builds anew, and what it answers."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from sqlalchemy import update

from holdfast.db.models import Document, SearchOutbox
from holdfast.errors import Unavailable
from holdfast.search import counting
from holdfast.search.columns import Columns
from holdfast.search.directory import IndexDirectory, IndexMark
from holdfast.search.outbox import take_over_signals
from holdfast.search.readers import ReaderCache, ResultCache, SharedCache, View, open_view
from holdfast.search.search import ResultKind, SearchRequest, SearchService
from tests.clock import FakeClock
from tests.search_bed import DAY, Bed, Capture

_QUESTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"view": ResultKind.PAGES},
    {"q": "parrot"},
    {"q": "parrot", "view": ResultKind.PAGES},
    {"q": "(title:page AND url:two)"},
    {"q": "site:two.test parrot"},
    {"q": "author:ann"},
    {"q": "type:article parrot", "duplicates": True},
    {"source": "second"},
    {"host": "one.test"},
    {"language": "fr", "non_2xx": True},
    {"q": "https://one.test/1"},
    {"start": (DAY + timedelta(days=3)).date()},
)


def _captures(first: int, count: int, **more: Any) -> list[Capture]:
    return [
        Capture(
            url=f"https://{('one', 'two', 'three')[n % 3]}.test/{n % 7}",
            text=f"a parrot of the kind{n % 11} and number{n}",
            title=f"Page {n % 5}",
            at=DAY + timedelta(hours=n),
            status=(200, 200, 200, 301, 404)[n % 5],
            language=("en", "fr", None)[n % 3],
            source=("demo", "second")[n % 2],
            author=(None, "Ann", "Kim Lee")[n % 3],
            **more,
        )
        for n in range(first, first + count)
    ]


def _answers(search: SearchService) -> list[Any]:
    found = [search.ask(SearchRequest(page_size=50, **question), wait=True) for question in _QUESTIONS]
    return [
        (answer.total, answer.exact, [hit.row.id for hit in answer.hits], answer.facets, answer.histogram)
        for answer in found
    ]


def test_a_reader_that_is_open_answers_as_one_that_is_new_while_captures_come(bed: Bed) -> None:
    bed.fill(_captures(0, 12))
    grown = 0
    # Not all of them in the order of time: crawls run side by side.
    for first in (12, 24, 18, 36, 30, 42, 54, 48):
        bed.fill(_captures(first, 6))
        open_, new = bed.search, SearchService(bed.database, bed.home, bed.clock)
        assert _answers(open_) == _answers(new)
        grown += open_._readers.view().is_grown
        assert not new._readers.view().is_grown

    assert grown == 7, "the first question opened what it then added to, seven times, also to what was merged"


def test_columns_are_built_where_a_drain_changes_what_was_there(bed: Bed) -> None:
    ids = bed.fill(_captures(0, 12))
    cache = ReaderCache(bed.home, bed.clock)
    cache.view()
    with bed.database.write() as session:
        session.execute(update(Document).where(Document.id == 1).values(title="Cockatoo"))
        session.add(SearchOutbox(kind="documents", refs={"ids": [1]}, created_at=DAY))
    bed.drain()
    assert not cache.view(wait=True).is_grown

    with bed.database.write() as session:
        session.add(SearchOutbox(kind="snapshots", first_id=ids[0], last_id=ids[2], refs={}, created_at=DAY))
    bed.drain()
    assert not cache.view(wait=True).is_grown
    take_over_signals(bed.database, bed.home)
    assert not cache.view(wait=True).is_grown

    bed.fill(_captures(30, 3))
    assert cache.view(wait=True).is_grown


def test_a_view_goes_on_as_it_is_while_others_grow_out_of_it(bed: Bed) -> None:
    bed.fill(_captures(0, 12))
    directory = IndexDirectory(bed.home)
    first = open_view(directory)
    was = first.columns.ids.tolist(), first.columns.documents.places(first.columns.ids).tolist()
    bed.fill(_captures(12, 5))
    second, third = open_view(directory, first), open_view(directory, first)
    bed.fill(_captures(17, 5))
    fourth = open_view(directory, second)

    assert [view.is_grown for view in (first, second, third, fourth)] == [False, True, False, True]
    assert [len(view.columns) for view in (first, second, third, fourth)] == [12, 17, 17, 22]
    assert second.columns.ids.tolist() == third.columns.ids.tolist() == fourth.columns.ids.tolist()[:17]
    assert (first.columns.ids.tolist(), first.columns.documents.places(first.columns.ids).tolist()) == was


@pytest.mark.parametrize(("most", "beside"), [(100, False), (10, True)])
def test_view_of_many_captures_is_renewed_beside_requests(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, *, most: int, beside: bool
) -> None:
    monkeypatch.setattr("holdfast.search.readers._INLINE_ROWS", most)
    clock, prepared = FakeClock(), list[int]()
    cache = ReaderCache(bed.home, clock, prepare=lambda view: prepared.append(len(view.columns)))
    bed.fill(_captures(0, 12))
    cache.view()

    bed.fill(_captures(12, 6))
    clock.advance(1)
    cache.view()
    for thread in threading.enumerate():
        if thread.name == "search view":
            thread.join()

    assert prepared == ([18] if beside else [])
    assert len(cache.view().columns) == 18


def test_view_is_renewed_after_a_thread_could_not_start(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.search.readers._INLINE_ROWS", 10)
    clock = FakeClock()
    cache = ReaderCache(bed.home, clock)
    bed.fill(_captures(0, 12))
    cache.view()
    bed.fill(_captures(12, 6))
    clock.advance(1)

    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        assert len(cache.view().columns) == 12

    assert len(cache.view(wait=True).columns) == 18


def test_request_uses_a_view_that_was_renewed_while_it_waited(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    bed.fill(_captures(0, 6))
    cache = ReaderCache(bed.home, bed.clock)
    cache.view()
    mark, renewed = cache._directory.mark, list[View]()
    bed.fill(_captures(6, 6))

    def look() -> IndexMark | None:
        seen = mark()
        if not renewed:
            bed.fill(_captures(12, 6))
            monkeypatch.setattr(cache._directory, "mark", mark)
            renewed.append(cache.view())
        return seen

    monkeypatch.setattr(cache._directory, "mark", look)

    assert cache.view() is renewed[0]
    assert len(renewed[0].columns) == 18


def test_request_uses_a_view_that_was_renewed_while_it_looked(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    bed.fill(_captures(0, 6))
    cache = ReaderCache(bed.home, bed.clock)
    cache.view()
    bed.fill(_captures(6, 6))
    mark = cache._directory.mark

    def look() -> IndexMark | None:
        monkeypatch.setattr(cache._directory, "mark", mark)
        cache.view()
        return mark()

    monkeypatch.setattr(cache._directory, "mark", look)

    assert len(cache.view(wait=True).columns) == 12


def test_open_view_serves_when_the_index_goes_while_it_is_looked_at(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    bed.fill(_captures(0, 6))
    cache = ReaderCache(bed.home, bed.clock)
    view = cache.view()
    bed.fill(_captures(6, 6))
    mark = cache._directory.mark

    def look() -> IndexMark | None:
        seen = mark()
        (bed.home / "search" / "current").unlink(missing_ok=True)
        return seen

    monkeypatch.setattr(cache._directory, "mark", look)

    assert cache.view() is view


class _Nothing:
    size = 0


def test_gate_of_many_searches_is_computed_once(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    bed.fill(_captures(0, 6))
    cache: ResultCache[_Nothing] = ResultCache(ReaderCache(bed.home, bed.clock).view())
    computed, meeting, compute = list[int](), threading.Barrier(8), counting.gates

    def slowly(columns: Columns, *more: Any) -> counting.Gate:
        computed.append(len(columns))
        time.sleep(0.1)
        return compute(columns, *more)

    def ask() -> counting.Gate:
        with bed.database.read() as session:
            meeting.wait(60)
            return cache.gate(session)[1]

    monkeypatch.setattr(counting, "gates", slowly)
    with ThreadPoolExecutor(8) as pool:
        gates = [asked.result(60) for asked in [pool.submit(ask) for _ in range(8)]]

    assert computed == [6]
    assert all(gate is gates[0] for gate in gates)


def test_shared_cache_raises_for_all_who_wait_and_tries_again() -> None:
    cache, tried, waits = SharedCache[int](2), list[int](), threading.Event()

    def fail() -> int:
        tried.append(1)
        waits.wait(60)
        raise Unavailable("the disk is gone")

    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(cache.get, fail) for _ in range(2)]
        # The second waits for the first, or has not begun.
        while not tried or len(cache._running) != 1:
            time.sleep(0.01)
        waits.set()
        errors = [one.exception(60) for one in asked]

    assert [type(error) for error in errors] == [Unavailable, Unavailable]
    assert cache.get(lambda: 3) == 3
    assert cache.get(lambda: pytest.fail("it is kept")) == 3


@pytest.mark.parametrize("count", [0, 1, 200, 3_000])
def test_rows_of_ids_are_those_that_isin_finds(bed: Bed, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr("holdfast.search.columns._HASHED_AT_ONCE", 500)
    chance = np.random.default_rng(count)
    ids = chance.permutation(np.arange(2_000, dtype=np.int64) + (np.arange(2_000, dtype=np.int64) % 7 << 22))
    columns = replace(ReaderCache(bed.home, bed.clock).view().columns, ids=ids)
    wanted = chance.choice(np.concatenate((ids, -ids - 1)), count)

    assert columns.rows_of_ids(wanted).tolist() == np.flatnonzero(np.isin(ids, wanted)).tolist()


def test_request_with_an_older_view_keeps_the_newer_cache(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    search, request = SearchService(bed.database, bed.home, bed.clock), SearchRequest(q="parrot", duplicates=True)
    bed.fill(_captures(0, 6))
    before = search.ask(request, wait=True).total
    older = search._readers.view()
    bed.fill(_captures(6, 6))
    search.ask(request, wait=True)
    newer = search._cache

    with monkeypatch.context() as late:
        late.setattr(search._readers, "view", lambda **_: older)
        assert search.ask(request).total == before

    assert search._cache is newer
