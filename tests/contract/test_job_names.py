"""What a job is called reaches the directories of its runs and the exports of what they captured."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import update

from holdfast.config import Settings
from holdfast.db.models import Job
from holdfast.exports.queries import ExportReach
from holdfast.exports.tables import SNAPSHOT_COLUMNS, snapshot_rows
from holdfast.jobs.specs import JobSpec
from holdfast.jobs.store import folder_name
from holdfast.sources import registry
from holdfast.wiring.jobs import open_jobs
from tests.archive import Shot, build_archive
from tests.jobs_bed import holder


@pytest.mark.parametrize(("name", "stem"), [("ex-20260101", "ex-20260101-1"), (None, "ex-1"), ("../a b/é", "a-b-1")])
def test_a_run_s_directory_is_called_after_its_job(
    migrated_url: str, tmp_path: Path, name: str | None, stem: str
) -> None:
    with open_jobs(Settings(home=tmp_path, database_url=migrated_url)) as jobs:
        with jobs.database.write() as session:
            spec = registry.read_spec({"code": "ex", "config": {"seeds": ["https://example.org/"]}})
            source = registry.create(session, jobs.clock, spec)
            jobs.actions.upsert(session, JobSpec(source_id=source.id, name=name))
        jobs.scheduler.tick()
        lease = jobs.leases.take(holder(jobs.database, "w1"))

    assert lease is not None
    assert lease.output_dir.name.partition("__")[2] == stem
    assert lease.output_dir.parent.name == "ex"


def test_a_name_of_nothing_that_a_path_takes_is_left_away() -> None:
    assert folder_name("ex", 7, "…/") == "ex-7"
    assert len(folder_name("ex", 7, "a" * 500)) < 100


def test_exports_name_the_job_of_a_capture(migrated_url: str, tmp_path: Path) -> None:
    archive = build_archive(tmp_path, [Shot(url="https://example.org/")], database_url=migrated_url)
    with archive.database.write() as session:
        session.execute(update(Job).values(name="hc-20260101"))

    [row] = snapshot_rows(archive.database, ExportReach(), site="http://site")

    named = dict(zip(SNAPSHOT_COLUMNS, row, strict=True))
    assert named["job_name"] == f"hc-20260101-{named['job_id']}"
    archive.database.close()
