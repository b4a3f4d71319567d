"""Work of a worker besides executions: small pending pieces from the database, one after the other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from typing import Protocol

from holdfast import log
from holdfast.config import Settings
from holdfast.db.engine import Database
from holdfast.editions.edition_files import EditionBusy
from holdfast.editions.ledger import LedgerUnbalanced
from holdfast.editions.report import due, write_report
from holdfast.noise.queries import edition_waits
from holdfast.search.linked_hosts import refresh_linked_hosts
from holdfast.search.signals import refresh
from holdfast.values import dataclass
from holdfast.wiring import Runtime, open_runtime


class BackgroundTask(Protocol):
    """One kind of background work, run whenever the worker has time; registered in `worker.loop.BACKGROUND_TASKS`."""

    @property
    def name(self) -> str: ...

    def run_once(self) -> bool:
        """Do one piece of work, of a few seconds if possible, and return whether any was pending.

        Any number of workers may run it concurrently: the rows decide which piece belongs to whom. Exceptions are
        logged, and the task is retried after a pause; a long piece checks `is_stopping` of its context between steps.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundContext:
    """Dependencies of background tasks; all of them belong to the thread that runs the tasks."""

    runtime: Runtime
    database: Database
    is_stopping: Callable[[], bool]
    """Whether the worker is ending: stop at the next good moment; the rest stays in the rows."""
    on_end: ExitStack
    """Registers what a task opens, to be closed on the same thread when the worker ends."""


_log = log.get()
_AGAIN_S = 5.0
_LONGEST_S = 60.0


@dataclass(slots=True)
class _Turn:
    task: BackgroundTask
    failures: int = 0
    not_before: float = 0.0
    error: str | None = None


class BackgroundWork:
    def __init__(self, settings: Settings, tasks: Sequence[Callable[[BackgroundContext], BackgroundTask]]) -> None:
        self._settings, self._tasks = settings, tasks
        self._stopping = threading.Event()
        self._wake = threading.Event()
        self._changed = threading.Condition()
        self._count = 0
        self._idle = False
        self._hurried = False
        self.errors: dict[str, str] = {}
        """By task, for those that failed the last time."""
        self._thread = threading.Thread(target=self._run, name="background", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def ask_to_stop(self) -> None:
        self._stopping.set()
        self._wake.set()

    def stop(self, seconds: float | None = None) -> bool:
        """Request a stop and wait up to `seconds`; return whether the thread has ended."""
        self.ask_to_stop()
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def wake(self) -> None:
        self._wake.set()

    def exhaust(self, is_wanted: Callable[[], bool]) -> None:
        """Wait until a whole round that started after this call found no work, or `is_wanted` returns False."""
        with self._changed:
            # Wait for two rounds: the current one may already have passed the task that has work now.
            goal, self._hurried = self._count + 2, True
            self._wake.set()
            while not (self._count >= goal and self._idle) and is_wanted() and self._thread.is_alive():
                # Wait with a timeout: a signal may turn `is_wanted` false without a round ending.
                self._changed.wait(0.2)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._work()
            except Exception as exc:
                # The database is unavailable, or a task cannot be created: retry.
                _log.warning("worker.background_waits", action="open", message=str(exc))
                self._report(idle=True, errors={"background": str(exc)})
                self._stopping.wait(self._settings.timings.jobs_rest_s)

    def _work(self) -> None:
        settings = self._settings
        with ExitStack() as stack:
            runtime = stack.enter_context(open_runtime(settings))
            database = stack.enter_context(closing(Database(settings.database)))
            context = BackgroundContext(
                runtime=runtime, database=database, is_stopping=self._stopping.is_set, on_end=stack
            )
            turns = [_Turn(make(context)) for make in self._tasks]
            while not self._stopping.is_set():
                # Clear before the round: clearing after it would miss a run that ended while a task worked.
                self._wake.clear()
                busy = False
                for turn in turns:
                    busy |= self._take(turn, runtime.clock.monotonic())
                self._report(idle=not busy, errors={t.task.name: t.error for t in turns if t.error is not None})
                # Start the next round without a pause while there is work.
                if not busy:
                    self._wake.wait(0.05 if self._hurried else settings.timings.jobs_rest_s)

    def _report(self, *, idle: bool, errors: dict[str, str]) -> None:
        with self._changed:
            self._count += 1
            self._idle, self.errors = idle, errors
            self._changed.notify_all()

    def _take(self, turn: _Turn, now: float) -> bool:
        if self._stopping.is_set() or now < turn.not_before:
            return False
        try:
            busy = turn.task.run_once()
        except Exception as exc:
            # Catch a task's errors only here, so that the other tasks continue.
            turn.failures += 1
            turn.error = f"{type(exc).__name__}: {exc}"
            # Back off: a task that cannot work now (database unavailable, file locked) would fill the log.
            turn.not_before = now + min(_AGAIN_S * 2 ** (turn.failures - 1), _LONGEST_S)
            _log.warning("worker.background_failed", action=turn.task.name, message=str(exc), times=turn.failures)
            return False
        turn.failures, turn.error = 0, None
        return busy


_LOOK_ROWS = 1000


class _Stopped(Exception):
    """The worker is ending: the report is left to the next one."""


class Accounting:
    """The background task that writes due reports of editions."""

    name = "edition reports"

    def __init__(self, context: BackgroundContext) -> None:
        self._context = context
        # Editions for which this worker failed to write a report; another worker or an operator may succeed.
        self._passed: set[int] = set()

    def run_once(self) -> bool:
        """Write one due report; return False if none is due, others write them all, or the worker is ending."""
        with self._context.database.read() as session:
            # Captures still to be classified may turn out to be noise, which does not count.
            found = [one for one in due(session, passed=self._passed) if not edition_waits(session, one)]
        try:
            return any(self._account(edition_id) for edition_id in found)
        except _Stopped:
            return False

    def _account(self, edition_id: int) -> bool:
        context, runtime = self._context, self._context.runtime
        try:
            content, _ = write_report(
                context.database, runtime.settings.home, runtime.clock, edition_id, on_row=self._look
            )
        except EditionBusy:
            return False
        except LedgerUnbalanced as exc:
            _log.error("edition.unbalanced", edition_id=edition_id, message=str(exc))
            self._passed.add(edition_id)
            return True
        _log.info("edition.reported", source=content["source"], year=content["year"], status=content["status"])
        return True

    def _look(self, count: int) -> None:
        if count % _LOOK_ROWS == 1 and self._context.is_stopping():
            raise _Stopped


_LOOK_S = 60.0
_COUNT_S = 5.0


class LinkSignals:
    """The background task that counts linked hosts, and recomputes page signals after enough new links."""

    name = "link signals"

    def __init__(self, context: BackgroundContext) -> None:
        self._context = context
        self._looked_at: float | None = None

    def run_once(self) -> bool:
        """Recompute if due; return False if not due, if another process does it, or if the worker is ending."""
        runtime = self._context.runtime
        now = runtime.clock.monotonic()
        if self._looked_at is not None and now - self._looked_at < _LOOK_S:
            return False
        self._looked_at = now
        database, home, stopping = self._context.database, runtime.settings.home, self._context.is_stopping
        if refresh_linked_hosts(database, home, runtime.clock, limit_s=_COUNT_S, is_stopping=stopping):
            # More files may be queued: the next turn continues.
            self._looked_at = None
        return refresh(database, home, runtime.clock, is_stopping=stopping) or self._looked_at is None
