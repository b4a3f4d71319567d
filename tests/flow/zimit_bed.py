"""Where a worker's zimit runs are tried: real rows, the real `archive-tool`, and the stand-in engine."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import select

from holdfast import config
from holdfast.config import Settings, Timings
from holdfast.db import connect
from holdfast.db.models import Execution, Job, LogLine, Snapshot, WarcFile
from holdfast.index.indexer import index_pending, open_indexer
from holdfast.jobs.endings import Counts, RunEnding
from holdfast.jobs.journal import LogBook
from holdfast.jobs.leases import ExecutionLease
from holdfast.jobs.specs import JobSpec
from holdfast.sources import registry
from holdfast.wiring.jobs import Jobs, open_jobs
from holdfast.worker.runner import RunnerHolding
from holdfast.worker.zimit import ZimitRunner
from holdfast.zimit.main import run_tool
from tests import patience
from tests.flow.zimit.bed import SCALE, Bed, Step
from tests.flow.zimit.forked import Forked
from tests.jobs_bed import holder

COMMAND = f"{sys.executable} -m holdfast.zimit --time-scale {SCALE}"
WHOLE: list[Step] = [{"warc": "a.warc.gz"}, {"stats": [30, 31, 0, 1]}]
"""A crawl that comes to its end."""


class ZimitBed:
    """One installation, one engine, one worker's hands."""

    def __init__(self, root: Path, jobs: Jobs, settings: Settings) -> None:
        self.engine, self.jobs, self.settings = Bed(root / "engine-room"), jobs, settings
        self.told: list[Counts] = []

    def job(self, source: dict[str, Any] | None = None, **zimit: Any) -> int:
        """Make a source that zimit crawls, with a job that is due; `source` are further fields of the former."""
        options = {"skip_final_build": True, **zimit.pop("tool_options", {})}
        seeds = zimit.pop("seeds", ["https://example.org/"])
        content = {**(source or {}), "seeds": seeds, "backend": "zimit", "zimit": {**zimit, "tool_options": options}}
        with self.jobs.database.write() as session:
            made = registry.create(session, self.jobs.clock, registry.read_spec({"code": "ex", "config": content}))
            return self.jobs.actions.upsert(session, JobSpec(source_id=made.id)).job.id

    def take(self) -> ExecutionLease:
        """Let what is due be queued, and take it."""
        self.jobs.scheduler.tick()
        lease = self.jobs.leases.take(holder(self.jobs.database, "w1"))
        assert lease is not None, "nothing is queued"
        return lease

    def holding(self, lease: ExecutionLease) -> RunnerHolding:
        """Return what a runner of this lease holds."""
        book = LogBook(self.jobs.database, self.jobs.clock, lease.execution_id, self.settings.jobs)
        return RunnerHolding(book, self.jobs.clock, report=lambda counts, _metrics: self.told.append(counts))

    def run(self, lease: ExecutionLease, holding: RunnerHolding | None = None) -> RunEnding | None:
        """Run an execution as a worker would."""
        holding = holding or self.holding(lease)
        try:
            return ZimitRunner(self.settings, self.engine.variables).run(lease, holding)
        finally:
            holding.flush()

    def crawl_unseen(self, lease: ExecutionLease) -> None:
        """Let the tool crawl a lease's directory while nobody is there; much cheaper than a start of Python."""
        said = self.engine.root / f"unseen-{lease.execution_id}"
        said.mkdir()
        lease.output_dir.mkdir(parents=True)
        words = ["--seeds", "https://example.org/", "--name", "ex", "--output-dir", str(lease.output_dir),
                 "--skip-final-build", "--time-scale", SCALE]  # fmt: skip
        tool = Forked(run_tool, words, self.engine.variables, said)
        assert tool.wait(patience.deadline(60)), "the tool did not end"
        assert tool.returncode == 0, tool.said()

    def settled(self, lease: ExecutionLease, holding: RunnerHolding | None = None) -> str:
        """Run an execution and settle it; return what its job is then."""
        ending = self.run(lease, holding)
        assert ending is not None, "it was handed back"
        return self.jobs.leases.settle(lease, ending).value

    @contextmanager
    def running(self, lease: ExecutionLease) -> Iterator[tuple[RunnerHolding, list[RunEnding | None]]]:
        """Run an execution on a thread, as a worker does; it must end with the block."""
        holding, ends = self.holding(lease), list[RunEnding | None]()
        thread = threading.Thread(target=lambda: ends.append(self.run(lease, holding)))
        thread.start()
        try:
            yield holding, ends
        finally:
            thread.join(patience.deadline(60))
            assert not thread.is_alive()

    def index(self) -> None:
        """Read every file that waits."""
        with (
            closing(connect(self.settings.database)) as raw_db,
            open_indexer(raw_db, self.jobs.clock, self.settings.home) as indexer,
        ):
            index_pending(indexer, raw_db, self.jobs.clock)

    def execution(self, execution_id: int) -> Execution:
        """Return an execution as it is now."""
        with self.jobs.database.read() as session:
            return session.get_one(Execution, execution_id)

    def row(self, job_id: int) -> Job:
        """Return a job as it is now."""
        with self.jobs.database.read() as session:
            return session.get_one(Job, job_id)

    def files(self) -> list[WarcFile]:
        """Return the registered files."""
        with self.jobs.database.read() as session:
            return list(session.scalars(select(WarcFile).order_by(WarcFile.id)))

    def snapshots(self) -> list[Snapshot]:
        """Return the captures."""
        with self.jobs.database.read() as session:
            return list(session.scalars(select(Snapshot).order_by(Snapshot.id)))

    def lines(self, execution_id: int) -> list[str]:
        """Return the lines of an execution's log."""
        with self.jobs.database.read() as session:
            rows = session.scalars(select(LogLine).where(LogLine.execution_id == execution_id).order_by(LogLine.id))
            return [row.message for row in rows]

    def processes(self) -> list[int]:
        """Return every process that works below this bed: tools, engines, containers."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid() and self._is_ours(entry):
                found.append(int(entry.name))
        return found

    def _is_ours(self, entry: Path) -> bool:
        try:
            words = (entry / "cmdline").read_bytes()
            return os.fsencode(self.settings.home) in words and b" Z " not in (entry / "stat").read_bytes()
        except OSError:
            return False

    def clear(self) -> list[int]:
        """End what is left after a moment, and return it: there should be nothing."""
        deadline = time.monotonic() + patience.deadline(10)
        while (left := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.02)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        return left


@contextmanager
def open_zimit_bed(
    root: Path,
    database_url: str | None,
    *,
    contact: str | None = "t@example.org",
    lease_s: float = 60.0,
    **zimit: Any,
) -> Iterator[ZimitBed]:
    """Open a bed; at its end nothing may run any more. Without a contact our own crawler refuses at once."""
    settings = config.load(
        home=root / "home", database_url=database_url, zimit={"command": COMMAND, **zimit}, contact=contact,
        allow_networks="127.0.0.0/8", timings=Timings(lease_seconds=lease_s),
    )  # fmt: skip
    with open_jobs(settings) as jobs:
        bed = ZimitBed(root, jobs, settings)
        yield bed
        left = bed.clear()
        assert left == [], "something was left running"
