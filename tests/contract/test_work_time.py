"""The time that an execution was worked on: no moment is lost to a kill, and none counts twice."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from holdfast.db import connect
from holdfast.db.raw import RawDatabase
from holdfast.jobs import executions
from holdfast.jobs.executions import ExecutionEnding, ExecutionOptions, StartedRun, WorkTime
from holdfast.jobs.views.status import read_status
from holdfast.sources.plan import CrawlPlan
from tests.clock import FakeClock

_PLAN = CrawlPlan(seeds=("https://a.example/",), contact="tests@example.org")


def _begin(raw_db: RawDatabase, clock: FakeClock, home: Path) -> StartedRun:
    return executions.begin(raw_db, clock, _PLAN, ExecutionOptions(home=home), is_working=lambda _: False)


def _write(raw_db: RawDatabase, time: WorkTime) -> None:
    with raw_db.write() as tx:
        time.write(tx)


def _write_and_break_off(raw_db: RawDatabase, time: WorkTime) -> None:
    with raw_db.write() as tx:
        time.write(tx)
        raise RuntimeError("undone")


def test_what_a_killed_supervisor_had_worked_counts_for_the_next(
    migrated_url: str, clock: FakeClock, tmp_path: Path
) -> None:
    with closing(connect(migrated_url)) as raw_db:
        killed = WorkTime(clock, _begin(raw_db, clock, tmp_path))
        for _ in range(5):
            clock.advance(2)
            _write(raw_db, killed)
        clock.advance(86_400)  # dead, and started again a day later
        begun = _begin(raw_db, clock, tmp_path)
        time = WorkTime(clock, begun)
        clock.advance(3)

        executions.end(raw_db, clock, ExecutionEnding(begun.execution_id, "completed", "done"), time=time)

        assert (begun.resumed, begun.run_seconds) == (True, 10.0)
        assert read_status(raw_db, clock, begun.execution_id).run_seconds == time.used_s == 13.0


def test_a_moment_counts_once_while_two_supervisors_work(migrated_url: str, clock: FakeClock, tmp_path: Path) -> None:
    with closing(connect(migrated_url)) as raw_db, closing(connect(migrated_url)) as elsewhere:
        begun = _begin(raw_db, clock, tmp_path)
        one, other = WorkTime(clock, begun), WorkTime(clock, begun)
        for _ in range(10):
            clock.advance(2)
            _write(raw_db, one)
            _write(elsewhere, other)

        assert read_status(raw_db, clock, begun.execution_id).run_seconds == one.used_s == other.used_s == 20.0


def test_a_transaction_that_was_undone_loses_no_time(migrated_url: str, clock: FakeClock, tmp_path: Path) -> None:
    with closing(connect(migrated_url)) as raw_db:
        begun = _begin(raw_db, clock, tmp_path)
        time = WorkTime(clock, begun)
        clock.advance(2)
        with pytest.raises(RuntimeError, match="undone"):
            _write_and_break_off(raw_db, time)
        clock.advance(2)
        _write(raw_db, time)
        clock.advance(2)
        _write(raw_db, time)

        assert read_status(raw_db, clock, begun.execution_id).run_seconds == 6.0
