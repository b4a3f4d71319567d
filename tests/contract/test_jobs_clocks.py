"""Who held a job when is told by the server's clock alone, read after locking: two holds never overlap."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import select, text

from holdfast.clock import Clock, SystemClock, from_micros, to_micros
from holdfast.config import Settings
from holdfast.db import connect
from holdfast.db.engine import Database, SessionClock
from holdfast.db.migrate import upgrade
from holdfast.db.models import Hold
from holdfast.db.raw import DatabaseClock, RawDatabase
from holdfast.jobs.specs import JobSpec
from holdfast.sources import registry
from tests.jobs_bed import DONE, Party, holder

pytestmark = pytest.mark.postgres


class Misread:
    """A connection whose reading of the server's clock is wrong, as that of a process is which was frozen in it."""

    def __init__(self, raw_db: RawDatabase, wrong_s: float) -> None:
        self._raw_db, self._wrong = raw_db, timedelta(seconds=wrong_s)
        self.dialect, self.generation = raw_db.dialect, raw_db.generation
        self.write, self.read, self.close = raw_db.write, raw_db.read, raw_db.close

    def now_micros(self, machine: Clock) -> int:
        return to_micros(from_micros(self._raw_db.now_micros(machine)) + self._wrong)


@pytest.fixture
def url(postgres_url: str) -> str:
    """A migrated database on a server."""
    upgrade(postgres_url)
    return postgres_url


@contextmanager
def _party(url: str, home: Path, clock: Clock) -> Iterator[Party]:
    party = Party(url, clock, Settings(), home)
    try:
        yield party
    finally:
        party.database.close()


@contextmanager
def _misreading(url: str, home: Path, wrong_s: float) -> Iterator[Party]:
    with closing(connect(url)) as raw_db, _party(url, home, DatabaseClock(Misread(raw_db, wrong_s))) as party:
        yield party


def _queue(party: Party, *codes: str) -> None:
    with party.database.write() as session:
        for code in codes:
            spec = registry.read_spec({"code": code, "config": {"seeds": [f"https://{code}.example/"]}})
            source = registry.create(session, SystemClock(), spec)
            job = party.actions.upsert(session, JobSpec(source_id=source.id)).job
            job.next_run_at = datetime(2020, 1, 1, tzinfo=UTC)
    assert len(party.scheduler.tick().queued) == len(codes)


def _holds(database: Database) -> list[tuple[datetime, datetime | None]]:
    with database.read() as session:
        return [(one.acquired_at, one.ended_at) for one in session.scalars(select(Hold).order_by(Hold.epoch))]


def test_processes_that_misread_the_clock_agree_on_who_held_a_job_when(url: str, tmp_path: Path) -> None:
    with _misreading(url, tmp_path, 5.0) as ahead, _misreading(url, tmp_path, -5.0) as behind:
        _queue(ahead, "ex")
        for party in (ahead, behind, ahead):
            party.leases.release(party.taken())
        behind.leases.settle(behind.taken(), DONE)
        holds = _holds(ahead.database)

    moments = [moment for hold in holds for moment in hold]
    assert len(holds) == 4
    assert moments == sorted(moments, key=lambda moment: moment or datetime.max)


def test_an_execution_that_another_worker_is_taking_is_left_to_it_without_a_wait(url: str, tmp_path: Path) -> None:
    with _party(url, tmp_path, SessionClock(SystemClock())) as party, closing(Database(url)) as other:
        _queue(party, "first", "second")
        with other.write() as session:
            session.execute(text("SELECT id FROM jobs WHERE id = 1 FOR UPDATE"))
            second, nothing = (
                party.leases.take(holder(party.database, "w1")),
                party.leases.take(holder(party.database, "w2")),
            )
        first = party.leases.take(holder(party.database, "w1"))

    assert (second and second.source.code, nothing, first and first.source.code) == ("second", None, "first")
