"""One leased execution on its way: a runner at work on a thread, what it says and hears, and its ending."""

from __future__ import annotations

import threading
from collections.abc import Callable

from holdfast import log
from holdfast.clock import SystemClock
from holdfast.config import JobSettings
from holdfast.db.engine import Database
from holdfast.errors import LeaseLost, Unavailable
from holdfast.jobs.endings import Ending, Result
from holdfast.jobs.journal.logs import LogBook
from holdfast.jobs.leases import Lease, Leases
from holdfast.jobs.retries import Failure
from holdfast.worker.blame import crashed
from holdfast.worker.heart import asked_for
from holdfast.worker.running import Holding, Progress, Runner, Stop

_log = log.get()


class Run:
    """Started with its lease; `is_over` once the runner has come back."""

    def __init__(
        self, lease: Lease, make_runner: Callable[[], Runner], holding: Holding, *, wake: Callable[[], object]
    ) -> None:
        self.lease, self.holding = lease, holding
        self._make_runner, self._wake = make_runner, wake
        self.ending: Ending | None = None
        """None if it is to be continued, or is lost."""
        self.is_lost = False
        """Whether its lease was lost before the runner came back: then what it returned is not heard."""
        self._thread = threading.Thread(target=self._work, name=f"execution {lease.execution_id}", daemon=True)

    def start(self) -> None:
        """Begin."""
        lease = self.lease
        self.holding.note("info", "lifecycle", "run continues" if lease.resumed else "run starts", owner=lease.owner,
                          source=lease.source.code, number=lease.number, epoch=lease.claim.epoch)  # fmt: skip
        self._thread.start()

    @property
    def is_over(self) -> bool:
        """Whether the runner has come back."""
        return not self._thread.is_alive()

    def _work(self) -> None:
        try:
            self.ending = self._make_runner().run(self.lease, self.holding)
        except LeaseLost:
            self.holding.ask(Stop.LOST)
        except Exception as exc:  # what nobody foresaw ends this run, not the worker
            _log.exception("worker.run_failed", action="run", execution=self.lease.execution_id)
            self.ending = crashed(exc, self.lease.output_dir)
        finally:
            self.is_lost = self.holding.stop is Stop.LOST
            self._say_how()
            self._wake()

    def _say_how(self) -> None:
        ending = self.ending
        if ending is None:
            self.holding.note("info", "lifecycle", "run is handed back, to be continued")
        else:
            counts = ending.counts
            if ending.result is Result.FAILED:
                failure = ending.failure or Failure.FAILED
                self.holding.note("error", "error", ending.error or ending.reason or "it failed", failure=failure.value)
            self.holding.note("info", "lifecycle", f"run {ending.result.value}", reason=ending.reason,
                              items_crawled=counts.items_crawled, items_failed=counts.items_failed,
                              cpu_ms=counts.cpu_ms, peak_memory_bytes=counts.peak_memory_bytes)  # fmt: skip
        self.holding.flush()


def holding_for(lease: Lease, database: Database, leases: Leases, settings: JobSettings) -> Holding:
    """Return what a runner holds beside this lease; `leases` is asked from its thread, and never with its clock."""

    def report(progress: Progress) -> None:
        try:
            leases.report(lease, progress.counts, progress.metrics)
        except LeaseLost:
            holding.ask(Stop.LOST)
        except Unavailable as exc:
            _log.warning("worker.database_unavailable", message=str(exc))

    def listen() -> Stop | None:
        try:
            return asked_for(leases.hear(lease))
        except LeaseLost:
            return Stop.LOST

    clock = SystemClock()
    holding = Holding(LogBook(database, clock, lease.execution_id, settings), clock, report=report, listen=listen)
    return holding
