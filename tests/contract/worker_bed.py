"""A worker in the test's own process, with runners of the test's own making: its loop, leases and settling are real."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import select

from holdfast import config
from holdfast.config import Settings, Timings
from holdfast.crawl.stopping import Stops
from holdfast.db.engine import Database
from holdfast.db.models import Execution, Hold, Job, JobEvent, LogLine
from holdfast.jobs.endings import RunEnding, RunResult
from holdfast.jobs.leases import ExecutionLease
from holdfast.jobs.specs import JobSpec
from holdfast.sources import registry
from holdfast.wiring import prepare
from holdfast.wiring.jobs import open_jobs
from holdfast.worker.loop import RunnerTable, WorkerOptions, WorkerReport, work
from holdfast.worker.runner import RunnerHolding

DONE = RunEnding(result=RunResult.COMPLETED, reason="done")
Play = Callable[[ExecutionLease, RunnerHolding], RunEnding | None]


class Actor:
    """A runner that does what a test wrote."""

    def __init__(self, play: Play) -> None:
        self._play = play

    def run(self, lease: ExecutionLease, holding: RunnerHolding) -> RunEnding | None:
        """Play."""
        return self._play(lease, holding)


class WorkerBed:
    """One database, and workers on it."""

    def __init__(self, url: str, home: Path, **groups: Mapping[str, Any]) -> None:
        jobs = {"poll_s": 0.05, "heartbeat_s": 0.1, "stale_s": 20.0, "sweep_s": 0.1, "rest_s": 0.05,
                **groups.pop("jobs", {})}  # fmt: skip
        self.settings: Settings = config.load(
            home=home, database_url=None if url.startswith("sqlite") else url, contact="tests@example.org",
            timings=Timings(**{f"jobs_{name}": value for name, value in jobs.items()}),
            **{"disk": {"free_bytes": 0, "free_percent": 0}, **groups},
        )  # fmt: skip
        prepare(self.settings)
        self.database = Database(self.settings.database)

    def job(self, code: str, **spec: Any) -> int:
        """Make a source and its job, that runs once at once unless the spec says otherwise; return the job's id."""
        with open_jobs(self.settings) as jobs, jobs.database.write() as session:
            content = {"code": code, "config": {"seeds": [f"https://{code}.example/"]}}
            source = registry.create(session, jobs.clock, registry.read_spec(content))
            kind, at = spec.pop("kind", None), spec.pop("at", None)
            wish = JobSpec(source_id=source.id, **spec)
            if kind is None:
                return jobs.actions.upsert(session, wish).job.id
            return jobs.actions.add(session, wish, kind=kind, at=at or jobs.clock.now()).id

    def work(self, play: Play, *, stops: Stops | None = None, **options: Any) -> WorkerReport:
        """Be a worker until nothing is due, or until told to stop; `play` is what every run does."""
        runner_table = RunnerTable({"native": lambda _settings: Actor(play)})
        return work(
            self.settings, WorkerOptions(**{"once": True, "poll_s": 0.05, **options}), stops or Stops(), runner_table
        )

    def beside(self, play: Play, *, stops: Stops, **options: Any) -> threading.Thread:
        """Be a worker on another thread, until `stops` says so."""
        thread = threading.Thread(
            target=lambda: self.work(play, stops=stops, once=False, **options), name="another worker", daemon=True
        )
        thread.start()
        return thread

    def get(self, job_id: int) -> Job:
        """Return a job as it is now."""
        with self.database.read() as session:
            return session.get_one(Job, job_id)

    def runs(self, job_id: int) -> list[Execution]:
        """Return the executions of a job, oldest first."""
        return self._rows(Execution, job_id)

    def events(self, job_id: int) -> list[JobEvent]:
        """Return what was told about a job."""
        return self._rows(JobEvent, job_id)

    def holds(self, job_id: int) -> list[Hold]:
        """Return who held a job."""
        return self._rows(Hold, job_id)

    def lines(self, execution_id: int) -> list[LogLine]:
        """Return the log of an execution."""
        with self.database.read() as session:
            query = select(LogLine).where(LogLine.execution_id == execution_id).order_by(LogLine.id)
            return list(session.scalars(query))

    def _rows(self, model: type[Any], job_id: int) -> list[Any]:
        with self.database.read() as session:
            return list(session.scalars(select(model).where(model.job_id == job_id).order_by(model.id)))
