"""Runs one operation to its end: renews its lease, stores its progress, checks whether to stop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import field
from typing import Any

from holdfast import log
from holdfast.clock import Clock
from holdfast.config import Settings
from holdfast.db.audit_events import acting
from holdfast.db.engine import Database
from holdfast.errors import HoldfastError, LeaseLost, NoSpace, Unavailable
from holdfast.index.indexer import Interrupted
from holdfast.operations.long_running import (
    BEAT_S,
    MOST_ATTEMPTS,
    HeldOperation,
    OperationKind,
    OperationLeases,
    OperationState,
    find,
)
from holdfast.processes.runfile import RunFile
from holdfast.values import dataclass
from holdfast.wiring import Runtime, open_runtime

_log = log.get()
_ERROR_CHARS = 2000


class OperationFailed(HoldfastError):
    """The operation ran to its end and failed; its findings are stored anyway."""

    code = "operation_failed"

    def __init__(self, sentence: str, result: Mapping[str, Any]) -> None:
        super().__init__(sentence)
        self.result = result


@dataclass(slots=True, kw_only=True)
class OperationContext:
    settings: Settings
    runtime: Runtime
    database: Database
    clock: Clock
    operation_id: int
    attempt: int
    parameters: dict[str, Any]
    result: dict[str, Any]
    """Result so far: a process that continues the operation starts from here."""
    stopping: threading.Event = field(default_factory=threading.Event)
    is_cancelled: bool = False
    """Whether an operator stopped it, rather than the end of its process."""
    phase: str = "starting"
    done: int = 0
    total: int | None = None

    def say(self, phase: str, done: int = 0, total: int | None = None) -> None:
        """Report progress, cheaply; raise Interrupted if it must stop."""
        self.phase, self.done, self.total = phase, done, total
        self.check()

    def check(self) -> None:
        """Raise Interrupted if it must stop."""
        if self.stopping.is_set():
            raise Interrupted("stopped; it continues from here when it is started again")


OperationWork = Callable[[OperationContext], dict[str, Any]]
"""Performs an operation and returns its result; raises OperationFailed, HoldfastError or Interrupted."""


class _Beats:
    """A thread that renews the lease each second, and sets `stopping` when it is cancelled or lost."""

    def __init__(self, leases: OperationLeases, held: HeldOperation, context: OperationContext, run_file: str) -> None:
        self._leases, self._held, self._context, self._run_file = leases, held, context, run_file
        self._ended = threading.Event()
        self.is_lost = False
        self._thread = threading.Thread(target=self._run, name="operation beats", daemon=True)

    def __enter__(self) -> _Beats:
        self._beat()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(BEAT_S):
            try:
                self._beat()
            except HoldfastError as exc:
                # The database may be unavailable briefly: the lease lasts for thirty of these intervals.
                _log.warning("operation.silent", operation=self._held.operation_id, message=str(exc))

    def _beat(self) -> None:
        context = self._context
        try:
            asked = self._leases.beat(
                self._held,
                phase=context.phase[:64],
                done_units=context.done,
                total_units=context.total,
                result=dict(context.result),
                run_file=self._run_file,
            )
        except LeaseLost:
            self.is_lost = True
            context.stopping.set()
            return
        if asked:
            context.is_cancelled = True
            context.stopping.set()


@contextmanager
def _opened(
    settings: Settings, clock: Clock, held: HeldOperation, stopping: threading.Event
) -> Iterator[tuple[OperationContext, OperationKind, str]]:
    with open_runtime(settings) as runtime, closing(Database(settings.database, statement_s=None)) as database:
        with database.read() as session:
            row = find(session, held.operation_id)
            context = OperationContext(
                settings=settings,
                runtime=runtime,
                database=database,
                clock=clock,
                operation_id=row.id,
                attempt=held.attempt,
                parameters=dict(row.parameters),
                result=dict(row.result),
                stopping=stopping,
            )
            kind, actor = OperationKind(row.kind), row.actor
        yield context, kind, actor


def run_operation(
    settings: Settings,
    clock: Clock,
    held: HeldOperation,
    works: Mapping[OperationKind, OperationWork],
    *,
    stopping: threading.Event | None = None,
) -> OperationState:
    """Run a leased operation and store how it ended; return its state. If stopped from outside, it is queued again.

    Raise Unavailable if a dependency does not respond: the next process continues it.
    """
    stop = stopping or threading.Event()
    with _opened(settings, clock, held, stop) as (context, kind, actor):
        leases = OperationLeases(context.database, clock, context.runtime.run_folder)
        run = RunFile(context.runtime.run_folder)
        try:
            with _Beats(leases, held, context, run.path.name) as beats, acting(actor):
                state, values = _ended(works[kind], context)
            if beats.is_lost:
                return OperationState.RUNNING
            if state is OperationState.QUEUED:
                leases.give_back(held)
            else:
                leases.settle(held, state, **values)
        except Unavailable:
            # If the database is still unavailable, the lease expires by itself.
            with suppress(Unavailable):
                leases.let_go(held, context.result)
            raise
        finally:
            run.close()
    _log.info("operation.ended", operation=held.operation_id, kind=kind.value, state=state.value)
    return state


def _ended(work: OperationWork, context: OperationContext) -> tuple[OperationState, dict[str, Any]]:
    try:
        return OperationState.DONE, {"result": work(context)}
    except Interrupted:
        if context.is_cancelled:
            return OperationState.CANCELLED, {"result": context.result}
        return OperationState.QUEUED, {}
    except OperationFailed as exc:
        return OperationState.FAILED, {"result": exc.result, **_failure(str(exc), exc.code)}
    except Unavailable as exc:
        # A database that is away briefly must not cost hours of work. A full disk needs a person: fail at once.
        if isinstance(exc, NoSpace) or context.attempt >= MOST_ATTEMPTS:
            return OperationState.FAILED, {"result": context.result, **_failure(str(exc), exc.code)}
        raise
    except HoldfastError as exc:
        return OperationState.FAILED, {"result": context.result, **_failure(str(exc), exc.code)}
    except Exception as exc:
        # Catch unexpected errors of the work only here: the row must not stay open forever.
        _log.exception("operation.failed", operation=context.operation_id)
        return OperationState.FAILED, {"result": context.result, **_failure(f"{type(exc).__name__}: {exc}", "error")}


def _failure(sentence: str, code: str) -> dict[str, str]:
    return {"error": sentence[:_ERROR_CHARS].replace("\x00", ""), "error_code": code}
