"""What the suites of the managing routes share: servers on one database, and parties that schedule and run jobs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
from sqlalchemy import inspect, select

from holdfast import config
from holdfast.api.figures import CountedWork, FrontierCounts
from holdfast.db.engine import Database
from holdfast.db.models import AuditEvent, Job
from holdfast.jobs.endings import FailureCause, RunEnding, RunResult
from holdfast.jobs.states import JobAction, State
from holdfast.wiring.archive import Archive
from holdfast.wiring.frontier import ServedFrontier
from holdfast.wiring.jobs import JobService
from tests.client import Client, asking
from tests.clock import FakeClock
from tests.jobs_bed import Bed, open_bed

CONFIG_FAULT = RunEnding(result=RunResult.FAILED, failure=FailureCause.CONFIG, error="it broke", stack="Traceback")
"""Ends a run that is not tried again."""


class Server:
    """One serving process, and the others that it shares its database with."""

    def __init__(self, bed: Bed, client: Client, archive: Archive, clock: FakeClock) -> None:
        self.bed, self.client, self.archive, self.clock = bed, client, archive, clock

    def forget(self) -> None:
        """Forget what this process knows of jobs, as if it had just been started."""
        archive = self.archive
        state: Any = self.client.app.state  # type: ignore[attr-defined]
        state.job_service = JobService(archive.database, archive.clock, archive.settings)
        # The frontier remembers the ids of domains, which are others after a database was emptied.
        state.frontier.close()
        state.frontier = ServedFrontier(archive.settings, archive.clock)
        state.frontier_counts = FrontierCounts(archive.database, archive.clock)
        state.work.close()
        state.work = CountedWork(archive.database, archive.clock)

    def get(self, path: str, **options: Any) -> httpx.Response:
        """Return the answer to a GET."""
        return self.client.get(path, **options)

    def ask(self, method: str, path: str, **body: Any) -> httpx.Response:
        """Return the answer to a request with a JSON body, or with none."""
        return self.client.request(method, path, **({"json": body} if body else {}))

    def source(self, code: str = "ex", **options: Any) -> int:
        """Make a source over HTTP and return its id."""
        made = self.ask("POST", "/api/v1/sources", code=code, config={"seeds": [f"https://{code}.example/"], **options})
        assert made.status_code == 201, made.text
        return int(made.json()["id"])

    def job(self, code: str = "ex", **plan: Any) -> int:
        """Make a source and its job over HTTP and return the job's id."""
        source_id = self.source(code)
        made = self.ask("POST", "/api/v1/jobs", source_id=source_id, url=f"https://{code}.example/", **plan)
        assert made.status_code == 201, made.text
        return int(made.json()["id"])

    def recurring(self, code: str = "ex", minutes: int = 60) -> int:
        """Make a source with a job at an interval."""
        return self.job(code, interval_minutes=minutes, schedule_enabled=True)

    def row(self, job_id: int) -> dict[str, Any]:
        """Return everything that a job's row holds."""
        job = self.bed.job(job_id)
        return {column.key: getattr(job, column.key) for column in inspect(Job).column_attrs}

    def deeds(self) -> list[tuple[str, str, str]]:
        """Return what was audited: who, what, of whom."""
        with self.bed.database.read() as session:
            rows = session.scalars(select(AuditEvent).order_by(AuditEvent.id))
            return [(row.actor, row.action, row.subject) for row in rows]

    def bring(self, state: State, code: str) -> int:
        """Make a job and take it into a state by legal steps alone."""
        if state is State.PENDING:
            return self.bed.once(code)
        if state in (State.COMPLETED, State.FAILED):
            job_id = self.bed.once(code)
            ending = CONFIG_FAULT if state is State.FAILED else RunEnding(result=RunResult.COMPLETED)
            self.bed.run_once(job_id, ending)
            return job_id
        job_id = self.bed.recurring(code)
        if state is State.RUNNING:
            self.bed.set_next_run(job_id, self.clock.now())
            self.bed.party.scheduler.tick()
            assert self.bed.party.taken().claim.job_id == job_id
        elif state in (State.PAUSED, State.CANCELLED):
            self.bed.party.act(job_id, JobAction.PAUSE if state is State.PAUSED else JobAction.CANCEL)
        else:
            self.bed.set_next_run(job_id, self.clock.now().replace(year=2099))
        return job_id


@contextmanager
def serving(url: str, clock: FakeClock, home: Path, *, servers: int = 1, **api: Any) -> Iterator[list[Server]]:
    """Serve one database with as many processes as are asked for, each with connections of its own."""
    settings = config.load(home=home, database_url=url)
    settings = settings.model_copy(update={"api": settings.api.model_copy(update={"rate_limiting": False, **api})})
    with ExitStack() as stack:
        bed = stack.enter_context(open_bed(url, clock, home))
        running = []
        for number in range(servers):
            database = Database(url)
            stack.callback(database.close)
            archive = Archive(settings=settings, database=database, clock=clock)
            client = stack.enter_context(asking(archive, peer=f"127.0.0.{number + 1}"))
            running.append(Server(bed, client, archive, clock))
        yield running
