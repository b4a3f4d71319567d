"""Answers that take long are given again for a while: accounts of runs, histories of pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

import pytest

from holdfast.api.adaptive_cache import AdaptiveCache
from holdfast.api.errors import ExecutionNotFound
from holdfast.api.run_reports import RunReports
from holdfast.db.models import Execution
from holdfast.wiring.archive import Archive
from tests.archive import Shot, build_archive
from tests.clock import FakeClock, SlowClock
from tests.patience import deadline


def test_an_answer_that_took_long_is_given_for_ten_times_as_long(clock: FakeClock) -> None:
    rested: AdaptiveCache[int] = AdaptiveCache(clock, kept=2)
    made: list[str] = []

    def make(key: str, seconds: float = 2) -> int:
        def making() -> int:
            clock.advance(seconds)
            made.append(key)
            return len(made)

        return rested.read(key, making)

    told = [make("a"), make("a")]
    clock.advance(21)
    told += [make("a"), make("b"), make("b")]

    assert told == [1, 1, 2, 3, 3]
    # What is quick is never old, and what was longest unused is forgotten.
    assert [make("c", 0), make("c", 0), make("a")] == [4, 5, 6]


def test_what_cannot_be_made_is_tried_again(clock: FakeClock) -> None:
    rested: AdaptiveCache[int] = AdaptiveCache(clock, kept=2)

    with pytest.raises(ZeroDivisionError):
        rested.read("a", lambda: 1 // 0)
    assert rested.read("a", lambda: 7) == 7


def test_a_request_that_has_an_answer_waits_for_no_other(clock: FakeClock) -> None:
    rested: AdaptiveCache[str] = AdaptiveCache(clock, kept=2)
    begun, go_on = Event(), Event()
    first = rested.read("a", lambda: "first")

    def slow() -> str:
        begun.set()
        assert go_on.wait(deadline(10))
        return "second"

    other = Thread(target=rested.read, args=("a", slow))
    other.start()
    try:
        assert begun.wait(deadline(10))
        assert rested.read("a", lambda: "made twice at once") == first
    finally:
        go_on.set()
        other.join()
    assert rested.read("a", lambda: "third") == "third"


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    """An archive with one run."""
    built = build_archive(tmp_path, [Shot(url="https://example.org/")])
    yield built
    built.database.close()


def test_the_account_of_a_run_is_counted_anew_once_it_has_ended(archive: Archive) -> None:
    reports = RunReports(archive.database, SlowClock())
    first = reports.read(1)

    assert (first.execution, first.domains) == (1, reports.read(1).domains)
    assert reports.read(1) is first
    with archive.database.write() as session:
        session.get_one(Execution, 1).state = "failed"
    assert reports.read(1).state == "failed"
    with pytest.raises(ExecutionNotFound):
        reports.read(99)
