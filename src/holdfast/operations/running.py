"""Performs one operation in a process of its own, and reports to the worker by lines of JSON.

The worker leases the operation, renews the lease, and writes progress and result. This process ends early when
the worker closes its standard input.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import field
from enum import StrEnum
from typing import Any, Final, NamedTuple

from sqlalchemy.orm import Session

from holdfast import log
from holdfast.clock import Clock
from holdfast.config import Settings
from holdfast.db.audit_events import acting
from holdfast.db.engine import Database
from holdfast.errors import HoldfastError, LeaseLost, NoSpace, Unavailable
from holdfast.index.indexer import Interrupted
from holdfast.jobs.kinds import OperationKind
from holdfast.jobs.schedule_queries import LeaseClaim, held_job
from holdfast.operations.long_running import find
from holdfast.operations.queries import failed_starts
from holdfast.outside_text import clean
from holdfast.values import dataclass
from holdfast.wiring import Runtime, open_runtime

MOST_ATTEMPTS: Final = 20
"""Limit of starts of an operation whose process dies each time."""
_log = log.get()
_ERROR_CHARS = 2000
_PHASE_CHARS = 64
_TELL_S = 0.5


class OperationFailed(HoldfastError):
    """The operation ran to its end and failed; its findings are stored anyway."""

    code = "operation_failed"

    def __init__(self, sentence: str, result: Mapping[str, Any]) -> None:
        super().__init__(sentence)
        self.result = result


class HeldOperation(NamedTuple):
    """An operation and the worker's lease of it."""

    operation_id: int
    claim: LeaseClaim


class OperationEnd(StrEnum):
    """How the process of an operation ended; one that was killed names none."""

    DONE = "done"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    AWAY = "away"
    """A dependency did not respond: it continues later."""


@dataclass(slots=True, kw_only=True)
class OperationContext:
    settings: Settings
    runtime: Runtime
    database: Database
    clock: Clock
    held: HeldOperation
    attempt: int
    """Number of starts without those that a worker released."""
    parameters: dict[str, Any]
    result: dict[str, Any]
    """Result so far: a process that continues the operation starts from here."""
    stopping: threading.Event = field(default_factory=threading.Event)
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

    def store_result(self, session: Session) -> None:
        """Store the result so far in the caller's transaction, for a process that continues after this one died.

        Lock the operation until the transaction ends; raise LeaseLost if another worker holds it by now.
        """
        if held_job(session, self.held.claim) is None:
            raise LeaseLost(f"operation {self.held.operation_id} was taken up by another worker")
        find(session, self.held.operation_id).execution.metrics = _metrics(self)


OperationWork = Callable[[OperationContext], dict[str, Any]]
"""Performs an operation and returns its result; raises OperationFailed, HoldfastError or Interrupted."""
Tell = Callable[[dict[str, Any]], None]
"""Reports the metrics of the execution so far; at the end with `end`, and `error` and `code` if it failed."""


def run_operation(
    settings: Settings,
    clock: Clock,
    held: HeldOperation,
    works: Mapping[OperationKind, OperationWork],
    *,
    tell: Tell,
    stopping: threading.Event | None = None,
) -> OperationEnd:
    """Run the operation of a leased job, and report progress and end."""
    with open_runtime(settings) as runtime, closing(Database(settings.database, statement_s=None)) as database:
        with database.read() as session:
            row, failed = find(session, held.operation_id), failed_starts(session, held.operation_id)
        context = OperationContext(
            settings=settings,
            runtime=runtime,
            database=database,
            clock=clock,
            held=held,
            attempt=failed + 1,
            parameters=dict(row.execution.config),
            result=dict(row.execution.metrics.get("result", {})),
            stopping=stopping or threading.Event(),
        )
        ended = threading.Event()
        telling = threading.Thread(target=_tell, args=(context, tell, ended), name="progress", daemon=True)
        telling.start()
        try:
            with acting(str(row.job.details["actor"])):
                end, failure = _end(works[OperationKind(row.job.kind)], context)
        finally:
            ended.set()
            telling.join()
        tell({**_metrics(context), "end": end.value, **failure})
    return end


def _tell(context: OperationContext, tell: Tell, ended: threading.Event) -> None:
    last: dict[str, Any] = {}
    while not ended.wait(_TELL_S):
        if last != (last := _metrics(context)):
            tell(last)


def _metrics(context: OperationContext) -> dict[str, Any]:
    phase = context.phase[:_PHASE_CHARS]
    return {"phase": phase, "done": context.done, "total": context.total, "result": dict(context.result)}


def _end(work: OperationWork, context: OperationContext) -> tuple[OperationEnd, dict[str, str]]:
    try:
        context.result = work(context)
    except Interrupted:
        return OperationEnd.INTERRUPTED, {}
    except OperationFailed as exc:
        context.result = dict(exc.result)
        return OperationEnd.FAILED, _failure(str(exc), exc.code)
    except Unavailable as exc:
        # A database that is away briefly must not cost hours of work. A full disk needs a person: fail at once.
        is_final = isinstance(exc, NoSpace) or context.attempt >= MOST_ATTEMPTS
        return OperationEnd.FAILED if is_final else OperationEnd.AWAY, _failure(str(exc), exc.code)
    except HoldfastError as exc:
        return OperationEnd.FAILED, _failure(str(exc), exc.code)
    except Exception as exc:
        # Catch unexpected errors of the work only here: the row must not stay open forever.
        _log.exception("operation.failed", operation=context.held.operation_id)
        return OperationEnd.FAILED, _failure(f"{type(exc).__name__}: {exc}", "error")
    return OperationEnd.DONE, {}


def _failure(sentence: str, code: str) -> dict[str, str]:
    return {"error": clean(sentence, _ERROR_CHARS) or "", "code": code}
