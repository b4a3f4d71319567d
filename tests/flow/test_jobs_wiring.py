"""The jobs of an installation, opened as its processes open them."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import update

from holdfast import config
from holdfast.db.models import Job
from holdfast.errors import Invalid
from holdfast.jobs.endings import RunEnding, RunResult
from holdfast.jobs.leases import start_page
from holdfast.jobs.specs import JobSpec
from holdfast.sources import registry
from holdfast.sources.config import SourceConfig
from holdfast.wiring.jobs import open_jobs
from tests.jobs_bed import holder


def _refuse_zimit(checked: SourceConfig) -> None:
    if checked.backend == "zimit":
        raise Invalid("backend: zimit cannot run here")


def test_an_installation_makes_queues_and_runs_a_job(database_url: str, tmp_path: Path) -> None:
    settings = config.load(home=tmp_path / "home", database_url=database_url)
    with open_jobs(settings, backend_check=_refuse_zimit) as jobs:
        with jobs.database.write() as session:
            source = registry.create(session, jobs.clock, registry.read_spec(
                {"code": "ex", "config": {"seeds": ["https://ex.example/"], "max_depth": 9}}))  # fmt: skip
            made = jobs.actions.upsert(session, JobSpec(source_id=source.id))
        assert "max_depth" in made.warnings[0]
        with pytest.raises(Invalid, match="zimit"), jobs.database.write() as session:
            jobs.actions.upsert(session, JobSpec(source_id=source.id, config={"backend": "zimit"}))
        assert jobs.scheduler.start() == 0
        assert list(jobs.scheduler.tick().queued) == [made.job.id]
        lease = jobs.leases.take(holder(jobs.database, "w1"))
        assert lease is not None
        with jobs.database.read() as session:
            seen = start_page(session, execution_id=lease.execution_id, url="https://ex.example/")
        assert (seen.content_hash, seen.not_modified) == (None, False)
        assert jobs.leases.settle(lease, RunEnding(result=RunResult.COMPLETED, start=seen)) == "completed"


def test_a_lock_is_judged_by_the_databases_clock(postgres_url: str, tmp_path: Path) -> None:
    settings = config.load(home=tmp_path / "home", database_url=postgres_url)
    with open_jobs(settings, backend_check=_refuse_zimit) as jobs:
        with jobs.database.write() as session:
            source = registry.create(session, jobs.clock, registry.read_spec(
                {"code": "ex", "config": {"seeds": ["https://ex.example/"]}}))  # fmt: skip
            jobs.actions.upsert(session, JobSpec(source_id=source.id))
        jobs.scheduler.tick()
        lease = jobs.leases.take(holder(jobs.database, "w1"))
        assert lease is not None
        with jobs.database.read() as session:
            beat = session.get_one(Job, lease.claim.job_id).lock_heartbeat_at
            server = session.connection().exec_driver_sql("SELECT clock_timestamp()").scalar_one()
        assert beat is not None
        assert abs((server - beat).total_seconds()) < 30
        with jobs.database.write() as session:
            session.execute(update(Job).values(lock_heartbeat_at=server.replace(year=server.year - 10)))
        assert jobs.scheduler.sweep() == 1
