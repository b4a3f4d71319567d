"""Operations: work of minutes or hours that an operator requests and a worker performs.

An operation is the one run of a job that has no source: the queue, the lease, the log and the pause are those of
crawls, and its id is that of its execution. At most one operation is open per flight (one verification, one
rebuild, one freezing of an edition, one import of an upload); a unique key enforces it. It reads and writes the
files of one data directory, so only workers of that directory run it.
"""

from __future__ import annotations

from enum import StrEnum
from hashlib import sha256
from typing import Any, Final, NamedTuple

from sqlalchemy.orm import Session

from holdfast import audit
from holdfast.clock import Clock
from holdfast.db.audit_events import acting_user
from holdfast.db.models import Execution, Job
from holdfast.errors import Conflict, NotFound
from holdfast.jobs.kinds import OperationKind
from holdfast.jobs.settling import close_operation
from holdfast.jobs.states import State
from holdfast.operations import queries
from holdfast.operations.queries import OperationRow


class OperationState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


RUN_STATES: Final = {
    OperationState.QUEUED: "queued",
    OperationState.RUNNING: "running",
    OperationState.DONE: "completed",
    OperationState.FAILED: "failed",
    OperationState.CANCELLED: "cancelled",
}
"""The state of the execution for each state of an operation."""


class OperationRunning(Conflict):
    """The same work is queued or running already; `operation_id` names it."""

    code = "operation_running"

    def __init__(self, operation_id: int, subject: str) -> None:
        super().__init__(
            f"operation {operation_id} already does this ({subject}); see /api/admin/operations/{operation_id}, or: "
            f"holdfast operation show {operation_id}"
        )
        self.operation_id = operation_id


class OperationNotFound(NotFound):
    """The operation does not exist."""

    code = "operation_not_found"

    def __init__(self, operation_id: int) -> None:
        super().__init__(f"unknown operation {operation_id}; see /api/admin/operations, or: holdfast operation list")


class OperationOver(Conflict):
    """The operation has ended and cannot be cancelled."""

    code = "operation_over"

    def __init__(self, operation_id: int, state: str) -> None:
        super().__init__(f"operation {operation_id} is already {state}; start a new one instead")


class OperationRequest(NamedTuple):
    kind: OperationKind
    flight: str
    """At most one operation per flight is open."""
    subject: str
    """What it works on, for people."""
    parameters: dict[str, Any]


def start(session: Session, clock: Clock, request: OperationRequest, *, directory: str) -> OperationRow:
    """Queue an operation in the caller's transaction; raise OperationRunning if one of the same flight is open.

    `directory` is the id of the data directory with its files: workers of other directories skip it.
    """
    now = clock.now()
    fingerprint = sha256(request.flight.encode()).hexdigest()
    job_id = queries.insert_job(
        session,
        {
            "kind": request.kind.value,
            "fingerprint": fingerprint,
            "name": request.subject,
            "config": {},
            "details": {"actor": acting_user()},
            "state": State.PENDING.value,
            "max_retries": 0,
            "created_at": now,
            "updated_at": now,
        },
    )
    if job_id is None:
        running = queries.open_operation(session, fingerprint=fingerprint)
        # The operation may have ended between the two statements; then the client's next attempt succeeds.
        raise OperationRunning(running or 0, request.subject)
    execution = Execution(
        job_id=job_id,
        number=1,
        state="queued",
        config=request.parameters,
        output_dir="",
        created_at=now,
        queued_at=now,
        directory=directory,
    )
    session.add(execution)
    session.flush()
    detail = {"kind": request.kind, "subject": request.subject, **request.parameters}
    audit.record(session, clock, action="operation.started", subject=f"operation {execution.id}", detail=detail)
    return find(session, execution.id)


def find(session: Session, operation_id: int) -> OperationRow:
    found = queries.operation(session, operation_id)
    if found is None:
        raise OperationNotFound(operation_id)
    return found


def cancel(session: Session, clock: Clock, operation_id: int) -> OperationRow:
    """Cancel a queued operation, or request the running one to stop; raise OperationNotFound or OperationOver."""
    found = queries.operation(session, operation_id, for_update=True)
    if found is None:
        raise OperationNotFound(operation_id)
    job, execution = found.job, found.execution
    if execution.finished_at is not None:
        raise OperationOver(operation_id, state_of(execution).value)
    now = clock.now()
    execution.stop_requested, job.updated_at = "cancel", now
    if execution.state == "queued":
        execution.state, execution.finished_at = "cancelled", now
        close_operation(session, job, execution, now=now)
    subject = f"operation {operation_id}"
    audit.record(session, clock, action="operation.cancelled", subject=subject, detail={"kind": job.kind})
    session.flush()
    return found


def state_of(execution: Execution) -> OperationState:
    return next(state for state, word in RUN_STATES.items() if word == execution.state)


def is_cancelled(job: Job, execution: Execution) -> bool:
    """Return whether an operator cancelled it; it may have reached its end anyway."""
    return execution.stop_requested is not None or job.state == State.CANCELLED
