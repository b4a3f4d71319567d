"""A data directory with sources and jobs, and real workers and schedulers on it, for whom a minute is a second."""

from __future__ import annotations

import gc
import json
import logging
import os
import signal
import subprocess
import sys
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import select

from holdfast import config
from holdfast.cli.worker import schedule, start
from holdfast.db.engine import Database
from holdfast.db.models import Execution, Hold, Job, JobEvent
from holdfast.jobs.specs import JobSpec
from holdfast.jobs.states import JobAction
from holdfast.sources import registry
from holdfast.wiring.jobs import Jobs, open_jobs
from tests import forked, patience
from tests.flow.crawler import Crawler
from tests.site.log import Entry

_fork = get_context("fork")
STALE_S = patience.period(3.0)
QUICK = {
    "HOLDFAST_ALLOW_NETWORKS": "127.0.0.0/8", "HOLDFAST_TIMINGS_JOBS_POLL_S": "0.2",
    "HOLDFAST_TIMINGS_JOBS_HEARTBEAT_S": "0.5",
    "HOLDFAST_TIMINGS_JOBS_STALE_S": str(STALE_S), "HOLDFAST_TIMINGS_JOBS_SWEEP_S": "0.5",
    "HOLDFAST_TIMINGS_JOBS_TAKEOVERS": "1000",
    "HOLDFAST_TIMINGS_JOBS_REST_S": "0.2",
}  # fmt: skip


@dataclass(slots=True)
class Plant:
    """One installation and the processes that a test has started on it."""

    crawler: Crawler
    settings: dict[str, str] = field(default_factory=dict)
    processes: list[subprocess.Popen[str]] = field(default_factory=list)
    forks: list[BaseProcess] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.crawler.environment.update({**QUICK, **self.settings})

    @contextmanager
    def jobs(self) -> Iterator[Jobs]:
        """Open the jobs of this installation in the test's own process."""
        with open_jobs(config.load(home=self.crawler.home, database_url=self.crawler.database_url)) as jobs:
            yield jobs

    def fork(self, role: Callable[[Plant], None]) -> BaseProcess:
        """Start a worker or a scheduler as a fork of this process: the same code, without the second of its start."""
        process = _fork.Process(target=_play, args=(self, role), daemon=True)
        process.start()
        self.forks.append(process)
        return process

    def source(self, code: str, *seeds: str, **settings: Any) -> int:
        """Make a source and return its id."""
        content = {"code": code, "config": {"seeds": list(seeds), "delay_s": 0.05, **settings}}
        with self.jobs() as jobs, jobs.database.write() as session:
            return registry.create(session, jobs.clock, registry.read_spec(content)).id

    def job(self, code: str, *seeds: str, spec: dict[str, Any] | None = None, **settings: Any) -> int:
        """Make a source with a job that runs once, and return the job's id; `spec` makes it another job."""
        source_id = self.source(code, *seeds, **settings)
        with self.jobs() as jobs, jobs.database.write() as session:
            return jobs.actions.upsert(session, JobSpec(source_id=source_id, **(spec or {}))).job.id

    def act(self, job_id: int, action: JobAction) -> None:
        """Do something to a job."""
        with self.jobs() as jobs, jobs.database.write() as session:
            jobs.actions.act(session, job_id, action)

    def start(self, command: str = "start-worker", *arguments: str, **variables: str) -> subprocess.Popen[str]:
        """Start a worker or a scheduler in a process group of its own."""
        crawler = self.crawler
        log = (crawler.home.parent / "workers.log").open("a")
        with log:
            process = forked.Popen(
                crawler.command(command, *arguments), text=True, stdout=subprocess.PIPE, stderr=log,
                env={**crawler.variables, **variables}, start_new_session=True,
            )  # fmt: skip
        self.processes.append(process)
        return process

    def worker(self, *, once: bool = False, concurrency: int = 1) -> BaseProcess:
        """Start a worker with a scheduler of its own, as a fork."""

        def play(_plant: Plant) -> None:
            start(config.load(), once=once, concurrency=concurrency)

        return self.fork(play)

    def due(self, job_id: int) -> None:
        """Have a job run now that waits for its turn."""
        with self.jobs() as jobs, jobs.database.write() as session:
            session.get_one(Job, job_id).next_run_at = jobs.clock.now()

    def once(self) -> None:
        """Let a worker run what is due, to its end; one that fails or hangs fails the test."""
        worker = self.worker(once=True)
        worker.join(patience.deadline(60))
        assert worker.exitcode == 0, f"exit {worker.exitcode}: {self.log()[-4000:]}"

    def once_by_command(self) -> dict[str, Any]:
        """Do the same as people do, and return the report."""
        return self.finish(self.start("start-worker", "--once", "--json"))

    def finish(self, process: subprocess.Popen[str], *, timeout_s: float = 60.0) -> dict[str, Any]:
        """Wait for a worker with `--json` and return its report."""
        said, _ = process.communicate(timeout=patience.deadline(timeout_s))
        assert process.returncode == 0, f"exit {process.returncode}: {self.log()[-4000:]}"
        report: dict[str, Any] = json.loads(said.splitlines()[-1])
        return report

    def log(self) -> str:
        """Return what workers and schedulers have logged."""
        path = self.crawler.home.parent / "workers.log"
        return path.read_text() if path.exists() else ""

    def end(self) -> None:
        """End every process that a test left running, with its crawl processes."""
        for fork in self.forks:
            if fork.is_alive():
                fork.kill()
            fork.join()
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

    def holders(self) -> set[int]:
        """Return the process numbers of the workers that hold jobs now."""
        with closing(self.crawler.raw_db()) as raw_db, raw_db.read() as tx:
            pids = tx.execute(
                "SELECT o.pid FROM owners o JOIN jobs j ON j.lock_owner_id = o.id"
                " WHERE j.lock_token IS NOT NULL AND o.ended_at IS NULL"
            )
        return {pid for (pid,) in pids}

    def asked_after_settled(self, entries: Sequence[Entry]) -> list[str]:
        """Return the pages that the site was asked for although an attempt on them had been settled well before."""
        wall = time.time() - time.monotonic()
        last: dict[str, float] = {}
        for entry in entries:
            last[f"{entry.host}{entry.path}"] = max(entry.start, last.get(f"{entry.host}{entry.path}", 0.0))
        with closing(self.crawler.raw_db()) as raw_db, raw_db.read() as tx:
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


def _play(plant: Plant, role: Callable[[Plant], None]) -> None:
    """Be another process of an installation: its environment, its log, and nothing of the test's own."""
    for name in [name for name in os.environ if name.startswith("HOLDFAST_")]:
        del os.environ[name]
    os.environ.update(plant.crawler.variables | {"HOLDFAST_HOME": str(plant.crawler.home)})
    log_file = os.open(plant.crawler.home.parent / "workers.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.dup2(log_file, 1)
    os.dup2(log_file, 2)
    # pytest hands log lines to a file of its own, too. Its descriptor is closed below, and our database may get the
    # same number next: the lines would be written into it.
    for logger in (logging.getLogger(), logging.getLogger("holdfast")):
        logger.handlers[:] = [handler for handler in logger.handlers if not isinstance(handler, logging.FileHandler)]
    _let_go_of_the_parents_files()
    sys.stdout, sys.stderr = os.fdopen(1, "w", buffering=1), os.fdopen(2, "w", buffering=1)
    try:
        role(plant)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def _let_go_of_the_parents_files() -> None:
    """Close what the test's own process has open: the site ends when no process holds its standard input any more.

    The numbers stay taken. An object of the parent that is collected here later closes its number, which would be a
    file of our database by then ("disk I/O error").
    """
    gc.freeze()
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3, 1024):
        with suppress(OSError):  # not open
            os.fstat(number)
            if number != nothing:
                os.dup2(nothing, number, inheritable=False)


def be_worker(_plant: Plant) -> None:
    """Do what `holdfast start-worker --no-scheduler --concurrency 2` does."""
    start(config.load(), concurrency=2, scheduler=False)


def be_scheduler(_plant: Plant) -> None:
    """Do what `holdfast start-scheduler` does."""
    schedule(poll_interval=None, home=None)
