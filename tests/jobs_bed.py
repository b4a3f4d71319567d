"""What the suites of jobs share: several parties on one database, with connections of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import select

from holdfast.clock import Clock
from holdfast.config import JobSettings, Settings, Timings
from holdfast.db.engine import Database
from holdfast.db.models import Execution, Hold, Job, JobEvent, Owner
from holdfast.jobs.administration.actions import JobActions, Upserted
from holdfast.jobs.endings import FailureCause, RunEnding, RunResult, StartPage
from holdfast.jobs.leases import ExecutionLease, ExecutionLeases
from holdfast.jobs.scheduler import Scheduler
from holdfast.jobs.settling import RunSettler
from holdfast.jobs.slots import Placement
from holdfast.jobs.specs import JobSpec
from holdfast.jobs.states import JobAction
from holdfast.processes.owners import OPERATING
from holdfast.sources import registry

DONE = RunEnding(result=RunResult.COMPLETED)


def failed(failure: FailureCause = FailureCause.FAILED) -> RunEnding:
    """Return the end of a run that did not work."""
    return RunEnding(result=RunResult.FAILED, failure=failure, error="it broke", stack="Traceback")


def unchanged(content_hash: str = "a") -> RunEnding:
    """Return the end of a good run that saw this at its start page."""
    return RunEnding(result=RunResult.COMPLETED, start=StartPage(content_hash=content_hash))


def holder(database: Database, host: str) -> int:
    """Return the id of the worker on a machine, which is registered at the first call."""
    now = datetime.now(UTC)
    with database.write() as session:
        found = session.scalars(select(Owner).where(Owner.host == host).limit(1)).one_or_none()
        if found is None:
            found = Owner(kind=OPERATING, host=host, pid=1, run_file=f"/{host}/x.run", started_at=now, heartbeat_at=now)
            session.add(found)
            session.flush()
        return found.id


def end_holder(database: Database, host: str) -> None:
    """End the row of the worker on a machine, as the recovery of a dead one does."""
    number = holder(database, host)
    with database.write() as session:
        row = session.get_one(Owner, number)
        row.ended_at = row.heartbeat_at


class Party:
    """One process: a scheduler, a worker's leases and the actions of people."""

    def __init__(self, url: str, clock: Clock, settings: Settings, home: Path, directory: str | None = None) -> None:
        self.database, placement = Database(url), Placement()
        self.placement = placement
        self.scheduler = Scheduler(self.database, clock, settings, placement)
        self.leases = ExecutionLeases(
            self.database, clock, RunSettler(settings, placement), home=home, directory=directory
        )
        self.actions = JobActions(clock, placement)

    def act(self, job_id: int, action: JobAction) -> Job:
        """Do something to a job, in a transaction of its own."""
        with self.database.write() as session:
            return self.actions.act(session, job_id, action)

    def taken(self, owner: str = "w1") -> ExecutionLease:
        """Return a lease; the test fails if nothing waits."""
        lease = self.leases.take(holder(self.database, owner))
        assert lease is not None, "nothing is queued"
        return lease


class Bed:
    """One database and any number of parties on it."""

    def __init__(self, url: str, clock: Clock, home: Path, **settings: Any) -> None:
        self.url, self.clock, self.home = url, clock, home
        names = {one.name.removeprefix("jobs_") for one in fields(Timings) if one.name.startswith("jobs_")}
        self.settings = JobSettings(**{name: value for name, value in settings.items() if name not in names})
        self.timings = Timings(**{f"jobs_{name}": value for name, value in settings.items() if name in names})
        self._parties: list[Party] = []
        self.party = self.another()
        self.database = self.party.database

    @property
    def all_settings(self) -> Settings:
        """The settings of the next party."""
        return Settings(jobs=self.settings, timings=self.timings)

    def another(self, directory: str | None = None) -> Party:
        """Open one more party; with a directory, one of a machine with a data directory of its own."""
        home = self.home if directory is None else self.home / directory
        self._parties.append(Party(self.url, self.clock, self.all_settings, home, directory))
        return self._parties[-1]

    def close(self) -> None:
        """Let go of all connections."""
        for party in self._parties:
            party.database.close()

    def source(self, code: str = "ex", **config: Any) -> int:
        """Make a source and return its id."""
        content = {"code": code, "config": {"seeds": [f"https://{code}.example/"], **config}}
        with self.database.write() as session:
            return registry.create(session, self.clock, registry.read_spec(content)).id

    def upsert(self, source_id: int, **spec: Any) -> Upserted:
        """Make or change the job of a source."""
        with self.database.write() as session:
            return self.party.actions.upsert(session, JobSpec(source_id=source_id, **spec))

    def recurring(self, code: str = "ex", minutes: int = 60, **spec: Any) -> int:
        """Make a source with an hourly job and return the job's id."""
        made = self.upsert(self.source(code), interval_minutes=minutes, schedule_enabled=True, **spec)
        return made.job.id

    def once(self, code: str = "ex", **spec: Any) -> int:
        """Make a source with a job that runs once and return the job's id."""
        return self.upsert(self.source(code), **spec).job.id

    def source_of(self, job_id: int) -> int:
        """Return the source of a job."""
        source_id = self.job(job_id).source_id
        assert source_id is not None
        return source_id

    def job(self, job_id: int) -> Job:
        """Return a job as it is now."""
        with self.database.read() as session:
            return session.get_one(Job, job_id)

    def executions(self, job_id: int) -> list[Execution]:
        """Return a job's executions, oldest first."""
        with self.database.read() as session:
            return list(session.scalars(select(Execution).where(Execution.job_id == job_id).order_by(Execution.id)))

    def holds(self, job_id: int) -> list[tuple[str, str | None]]:
        """Return who held a job and how that ended, oldest first."""
        with self.database.read() as session:
            rows = session.scalars(select(Hold).where(Hold.job_id == job_id).order_by(Hold.id))
            return [(row.owner.rpartition("/")[0], row.ending) for row in rows]

    def events(self, job_id: int) -> list[str]:
        """Return what was told about a job: names and states."""
        with self.database.read() as session:
            rows = session.scalars(select(JobEvent).where(JobEvent.job_id == job_id).order_by(JobEvent.id))
            return [f"{row.name} {row.data.get('status')}" for row in rows]

    def change(self, job_id: int, alter: Callable[[Job], None]) -> None:
        """Change a row behind everybody's back."""
        with self.database.write() as session:
            alter(session.get_one(Job, job_id))

    def set_next_run(self, job_id: int, moment: datetime | None) -> None:
        """Set when a job runs next."""

        def alter(job: Job) -> None:
            job.next_run_at = job.rhythm_at = moment

        self.change(job_id, alter)

    def run_once(self, job_id: int, ending: RunEnding = DONE, *, seconds: float = 1.0) -> None:
        """Let a due job be queued, run and settled; time passes only where the clock can be moved."""
        self.party.scheduler.tick()
        lease = self.party.taken()
        assert lease.claim.job_id == job_id
        getattr(self.clock, "advance", lambda _seconds: None)(seconds)
        self.party.leases.settle(lease, ending)


@contextmanager
def open_bed(url: str, clock: Clock, home: Path, **settings: Any) -> Iterator[Bed]:
    """Open a bed and close it."""
    bed = Bed(url, clock, home, **settings)
    try:
        yield bed
    finally:
        bed.close()
