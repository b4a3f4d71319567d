"""Interface between a worker and the runner of an execution: lease in, ending out, stop reasons in between.

A runner never writes a job or an execution itself: its ending is settled under the lease, or not at all.
"""

from __future__ import annotations

import errno
import math
import os
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import IntEnum
from pathlib import Path
from typing import Any, Final, Protocol

from holdfast import log
from holdfast.clock import Clock, SystemClock
from holdfast.config import JobSettings
from holdfast.db.audit_events import append_event
from holdfast.db.engine import Database
from holdfast.db.raw import DatabaseDamaged, Transaction
from holdfast.errors import Invalid, LeaseLost, Unavailable
from holdfast.jobs.endings import Counts, FailureCause, RunEnding, RunResult
from holdfast.jobs.journal import LogBook
from holdfast.jobs.leases import ExecutionLease, ExecutionLeases, LeaseUpdate
from holdfast.sources.config import SourceConfig
from holdfast.sources.plan import CrawlPlan
from holdfast.zimit import logs
from holdfast.zimit.outcome import is_storage_errno
from holdfast.zimit.output_directory import json_object

OPERATION: Final = "operation"
"""The key of the runner of operations, whatever their kind."""
_log = log.get()
# Report progress every ten items or five seconds, and only if something changed.
_ITEMS = 10
_EVERY_S = 5.0


# Ordered by strength: a worker that stops now overrides an operator's request to finish, and a lost lease overrides
# both.
class StopReason(IntEnum):
    """Why a run must end; a later reason in this list overrides an earlier one."""

    DRAIN = 1
    """The worker is ending: finish running requests, seal, and return None; another worker continues."""
    FINISH = 2
    """A person stopped this run: seal, and return a completed ending with reason `stopped`."""
    CANCEL = 3
    """Its job was cancelled: seal, preserve the captures, return a cancelled ending."""
    DISCARD = 4
    """A person discarded this run: delete its files, return a cancelled ending."""
    NOW = 5
    """The worker is ending immediately: release everything without waiting, return None."""
    LOST = 6
    """Another worker holds the execution: stop immediately and write nothing; the result is ignored."""


LEAVING = (StopReason.DRAIN, StopReason.NOW, StopReason.LOST)
"""Reasons after which this worker is done with a run; another may continue it."""


Report = Callable[[Counts, dict[str, Any]], None]
"""Stores counts and metrics so far, in the format of `RunEnding.metrics`."""


class RunnerHolding:
    """Connection of a runner to its worker: the stop reason, the log, and progress reports. Thread-safe."""

    def __init__(
        self,
        book: LogBook,
        clock: Clock,
        *,
        report: Report,
        listen: Callable[[], StopReason | None] = lambda: None,
    ) -> None:
        self._book, self._clock, self._report, self._listen = book, clock, report, listen
        self._lock = threading.Lock()
        self._changed = threading.Condition()
        self._stop: StopReason | None = None
        self._good_until = math.inf
        self._reported: tuple[Counts, dict[str, Any]] = Counts(), {}
        self._reported_at = clock.monotonic()
        self.rest_s = 0.0
        """Seconds until a released execution may be leased again; set by the runner."""
        self.has_died = False
        """Whether the run is released because its process died; set by the runner."""
        self.is_paused = False
        """Whether an operator has paused the run, as last read from its row."""

    @property
    def stop(self) -> StopReason | None:
        """The strongest reason so far, None while the run may continue."""
        # The run checks its lease's expiry itself, in case the heartbeat's thread is blocked.
        if self._stop is not StopReason.LOST and self._clock.monotonic() > self._good_until:
            # Another worker may hold the lease by now; without a database we could not find out.
            self.ask(StopReason.LOST)
        return self._stop

    def good_until(self, moment: float) -> None:
        """Set until when, by the monotonic clock, the lease is valid without another renewal."""
        self._good_until = moment

    def ask(self, word: StopReason) -> None:
        """Request the run to end; a weaker reason than before changes nothing."""
        with self._changed:
            # Keep the stronger reason: polling again must not turn `NOW` into `DRAIN`.
            if self._stop is None or word > self._stop:
                self._stop = word
                self._changed.notify_all()

    def poll_signals(self) -> StopReason | None:
        """Return the stop reason after reading the rows now, so that a request of a second ago is not missed."""
        with suppress(Unavailable):
            if (word := self._listen()) is not None:
                self.ask(word)
        return self.stop

    def wait(self, seconds: float) -> StopReason | None:
        """Wait up to `seconds`, or until a stronger stop reason arrives; return the reason."""
        with self._changed:
            # Only a new reason ends the wait: an old one would make it a busy loop.
            before = self._stop
            self._changed.wait_for(lambda: self._stop is not before, timeout=seconds)
        return self.stop

    def note(self, level: str, category: str, message: str, **fields: Any) -> None:
        """Write a line of the execution's log; `category` is the part after `crawler.`, such as `lifecycle`."""
        # If the database is unavailable, the line waits for the next flush.
        with self._lock, suppress(Unavailable):
            # After the loss another worker writes this log: our lines would mix with its lines.
            if self._stop is not StopReason.LOST:
                self._book.write(level, f"crawler.{category}", message, **fields)

    def flush(self) -> None:
        """Make the logged lines readable; while the database is unavailable they stay buffered."""
        with self._lock, suppress(Unavailable):
            if self._stop is not StopReason.LOST:
                self._book.flush()

    def progress(self, counts: Counts, metrics: dict[str, Any] | None = None) -> None:
        """Report progress, as often as you like: it is stored every ten items or five seconds."""
        now, metrics = self._clock.monotonic(), metrics or {}
        with self._lock:
            before = self._reported[0]
            same = counts.items == before.items and metrics == self._reported[1]
            # Changes of time and memory alone are not reported.
            if same or self._stop is StopReason.LOST:
                return
            grown = counts.items_crawled + counts.items_failed - before.items_crawled - before.items_failed
            if grown < _ITEMS and now - self._reported_at < _EVERY_S:
                return
            self._reported, self._reported_at = (counts, metrics), now
        # Report without the lock: it writes to the database, and the heartbeat's `flush` must not wait for that.
        self._report(counts, metrics)

    def tell(self, counts: Counts, metrics: dict[str, Any] | None = None) -> None:
        """Report progress and cost immediately: before the run is released."""
        if self._stop is not StopReason.LOST:
            self._report(counts, metrics or {})


class Runner(Protocol):
    """Runs executions with one backend; created for each run, and run on its own thread.

    Registered in `worker.loop.RUNNERS` under the name that `backend_of` returns.
    """

    def run(self, lease: ExecutionLease, holding: RunnerHolding) -> RunEnding | None:
        """Run the execution to its end and return the ending; None releases it for another worker to continue.

        It checks `holding.stop` at least every half second. Exceptions are settled as failures: an OSError of the
        storage as the machine's, Invalid as the configuration's, the rest as the crawl's.
        """
        ...


def audit_ignored_robots(tx: Transaction, clock: Clock, execution_id: int, plan: CrawlPlan | SourceConfig) -> None:
    """Record a run that ignores robots.txt, and why."""
    if plan.robots == "ignore":
        detail = {"reason": plan.robots_reason, "seeds": list(plan.seeds)}
        append_event(tx, clock, action="robots.ignored", subject=f"execution {execution_id}", detail=detail)


_TAIL_BYTES = 16_384
_LINE_BYTES: Final = 64 * 1024
_PLAIN: Final = ("event", "level", "timestamp")


class GrowingLog:
    """A log that another program writes, read line by line while it grows."""

    def __init__(self, path: Path, position: int = 0) -> None:
        self._path, self._position = path, position

    def new_lines(self) -> Iterator[bytes]:
        """Yield the lines written since the last call; an incomplete line waits, an overlong one is dropped."""
        with suppress(OSError), self._path.open("rb") as file:
            end = os.fstat(file.fileno()).st_size
            # Read up to the file's initial size: a crawl that writes faster than this reads would never release this
            # thread.
            while self._position < end:
                file.seek(self._position)
                piece = file.read(min(_LINE_BYTES, end - self._position))
                whole, newline, _ = piece.rpartition(b"\n")
                # A partial line is read again once complete; one longer than a piece is dropped.
                if not newline and len(piece) < _LINE_BYTES:
                    return
                self._position += len(whole) + 1 if newline else len(piece)
                yield from whole.splitlines()


def read_event(line: bytes) -> tuple[str, str, dict[str, Any]] | None:
    """Return level, name and fields of an event in a log; None for any other line."""
    entry = json_object(line.decode("utf-8", "replace"))
    if "event" not in entry:
        return None
    fields = {name: value for name, value in entry.items() if name not in _PLAIN}
    return str(entry.get("level", "info")), str(entry["event"]), fields


def crashed(exc: BaseException, output_dir: Path) -> RunEnding:
    """Return the ending of a run that raised this, with stack and failure cause."""
    failure = failure_of(exc, output_dir)
    stack = "".join(traceback.format_exception(exc))
    error = f"{type(exc).__name__}: {exc}" if failure is FailureCause.FAILED else str(exc) or type(exc).__name__
    return RunEnding(result=RunResult.FAILED, failure=failure, reason=failure.value, error=error, stack=stack)


def failure_of(exc: BaseException, output_dir: Path) -> FailureCause:
    """Return the failure cause of an exception.

    The machine: storage and network errors (errno), a missing output directory, an unavailable or damaged
    database. The configuration: it cannot be used as it is. Anything else counts as the crawl's.
    """
    seen: BaseException | None = exc
    while seen is not None:
        if isinstance(seen, OSError) and (is_storage_errno(seen.errno) or _is_about_storage(seen, output_dir)):
            return FailureCause.INFRA
        # An unavailable or damaged database uses up no retry: the site was not at fault.
        if isinstance(seen, Unavailable | DatabaseDamaged):
            return FailureCause.INFRA
        if isinstance(seen, Invalid):
            return FailureCause.CONFIG
        # The first error may only wrap the real one, such as a full disk.
        seen = seen.__cause__
    return FailureCause.FAILED


def _is_about_storage(exc: OSError, output_dir: Path) -> bool:
    if exc.filename is None or not Path(os.fsdecode(exc.filename)).is_relative_to(output_dir):
        return False
    # A missing file in an existing directory is the crawl's fault; a missing directory is a lost mount.
    gone = exc.errno in (errno.ENOENT, errno.ENOTDIR) and not output_dir.is_dir()
    return gone or exc.errno in (errno.EACCES, errno.EPERM)


def tail(path: Path) -> str:
    """Return the end of a log, for the stack of a run whose processes died; empty if it cannot be read."""
    return logs.tail(path, _TAIL_BYTES).decode(errors="replace")


def asked_for(word: LeaseUpdate) -> StopReason | None:
    # Check this before the stop reason, which a cancelled job has too: its run must end as cancelled.
    if word.cancelled:
        return StopReason.CANCEL
    if word.stop is None:
        return None
    return StopReason.DISCARD if word.stop == "cancel" else StopReason.FINISH


class WorkerRun:
    """Runner thread of an execution; `is_over` once the runner has returned."""

    def __init__(
        self,
        lease: ExecutionLease,
        make_runner: Callable[[], Runner],
        holding: RunnerHolding,
        *,
        wake: Callable[[], object],
    ) -> None:
        self.lease, self.holding = lease, holding
        self._make_runner, self._wake = make_runner, wake
        self.ending: RunEnding | None = None
        """None if it is to be continued, or is lost."""
        self.is_lost = False
        """Whether the lease was lost before the runner returned: its ending is then ignored."""
        self._thread = threading.Thread(target=self._work, name=f"execution {lease.execution_id}", daemon=True)

    def start(self) -> None:
        lease = self.lease
        self.holding.note(
            "info",
            "lifecycle",
            "run continues" if lease.resumed else "run starts",
            owner=lease.owner,
            source=lease.code,
            number=lease.number,
            epoch=lease.claim.epoch,
        )
        if lease.left_behind is not None:
            _log.warning("worker.files_elsewhere", execution=lease.execution_id, message=lease.left_behind)
            self.holding.note("warning", "lifecycle", lease.left_behind)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()

    def _work(self) -> None:
        try:
            self.ending = self._make_runner().run(self.lease, self.holding)
        # The heartbeat polls the lease too; whichever notices the loss first ends the run.
        except LeaseLost:
            self.holding.ask(StopReason.LOST)
        except Exception as exc:
            # An unexpected error ends this run, not the worker.
            _log.exception("worker.run_failed", action="run", execution=self.lease.execution_id)
            self.ending = crashed(exc, self.lease.output_dir)
        finally:
            # Record this when the runner returns: a lease that expires later was valid while the run worked.
            self.is_lost = self.holding.stop is StopReason.LOST
            self._note_end()
            self._wake()

    def _note_end(self) -> None:
        ending = self.ending
        if ending is None:
            self.holding.note("info", "lifecycle", "run is handed back, to be continued")
        else:
            counts = ending.counts
            if ending.result is RunResult.FAILED:
                failure = ending.failure or FailureCause.FAILED
                self.holding.note("error", "error", ending.error or ending.reason or "it failed", failure=failure.value)
            self.holding.note(
                "info",
                "lifecycle",
                f"run {ending.result.value}",
                reason=ending.reason,
                items_crawled=counts.items_crawled,
                items_failed=counts.items_failed,
                cpu_ms=counts.cpu_ms,
                peak_memory_bytes=counts.peak_memory_bytes,
            )
        self.holding.flush()


def holding_for(
    lease: ExecutionLease, database: Database, leases: ExecutionLeases, settings: JobSettings
) -> RunnerHolding:
    """Return the `RunnerHolding` of a lease; the clock of `leases` must be one that any thread may read."""

    def report(counts: Counts, metrics: dict[str, Any]) -> None:
        try:
            leases.report(lease, counts, metrics)
        except LeaseLost:
            holding.ask(StopReason.LOST)
        except Unavailable as exc:
            _log.warning("worker.database_unavailable", message=str(exc))

    def listen() -> StopReason | None:
        try:
            update = leases.poll_signals(lease)
            holding.is_paused = update.is_paused
            return asked_for(update)
        except LeaseLost:
            return StopReason.LOST

    clock = SystemClock()
    holding = RunnerHolding(LogBook(database, clock, lease.execution_id, settings), clock, report=report, listen=listen)
    return holding
