"""How the scheduler grows: `python -m bench.jobs [--jobs N ...] [--postgres URL]`; an empty database, which is filled.

Prints one JSON object a line, in milliseconds (median, and the best): `idle` is a tick with nothing due, `full` one
that queues a hundred, `sweep` one that looks for stale locks and counts the metrics too, `place` the choice of a
slot with the look for what changed since the last, in an open session, `slot` that choice alone, `take` a worker's
lease, `upsert` a job changed by hand. `cpu_ms` is this process's own time.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

from sqlalchemy import insert, text, update

from holdfast.config import Settings
from holdfast.db.engine import Database
from holdfast.db.migrate import upgrade
from holdfast.db.models import Execution, Job, Owner, Source
from holdfast.jobs.administration.actions import JobActions
from holdfast.jobs.leases import ExecutionLeases
from holdfast.jobs.scheduler import Scheduler
from holdfast.jobs.settling import RunSettler
from holdfast.jobs.slots import Placement
from holdfast.jobs.specs import JobSpec

NOW = datetime(2026, 9, 1, tzinfo=UTC)
ROUNDS = 20
DUE = 100


class StillClock:
    """A clock that the benchmark sets."""

    def __init__(self) -> None:
        self.at, self.seconds = NOW, 0.0

    def now(self) -> datetime:
        """Return the moment that was set."""
        return self.at

    def monotonic(self) -> float:
        """Return the seconds that were set."""
        return self.seconds


def fill(database: Database, jobs: int) -> None:
    """Insert sources with one recurring job each, spread over a day, and a history of three runs."""
    sources = [{"code": f"s{n}", "name": f"s{n}", "base_url": f"https://s{n}.example/", "enabled": True,
                "config": {"seeds": [f"https://s{n}.example/"]}, "created_at": NOW, "updated_at": NOW}
               for n in range(jobs)]  # fmt: skip
    with database.write() as session:
        ids = list(session.scalars(insert(Source).returning(Source.id), sources))
        rows: list[dict[str, Any]] = [
            {"source_id": source_id, "kind": "crawl", "fingerprint": "", "config": {}, "created_at": NOW,
             "updated_at": NOW - timedelta(days=1), "state": "scheduled", "interval_minutes": 1440,
             "schedule_enabled": True, "url": "https://x.example/", "details": {},
             "next_run_at": NOW + timedelta(minutes=1 + 1440 * n / jobs)}
            for n, source_id in enumerate(ids)
        ]  # fmt: skip
        made = list(session.scalars(insert(Job).returning(Job.id), rows))
        session.execute(insert(Execution), [
            {"job_id": job_id, "number": number, "state": "completed", "config": {}, "output_dir": "",
             "created_at": NOW, "finished_at": NOW, "run_seconds": 1.0, "due_at": NOW - timedelta(days=number),
             "metrics": {}, "artifacts": {}}
            for job_id in made for number in (1, 2, 3)
        ])  # fmt: skip


def timed(call: Callable[[], object], *, before: Callable[[], object] = lambda: None) -> list[tuple[float, float]]:
    """Return how long each of some calls took, in milliseconds of the wall and of our own; the first one warms up."""
    took = []
    for _ in range(ROUNDS + 1):
        before()
        began, own = time.perf_counter(), time.process_time()
        call()
        took.append(((time.perf_counter() - began) * 1000, (time.process_time() - own) * 1000))
    return took[1:]


def measure(url: str, jobs: int) -> dict[str, list[tuple[float, float]]]:
    """Fill an empty database and measure the scheduler on it."""
    upgrade(url)
    clock = StillClock()
    with closing(Database(url, statement_s=None)) as database, tempfile.TemporaryDirectory() as folder:
        fill(database, jobs)
        with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("ANALYZE"))  # as PostgreSQL does by itself a minute later
        placement, settings = Placement(), Settings()
        scheduler = Scheduler(database, clock, settings, placement)
        leases = ExecutionLeases(database, clock, RunSettler(settings, placement), home=Path(folder))
        actions = JobActions(clock, placement)
        scheduler.start()
        scheduler.tick()
        with database.write() as session:
            owner = Owner(kind="worker", host="bench", pid=1, run_file="/", started_at=clock.at, heartbeat_at=clock.at)
            session.add(owner)
            session.flush()
            worker = owner.id

        def make_due() -> None:
            with database.write() as session:
                session.execute(update(Execution).values(state="completed").where(Execution.state == "queued"))
                clock.at += timedelta(seconds=1)
                session.execute(
                    update(Job).where(Job.id <= min(DUE, jobs)).values(next_run_at=clock.at, state="scheduled")
                )

        def change() -> None:
            with database.write() as session:
                actions.upsert(session, JobSpec(source_id=jobs, interval_minutes=1440, schedule_enabled=True))

        def later() -> None:
            clock.seconds += 1000

        figures = {"idle": timed(scheduler.tick), "sweep": timed(scheduler.tick, before=later)}
        figures["full"] = timed(scheduler.tick, before=make_due)
        figures["take"] = timed(lambda: leases.take(worker))
        clock.at += timedelta(minutes=1)
        with database.read() as session:
            figures["place"] = timed(lambda: placement.place(session, timedelta(days=1), now=clock.at))
        figures["slot"] = timed(lambda: placement.table.place(timedelta(days=1), now=clock.at))
        figures["upsert"] = timed(change)
    return figures


def main() -> None:
    """Measure each size on SQLite, and on PostgreSQL if an address is given (with {jobs} in the database's name)."""
    parser = argparse.ArgumentParser(prog="python -m bench.jobs", description=__doc__)
    parser.add_argument("--jobs", type=int, nargs="*", default=[100, 10_000])
    parser.add_argument("--postgres", help="address of an empty database for each size, with {jobs} in it")
    options = parser.parse_args()
    for jobs in options.jobs:
        with tempfile.TemporaryDirectory() as folder:
            urls = {"sqlite": f"sqlite:///{folder}/holdfast.db"}
            if options.postgres:
                urls["postgresql"] = options.postgres.replace("{jobs}", str(jobs))
            for kind, url in urls.items():
                for name, took in measure(url, jobs).items():
                    wall, own = zip(*took, strict=True)
                    print(json.dumps({
                        "database": kind, "jobs": jobs, "name": name, "ms": round(median(wall), 3),
                        "best_ms": round(min(wall), 3), "cpu_ms": round(median(own), 3),
                    }), flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
