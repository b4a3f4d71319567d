"""Answers that take long are given again for a while: accounts of runs, histories of pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any, TypeVar

import pytest
from sqlalchemy import QueuePool
from sqlalchemy.orm import Session

from holdfast.api.figures import CountCache, RunReports
from holdfast.db.models import Execution
from holdfast.jobs.store import ExecutionNotFound
from holdfast.jobs.views.run_report import RunReport, run_report
from holdfast.wiring.archive import Archive
from tests.archive import Shot, build_archive
from tests.clock import FakeClock, SlowClock
from tests.patience import deadline

T = TypeVar("T")


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    """An archive with one run."""
    built = build_archive(tmp_path, [Shot(url="https://example.org/")])
    yield built
    built.database.close()


def _read(cache: CountCache[T], key: str, make: Callable[[], T]) -> T:
    return cache.cached(Session(), key, lambda _session: make())


def test_count_without_state_lasts_ten_times_its_cost(archive: Archive, clock: FakeClock) -> None:
    rested: CountCache[int] = CountCache(archive.database, clock, kept=2)
    made: list[str] = []

    def make(key: str, seconds: float = 2) -> int:
        def making() -> int:
            clock.advance(seconds)
            made.append(key)
            return len(made)

        return _read(rested, key, making)

    told = [make("a"), make("a")]
    clock.advance(21)
    told += [make("a"), make("b"), make("b")]

    assert told == [1, 1, 2, 3, 3]
    # What is quick is never old, and what was longest unused is forgotten.
    assert [make("c", 0), make("c", 0), make("a")] == [4, 5, 6]


def test_count_is_repeated_when_it_failed(archive: Archive, clock: FakeClock) -> None:
    rested: CountCache[int] = CountCache(archive.database, clock, kept=2)

    with pytest.raises(ZeroDivisionError):
        _read(rested, "a", lambda: 1 // 0)
    assert _read(rested, "a", lambda: 7) == 7


def test_count_is_returned_while_another_thread_recounts(archive: Archive, clock: FakeClock) -> None:
    rested: CountCache[str] = CountCache(archive.database, clock, kept=2)
    begun, go_on = Event(), Event()
    first = _read(rested, "a", lambda: "first")

    def slow() -> str:
        begun.set()
        assert go_on.wait(deadline(10))
        return "second"

    other = Thread(target=_read, args=(rested, "a", slow))
    other.start()
    try:
        assert begun.wait(deadline(10))
        assert _read(rested, "a", lambda: "made twice at once") == first
    finally:
        go_on.set()
        other.join()
    assert _read(rested, "a", lambda: "third") == "third"


def test_run_report_is_counted_again_when_the_run_has_ended(archive: Archive) -> None:
    reports = RunReports(archive.database, SlowClock())
    first = reports.read(1)

    assert (first.execution, first.domains) == (1, reports.read(1).domains)
    assert reports.read(1) is first
    with archive.database.write() as session:
        session.get_one(Execution, 1).state = "failed"
    assert reports.read(1).state == "failed"
    with pytest.raises(ExecutionNotFound):
        reports.read(99)


def test_run_report_holds_no_connection_while_it_is_counted(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    pool, held = archive.database.engine.pool, list[int]()
    assert isinstance(pool, QueuePool)

    def counted(*given: Any) -> RunReport:
        held.append(pool.checkedout())
        return run_report(*given)

    monkeypatch.setattr("holdfast.api.figures.run_report", counted)

    RunReports(archive.database, SlowClock()).read(1)

    assert held == [0]
