"""What `holdfast status` says of jobs: what failed, what waits and why, who works; on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from sqlalchemy import insert, text, update

from holdfast.cli import status as shown
from holdfast.clock import to_micros
from holdfast.db.models import Execution, Job, Source
from holdfast.db.models.work import Owner as OwnerRow
from holdfast.jobs.endings import FailureCause, RunEnding, RunResult
from holdfast.jobs.leases import ExecutionLease
from holdfast.jobs.schedule_queries import last_scheduled_at
from holdfast.jobs.states import JobAction
from holdfast.jobs.views import overview
from holdfast.jobs.views.overview import JobsOverview, read_overview
from holdfast.processes.owners import OwnerProcess
from holdfast.processes.runfile import RunFile
from holdfast.wiring import open_runtime
from holdfast.wiring.jobs import open_jobs
from holdfast.worker.runner import RunnerHolding
from tests.contract.worker_bed import DONE, WorkerBed

if TYPE_CHECKING:
    from holdfast.db.raw import Transaction


@pytest.fixture
def bed(database_url: str, tmp_path: Path) -> Iterator[WorkerBed]:
    """A database of each kind."""
    made = WorkerBed(database_url, tmp_path)
    with closing(made.database):
        yield made


def _read(bed: WorkerBed) -> JobsOverview:
    with open_runtime(bed.settings) as runtime:
        return read_overview(runtime.raw_db, runtime.clock, bed.settings, run_folder=runtime.run_folder)


def _fail(_lease: ExecutionLease, _holding: RunnerHolding) -> RunEnding:
    return RunEnding(result=RunResult.FAILED, failure=FailureCause.INFRA, error="the storage is away")


def test_what_failed_waits_and_works_is_told_with_its_reason(bed: WorkerBed) -> None:
    assert shown.overview_lines(_read(bed)) == []
    failed = bed.job("failed")
    bed.work(_fail)
    for code in ("off", "later", "next"):
        bed.job(code)
    now = datetime.now(UTC)
    with bed.database.write() as session:
        session.execute(update(Source).where(Source.code == "off").values(enabled=False))
        for number, code in enumerate(("off", "later", "next"), 2):
            moment = now + timedelta(days=300) if code == "later" else now
            session.get_one(Job, number).next_run_at = None
            session.add(Execution(job_id=number, number=1, state="queued", config={}, output_dir="", created_at=now,
                                  queued_at=moment, due_at=moment, run_seconds=0.0))  # fmt: skip
    standing = _read(bed)

    assert [(one.job, one.failure, one.error) for one in standing.failed] == [
        (failed, "infra_error", "the storage is away")
    ]  # fmt: skip
    assert {one.source: one.waits_for for one in standing.waiting} == {
        "off": "source", "next": "worker", "later": "time",
    }  # fmt: skip
    assert standing.queued == 3
    lines = "\n".join(shown.overview_lines(standing))
    assert "failed: execution 1 of failed, infra_error: the storage is away; again at" in lines
    assert "waits: execution" in lines


def test_a_worker_that_died_is_told_from_one_that_works(bed: WorkerBed, tmp_path: Path) -> None:
    with open_runtime(bed.settings) as runtime:
        living = OwnerProcess(
            runtime.raw_db, runtime.clock, run=RunFile(runtime.run_folder), kind="worker", execution_id=None
        )
        dead = OwnerProcess(
            runtime.raw_db, runtime.clock, run=RunFile(runtime.run_folder), kind="worker", execution_id=None
        )
        dead.run.close()
        dead.run.path.touch()  # as a killed process leaves it: there, and held by none
        with bed.database.write() as session:
            far = OwnerRow(kind="worker", host="elsewhere", pid=1, run_file="gone.run", started_at=datetime.now(UTC),
                           heartbeat_at=datetime.now(UTC) - timedelta(minutes=3))  # fmt: skip
            session.add(far)
        standing = read_overview(runtime.raw_db, runtime.clock, bed.settings, run_folder=runtime.run_folder)

        assert {int(one.name.rpartition("/")[2]): one.gone for one in standing.workers} == {
            living.id: False, dead.id: True, far.id: True,
        }  # fmt: skip
        living.end()


def test_jobs_that_nobody_queues_are_overdue_and_low_disk_is_the_first_line(database_url: str, tmp_path: Path) -> None:
    bed = WorkerBed(database_url, tmp_path, disk={"free_bytes": 10**18})
    with closing(bed.database):
        job_id = bed.job("ex")
        with bed.database.write() as session:
            session.get_one(Job, job_id).next_run_at = datetime.now(UTC) - timedelta(minutes=5)
        lines = shown.overview_lines(_read(bed))

    assert lines[0].startswith("low disk")
    assert any(line.startswith("overdue: 1 job") for line in lines)


def test_failures_that_a_later_run_made_good_come_last_and_say_so(bed: WorkerBed) -> None:
    first, second = bed.job("mended", max_retries=0), bed.job("broken", max_retries=0)
    bed.work(lambda _lease, _holding: RunEnding(result=RunResult.FAILED, error="it broke"))
    with bed.database.write() as session:
        session.execute(update(Execution).where(Execution.job_id == second).values(finished_at=datetime.now(UTC)
                                                                                 - timedelta(hours=1)))  # fmt: skip
    with open_jobs(bed.settings) as jobs, jobs.database.write() as session:
        jobs.actions.act(session, first, JobAction.RETRY)
    bed.work(lambda _lease, _holding: DONE)

    found = _read(bed)
    assert [(run.source, run.mended) for run in found.failed] == [("broken", False), ("mended", True)]
    said = [line for line in shown.overview_lines(found) if line.startswith("failed:")]
    assert (said[0].endswith("it broke"), said[1].endswith("; a later run went well")) == (True, True)


def test_the_failed_of_a_week_are_found_by_an_index_of_their_own(bed: WorkerBed) -> None:
    job_id = bed.job("ex", kind="annual", at=datetime(2030, 1, 1, tzinfo=UTC))
    now = datetime.now(UTC)
    good = {"job_id": job_id, "state": "completed", "config": {}, "output_dir": "", "created_at": now,
            "run_seconds": 0.0, "metrics": {}, "artifacts": {}, "storage": {}, "finished_at": now}  # fmt: skip
    with bed.database.write() as session:
        session.execute(insert(Execution), [{"number": number, **good} for number in range(1, 3001)])
    with bed.database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("ANALYZE"))
    asked: list[str] = []

    class Told:
        def execute(self, statement: str, values: tuple[int, int]) -> list[object]:
            asked.append(statement.replace("?", str(values[0]), 1).replace("?", str(values[1]), 1))
            return []

    overview.failed_runs(cast("Transaction", Told()), since=to_micros(now - timedelta(days=7)), limit=5, mended=False)
    explain = "EXPLAIN QUERY PLAN " if bed.database.engine.dialect.name == "sqlite" else "EXPLAIN "
    with bed.database.engine.connect() as connection:
        plan = "\n".join(str(row[-1]) for row in connection.exec_driver_sql(explain + asked[0]))
    assert "ix_executions_failed" in plan


def test_a_worker_that_leaves_the_queueing_to_others_is_no_scheduler(bed: WorkerBed) -> None:
    seen: list[datetime | None] = []

    def look(_lease: ExecutionLease, _holding: RunnerHolding) -> RunEnding:
        with bed.database.read() as session:
            seen.append(last_scheduled_at(session))
        assert [worker.jobs for worker in _read(bed).workers] == [1]
        return DONE

    bed.job("one")
    with open_jobs(bed.settings) as jobs:
        jobs.scheduler.tick()
    bed.work(look, schedules=False)
    bed.job("two")
    bed.work(look)

    assert [moment is None for moment in seen] == [True, False]
