"""A data directory with sources and jobs, and real workers and schedulers on it, for whom a minute is a second."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import select

from holdfast import config
from holdfast.db.engine import Database
from holdfast.db.models import Execution, Hold, Job, JobEvent
from holdfast.jobs.specs import JobSpec
from holdfast.jobs.states import Action
from holdfast.sources import registry
from holdfast.wiring.jobs import Jobs, open_jobs
from tests.flow.crawler import FAST, Crawler
from tests.site.log import Entry

QUICK = {
    "HOLDFAST_ALLOW_NETWORKS": "127.0.0.0/8", "HOLDFAST_JOBS_POLL_S": "0.2", "HOLDFAST_JOBS_HEARTBEAT_S": "0.5",
    "HOLDFAST_JOBS_STALE_S": "3", "HOLDFAST_JOBS_SWEEP_S": "0.5", "HOLDFAST_JOBS_TAKEOVERS": "1000",
    "HOLDFAST_WORKER_REST_S": "0.2",
}  # fmt: skip
STALE_S = 3.0


@dataclass(slots=True)
class Plant:
    """One installation and the processes that a test has started on it."""

    crawler: Crawler
    settings: dict[str, str] = field(default_factory=dict)
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.crawler.environment.update({**QUICK, **self.settings})

    @contextmanager
    def jobs(self) -> Iterator[Jobs]:
        """Open the jobs of this installation in the test's own process."""
        variables = {**FAST, **self.crawler.environment}
        names = {name.removeprefix("HOLDFAST_").lower(): value for name, value in variables.items()}
        given = {name: value for name, value in names.items() if name in ("contact", "allow_networks")}
        settings = config.load(home=self.crawler.home, database_url=self.crawler.database_url, **given)
        with open_jobs(settings) as jobs:
            yield jobs

    def source(self, code: str, *seeds: str, **settings: Any) -> int:
        """Make a source and return its id."""
        content = {"code": code, "config": {"seeds": list(seeds), "delay_s": 0.05, **settings}}
        with self.jobs() as jobs, jobs.database.write() as session:
            return registry.create(session, jobs.clock, registry.read_spec(content)).id

    def job(self, code: str, *seeds: str, spec: dict[str, Any] | None = None, **settings: Any) -> int:
        """Make a source with a job that runs once, and return the job's id; `spec` makes it another job."""
        source_id = self.source(code, *seeds, **settings)
        with self.jobs() as jobs, jobs.database.write() as session:
            return jobs.board.upsert(session, JobSpec(source_id=source_id, **(spec or {}))).job.id

    def act(self, job_id: int, action: Action) -> None:
        """Do something to a job."""
        with self.jobs() as jobs, jobs.database.write() as session:
            jobs.board.act(session, job_id, action)

    def start(self, command: str = "start-worker", *arguments: str, **variables: str) -> subprocess.Popen[str]:
        """Start a worker or a scheduler in a process group of its own."""
        crawler = self.crawler
        log = (crawler.home.parent / "workers.log").open("a")
        with log:
            process = subprocess.Popen(
                crawler.command(command, *arguments), text=True, stdout=subprocess.PIPE, stderr=log,
                env={**crawler.variables, **variables}, start_new_session=True,
            )  # fmt: skip
        self.processes.append(process)
        return process

    def once(self, *arguments: str, timeout_s: float = 60.0) -> dict[str, Any]:
        """Let a worker run what is due, to its end, and return its report; one that fails fails the test."""
        process = self.start("start-worker", "--once", "--json", *arguments)
        return self.finish(process, timeout_s=timeout_s)

    def finish(self, process: subprocess.Popen[str], *, timeout_s: float = 60.0) -> dict[str, Any]:
        """Wait for a worker with `--json` and return its report."""
        said, _ = process.communicate(timeout=timeout_s)
        assert process.returncode == 0, f"exit {process.returncode}: {self.log()[-4000:]}"
        report: dict[str, Any] = json.loads(said.splitlines()[-1])
        return report

    def log(self) -> str:
        """Return what workers and schedulers have logged."""
        path = self.crawler.home.parent / "workers.log"
        return path.read_text() if path.exists() else ""

    def end(self) -> None:
        """End every process that a test left running, with its crawl processes."""
        for process in self.processes:
            if process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
            if process.stdout is not None:
                process.stdout.close()
        for pid in self.crawler.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def database(self) -> Database:
        """Open the database."""
        url = self.crawler.database_url or f"sqlite:///{(self.crawler.home / 'holdfast.db').resolve()}"
        return Database(url)

    def all(self, model: type[Any]) -> list[Any]:
        """Return all rows of one kind, by id."""
        database = self.database()
        try:
            with database.read() as session:
                return list(session.scalars(select(model).order_by(model.id)))
        finally:
            database.close()

    def executions(self) -> list[Execution]:
        """Return all executions, oldest first."""
        return self.all(Execution)

    def a_job(self, job_id: int) -> Job:
        """Return a job as it is now."""
        rows: list[Job] = self.all(Job)
        return next(job for job in rows if job.id == job_id)

    def events(self, job_id: int) -> list[JobEvent]:
        """Return what was told about a job."""
        return [event for event in self.all(JobEvent) if event.job_id == job_id]

    def asked_after_settled(self, entries: Sequence[Entry]) -> list[str]:
        """Return the pages that the site was asked for although an attempt on them had been settled well before."""
        wall = time.time() - time.monotonic()
        last: dict[str, float] = {}
        for entry in entries:
            last[f"{entry.host}{entry.path}"] = max(entry.start, last.get(f"{entry.host}{entry.path}", 0.0))
        with closing(self.crawler.hot()) as hot, hot.read() as tx:
            rows = tx.execute(
                "SELECT p.url, min(c.completed_at) FROM page_crawls c JOIN pages p ON p.id = c.page_id"
                " WHERE c.outcome = 'success' GROUP BY p.url, c.execution_id"
            )
        found = []
        for url, completed_at in rows:
            parts = urlsplit(url)
            asked = last.get(f"{parts.hostname}{parts.path}", 0.0)
            if asked + wall > completed_at / 1e6 + 0.05:
                found.append(url)
        return found

    def overlaps(self) -> list[str]:
        """Return where the history shows two owners of one job at once, or an end without its owner."""
        holds: dict[int, list[Hold]] = defaultdict(list)
        for hold in self.all(Hold):
            holds[hold.job_id].append(hold)
        problems = []
        for job_id, row in holds.items():
            row.sort(key=lambda hold: hold.epoch)
            for earlier, later in pairwise(row):
                if earlier.ended_at is None or earlier.ended_at > later.acquired_at:
                    problems.append(f"job {job_id}: {earlier.owner} and {later.owner} held it at once")
        settled = [hold.execution_id for hold in self.all(Hold) if hold.ending == "settled"]
        problems += [f"execution {one} was settled twice" for one in set(settled) if settled.count(one) > 1]
        return problems
