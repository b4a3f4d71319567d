"""What is written about jobs: the database's own clock, one writer at a time, and slots that follow other processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, insert, select
from sqlalchemy.orm import Session

from holdfast import config
from holdfast.clock import SystemClock
from holdfast.db.engine import Database
from holdfast.db.models import AuditEvent, Job, Source
from holdfast.errors import Conflict, Invalid
from holdfast.jobs.administration.source_jobs import sync_enabled_sources
from holdfast.jobs.specs import JobSpec
from holdfast.jobs.views import listing
from holdfast.sources import registry
from holdfast.sources.config import read_config
from holdfast.wiring.jobs import JobService
from tests.clock import FakeClock


@pytest.fixture
def database(migrated_url: str) -> Iterator[Database]:
    """An empty database of each kind."""
    with closing(Database(migrated_url)) as opened:
        yield opened


def _job_service(database: Database, home: Path, clock: FakeClock | SystemClock) -> JobService:
    return JobService(database, clock, config.load(home=home))


def _source(job_service: JobService, code: str) -> int:
    content = {"code": code, "config": {"seeds": [f"https://{code}.example/"]}}
    with job_service.write("admin@192.0.2.1") as session:
        return registry.create(session, job_service.clock, registry.read_spec(content)).id


def test_times_are_the_databases_own_where_it_is_another_machine(database: Database, tmp_path: Path) -> None:
    class Wrong(SystemClock):
        def now(self) -> datetime:
            return super().now() - timedelta(days=400)

    job_service = _job_service(database, tmp_path, Wrong())
    source_id = _source(job_service, "ex")

    with database.read() as session:
        made = session.scalars(select(Source.created_at).where(Source.id == source_id)).one()
    off = abs(SystemClock().now() - made)
    assert off < timedelta(minutes=5) if database.engine.dialect.name == "postgresql" else off > timedelta(days=399)
    assert abs(job_service.clock.now() - made) < timedelta(minutes=5)


def test_what_is_done_is_audited_in_the_name_of_who_asked_and_only_there(database: Database, tmp_path: Path) -> None:
    job_service = _job_service(database, tmp_path, FakeClock())
    _source(job_service, "ex")
    with database.write() as session:
        registry.switch(session, job_service.clock, "ex", enabled=False)

    with database.read() as session:
        actors = list(session.scalars(select(AuditEvent.actor).order_by(AuditEvent.id)))
    assert actors[0] == "admin@192.0.2.1"
    assert "192.0.2.1" not in actors[1]


def test_a_row_that_somebody_else_wrote_first_is_a_conflict_and_the_desk_stays_usable(
    database: Database, tmp_path: Path
) -> None:
    clock = FakeClock()
    job_service = _job_service(database, tmp_path, clock)
    row = {
        "code": "ex",
        "name": "x",
        "enabled": True,
        "config": {},
        "created_at": clock.now(),
        "updated_at": clock.now(),
    }

    with pytest.raises(Conflict, match="somebody else"):
        _insert(job_service, [row, row])

    assert _source(job_service, "ex") > 0


def _insert(job_service: JobService, rows: list[dict[str, Any]]) -> None:
    with job_service.write("a") as session:
        session.execute(insert(Source), rows)


def test_a_desk_places_jobs_beside_those_of_other_processes(database: Database, tmp_path: Path) -> None:
    clock = FakeClock()
    desks = [_job_service(database, tmp_path, clock) for _ in range(3)]
    for number in range(12):
        job_service = desks[number % 3]
        with job_service.write("a") as session:
            spec = JobSpec(source_id=_made(session, job_service, number), interval_minutes=1440, schedule_enabled=True)
            job_service.actions.upsert(session, spec)

    with database.read() as session:
        moments = list(session.scalars(select(Job.next_run_at)))
    assert len(set(moments)) == 12
    assert min(moment for moment in moments if moment is not None) >= clock.now()


def _made(session: Session, job_service: JobService, number: int) -> int:
    content = {"code": f"s{number}", "config": {"seeds": [f"https://s{number}.example/"]}}
    return registry.create(session, job_service.clock, registry.read_spec(content)).id


def test_sources_are_synchronised_in_portions_without_missing_any(database: Database, tmp_path: Path) -> None:
    job_service = _job_service(database, tmp_path, FakeClock())
    with job_service.write("a") as session:
        for number in range(25):
            _made(session, job_service, number)

    done = sync_enabled_sources(
        lambda: job_service.write("a"), job_service.clock, job_service.actions, interval_minutes=60
    )

    assert (done.sources_seen, done.created) == (25, 25)
    with database.read() as session:
        assert listing.state_counts(session) == {"scheduled": 25}


def test_what_changed_is_read_once_for_all_the_jobs_that_a_transaction_makes(
    database: Database, tmp_path: Path
) -> None:
    job_service, looks = _job_service(database, tmp_path, FakeClock()), []
    with job_service.write("a") as session:
        for number in range(50):
            _made(session, job_service, number)

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if statement.startswith("SELECT jobs.id, jobs.next_run_at"):
            looks.append(statement)

    event.listen(database.engine, "before_cursor_execute", note)
    done = sync_enabled_sources(
        lambda: job_service.write("a"), job_service.clock, job_service.actions, interval_minutes=60
    )
    event.remove(database.engine, "before_cursor_execute", note)

    assert (done.created, len(looks)) == (50, 3), "one for each portion of twenty"
    with database.read() as session:
        assert len(set(session.scalars(select(Job.next_run_at)))) > 2, "and they are spread all the same"


def test_a_configuration_that_its_backend_could_not_run_is_refused(database: Database, tmp_path: Path) -> None:
    job_service = _job_service(database, tmp_path, FakeClock())
    bad = {"seeds": ["https://ex.example/"], "backend": "zimit", "zimit": {"passthrough_args": ["--nonsense"]}}

    with pytest.raises(Invalid, match="nonsense"):
        job_service.check(read_config(bad))
