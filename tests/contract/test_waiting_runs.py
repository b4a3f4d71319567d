"""Why a queued run waits: the same reason with its next step in the API, `job show`, `job executions` and `status`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import update

from holdfast.cli import job_show, status
from holdfast.cli.job_selector import open_for_jobs
from holdfast.cli.printing import runnable
from holdfast.clock import SystemClock
from holdfast.db.models import Execution, Job, Source
from holdfast.jobs.pauses import RunWait
from holdfast.jobs.waiting import waits_of
from holdfast.processes.owners import OwnerProcess
from holdfast.processes.runfile import RunFile
from holdfast.wiring import open_runtime
from holdfast.wiring.jobs import open_jobs
from tests.api_bed import Server
from tests.contract.worker_bed import WorkerBed


def _queued(bed: WorkerBed, code: str = "ex") -> int:
    """Queue a job's run and return the job's id."""
    job_id = bed.job(code)
    with open_jobs(bed.settings) as jobs:
        jobs.scheduler.tick()
    return job_id


def _wait(bed: WorkerBed) -> RunWait:
    with bed.database.read() as session:
        (found,) = waits_of(bed.settings, SystemClock(), session.query(Execution).all()).values()
    return found


def test_run_without_contact_names_the_contact(database_url: str, tmp_path: Path) -> None:
    bed = WorkerBed(database_url, tmp_path)
    bed.settings = bed.settings.model_copy(update={"contact": None})
    with closing(bed.database):
        _queued(bed)
        code, sentence = _wait(bed)
    assert code == "contact"
    assert "enter an e-mail or web address" in sentence


def test_run_waits_for_a_worker_then_for_a_free_one(database_url: str, tmp_path: Path) -> None:
    bed = WorkerBed(database_url, tmp_path)
    with closing(bed.database), open_runtime(bed.settings) as runtime:
        _queued(bed)
        assert _wait(bed).code == "worker"
        run = RunFile(runtime.run_folder)
        worker = OwnerProcess(runtime.raw_db, runtime.clock, run=run, kind="worker", execution_id=None)
        assert _wait(bed).code == "turn"
        other = bed.job("other")
        with bed.database.write() as session:
            session.execute(update(Job).where(Job.id == other).values(lock_token="x", lock_owner_id=worker.id))
        assert _wait(bed).code == "busy"
        worker.end()


def test_run_with_files_waits_for_the_worker_beside_them(database_url: str, tmp_path: Path) -> None:
    bed = WorkerBed(database_url, tmp_path)
    with closing(bed.database), open_runtime(bed.settings) as runtime:
        _queued(bed)
        other = bed.job("other")
        keeper, second, elsewhere = (
            OwnerProcess(
                runtime.raw_db,
                runtime.clock,
                run=RunFile(runtime.run_folder),
                kind="worker",
                execution_id=None,
                directory=name,
            )
            for name in ("ours", "ours", "theirs")
        )
        with bed.database.write() as session:
            session.execute(update(Execution).values(directory="ours"))
        assert _wait(bed).code == "turn"
        with bed.database.write() as session:
            session.execute(update(Job).where(Job.id == other).values(lock_token="x", lock_owner_id=keeper.id))
        assert _wait(bed).code == "turn"
        second.end()
        assert _wait(bed) == ("busy", "the worker that has its files is busy; it starts when that worker is free")
        keeper.end()
        assert _wait(bed).code == "machine"
        elsewhere.end()


@pytest.mark.parametrize("code", ["source", "time", "disk"])
def test_run_names_what_keeps_it_waiting(database_url: str, tmp_path: Path, code: str) -> None:
    disk = {"free_bytes": 10**18} if code == "disk" else {"free_bytes": 0, "free_percent": 0}
    bed = WorkerBed(database_url, tmp_path, disk=disk)
    with closing(bed.database):
        _queued(bed)
        with bed.database.write() as session:
            if code == "source":
                session.execute(update(Source).values(enabled=False))
            if code == "time":
                session.execute(update(Execution).values(queued_at=datetime.now(UTC) + timedelta(days=3)))
        assert _wait(bed).code == code


def test_api_and_commands_give_the_same_reason(
    server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = server.archive.settings
    job_id = server.job()
    server.bed.party.scheduler.tick()
    (run,) = server.get(f"/api/v1/jobs/{job_id}/executions").json()["executions"]
    (listed,) = server.get("/api/v1/jobs").json()["jobs"]
    answers = [run, server.get(f"/api/v1/executions/{run['id']}").json(), listed["latest_execution"],
               server.get(f"/api/v1/jobs/{job_id}").json()["latest_execution"]]  # fmt: skip
    ((code, sentence),) = {(one["waits_for"], one["sentence"]) for one in answers}
    assert code in ("contact", "worker", "disk")

    monkeypatch.setenv("HOLDFAST_DATABASE_URL", settings.database)
    commands: list[Callable[[], None]] = [
        lambda: runnable(opened=open_for_jobs, example="")(job_show.show)(job=job_id, job_id=None, home=settings.home),
        lambda: runnable(opened=open_for_jobs, example="")(job_show.executions)(
            job=job_id, job_id=None, limit=20, offset=0, home=settings.home
        ),
        lambda: status.status(execution=None, home=settings.home),
        lambda: status.status(execution=run["id"], home=settings.home),
    ]
    for command in commands:
        command()
        assert sentence[:60] in capsys.readouterr().out
