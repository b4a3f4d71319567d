"""Accounts of runs: counted once for all who look, and anew when they are old or the run has ended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from holdfast.api.errors import ExecutionNotFound
from holdfast.api.run_reports import RunReports
from holdfast.db.models import Execution
from holdfast.wiring.archive import Archive
from tests.archive import Shot, build_archive
from tests.clock import FakeClock
from tests.patience import allowed


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    """An archive with one run."""
    built = build_archive(tmp_path, [Shot(url="https://example.org/")])
    yield built
    built.database.close()


def test_an_account_that_took_long_is_shown_for_ten_times_as_long(archive: Archive, clock: FakeClock) -> None:
    counts: list[int] = []

    def count(execution_id: int) -> dict[str, Any]:
        clock.advance(2)
        counts.append(execution_id)
        return {"number": len(counts)}

    reports = RunReports(archive.database, clock, count)
    told = [reports.read(1)["number"], reports.read(1)["number"]]
    clock.advance(21)
    told.append(reports.read(1)["number"])
    with archive.database.write() as session:
        session.get_one(Execution, 1).state = "failed"
    told.append(reports.read(1)["number"])

    assert told == [1, 1, 2, 3]
    with pytest.raises(ExecutionNotFound):
        reports.read(99)


def test_who_has_an_account_to_show_waits_for_no_other(archive: Archive, clock: FakeClock) -> None:
    begun, go_on = Event(), Event()

    def count(execution_id: int) -> dict[str, Any]:
        if begun.is_set():
            raise AssertionError("counted twice at once")
        if clock.monotonic() > before:
            begun.set()
            assert go_on.wait(allowed(10))
        return {"at": clock.monotonic()}

    before = clock.monotonic()
    reports = RunReports(archive.database, clock, count)
    first = reports.read(1)
    clock.advance(1)
    other = Thread(target=reports.read, args=(1,))
    other.start()
    try:
        assert begun.wait(allowed(10))
        assert reports.read(1) == first
    finally:
        go_on.set()
        other.join()


def test_the_account_is_that_of_the_command(archive: Archive, clock: FakeClock) -> None:
    told = RunReports(archive.database, clock).read(1)

    assert {"execution", "state", "total", "outcomes", "domains"} <= told.keys()
