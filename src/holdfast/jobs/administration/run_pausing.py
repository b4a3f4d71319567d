"""Pausing a running crawl, and resuming a paused or stopped one without losing anything.

The state stays `running`, with `paused_at` set: the worker keeps its lease. A released run is `queued`, and
the worker that leases it next finds it paused. All processes on all machines react within a second. Pausing a
job is different: that delays its next runs (`jobs.administration.actions`).
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from holdfast import audit
from holdfast.clock import Clock
from holdfast.db.audit_events import acting_user
from holdfast.db.engine import moment_in
from holdfast.db.models import Execution, Job, Source
from holdfast.errors import Conflict, NotFound
from holdfast.jobs.journal import emit, status
from holdfast.jobs.pauses import end_pause, may_go_on, may_wait, paused_s, worked_s
from holdfast.jobs.states import State, move, state_of
from holdfast.jobs.store import is_own_run, locked_execution, of_source
from holdfast.jobs.views.listing import numbered_execution
from holdfast.records import Operator, record


class NotPausable(Conflict):
    """A run cannot be paused or resumed in its current state."""

    code = "not_pausable"


@record
class PausedRun:
    """State of an execution after it was paused or resumed."""

    execution_id: Operator[int]
    paused_at: Operator[datetime | None]
    """Null if it is not paused."""
    paused_by: Operator[str | None]
    paused_seconds: Operator[float]
    """Total so far."""
    is_changed: Operator[bool]
    """False if it was in this state before; nothing was written."""
    was_stopped: Operator[bool] = False
    """Whether it had ended; the next run of its job continues it."""


def pause_run(session: Session, clock: Clock, execution_id: int) -> PausedRun:
    """Pause a run until it is resumed; raise NotFound or NotPausable. A paused run keeps its `paused_at`."""
    job, execution = _locked(session, execution_id)
    _check(job, execution)
    if may_wait(job, execution, is_own=_is_own(session, job, execution)) is None:
        raise NotPausable(
            f"execution {execution.id} is no crawl of our own crawler; it can be stopped with: holdfast stop "
            f"{execution.id}"
        )
    now = moment_in(session, clock)
    if execution.paused_at is not None:
        return _shown(execution, now, is_changed=False)
    execution.paused_at, execution.paused_by = now, acting_user()
    _tell(session, clock, job, execution, now, paused=True)
    return _shown(execution, now, is_changed=True)


def resume_run(session: Session, clock: Clock, execution_id: int) -> PausedRun:
    """Resume a paused run; raise NotFound or NotPausable. A run that is not paused is unchanged.

    A stopped run has ended: the next run of its job continues with its queue as soon as a worker is free.
    """
    job, execution = _locked(session, execution_id)
    newest = numbered_execution(session, job_id=job.id, number=None)
    if newest is execution and may_go_on(job, execution, is_own=_is_own(session, job, execution)):
        return _go_on(session, clock, job, execution)
    # Allow this for a tool's run, too: a paused run can always be resumed.
    _check(job, execution)
    now = moment_in(session, clock)
    if execution.paused_at is None:
        return _shown(execution, now, is_changed=False)
    if job.lock_acquired_at is not None:
        # The end of a lease adds its whole time: subtract the pause within it here.
        held_s = (now - job.lock_acquired_at).total_seconds()
        execution.run_seconds -= held_s - worked_s(job.lock_acquired_at, now, paused_at=execution.paused_at)
    end_pause(execution, now=now)
    _tell(session, clock, job, execution, now, paused=False)
    return _shown(execution, now, is_changed=True)


def _is_own(session: Session, job: Job, execution: Execution) -> bool:
    if job.source_id is None:
        return True
    return is_own_run(job.kind, execution.config, job.config, session.get_one(Source, job.source_id).config)


def _go_on(session: Session, clock: Clock, job: Job, execution: Execution) -> PausedRun:
    now = moment_in(session, clock)
    target = State.SCHEDULED if state_of(job) is State.COMPLETED else State.PENDING
    event = move(job, target, now=now, execution_id=execution.id, action="resume")
    # Count it as a machine failure: only then does the next run continue where this one ended, without using a retry.
    job.current_retry_count, job.infra_retry_count = 0, 1
    job.next_run_at = now
    audit.record(
        session, clock, action="execution.resumed", subject=f"execution {execution.id}", detail={"job": job.id}
    )
    session.flush()
    emit(session, [event], now=now)
    return _shown(execution, now, is_changed=True, was_stopped=True)


def runs_under_way(session: Session, *, are_paused: bool) -> list[int]:
    """Return the started, unfinished runs of sources, oldest first: the paused ones, or the others."""
    is_started = Execution.state.in_(("queued", "running")) & Execution.started_at.is_not(None)
    is_paused = Execution.paused_at.is_not(None) if are_paused else Execution.paused_at.is_(None)
    found = select(Execution.id).join(Job, Job.id == Execution.job_id).where(is_started, is_paused, of_source())
    return list(session.scalars(found.order_by(Execution.id)))


def _locked(session: Session, execution_id: int) -> tuple[Job, Execution]:
    """Return a run and its job, both locked: the job first, the order of all code that settles or releases runs."""
    job_id = session.scalar(select(Execution.job_id).where(Execution.id == execution_id))
    if job_id is None:
        raise NotFound(f"there is no execution {execution_id}; see them with: holdfast status")
    # Reload the row once it is locked: the worker may have settled it between the two statements.
    query = select(Job).where(Job.id == job_id).with_for_update().execution_options(populate_existing=True)
    return session.scalars(query).one(), locked_execution(session, execution_id)


def _check(job: Job, execution: Execution) -> None:
    run, number = f"execution {execution.id}", execution.id
    is_operation = job.source_id is None
    if execution.state == "queued" and execution.started_at is None:
        nothing = "" if is_operation else ", so nothing is fetched yet"
        cancel = f"operation cancel {number}" if is_operation else f"job cancel {job.id}"
        raise NotPausable(f"{run} has not started{nothing}; to cancel it: holdfast {cancel}")
    if execution.state == "stopped":
        raise NotPausable(f"{run} is stopped; resume it with: holdfast crawl --resume")
    if execution.state not in ("queued", "running"):
        again = f"report {number}; to crawl its source again: holdfast job list"
        see = f"operation show {number}" if is_operation else again
        raise NotPausable(f"{run} is {execution.state}, so it cannot be paused or resumed; see: holdfast {see}")
    if execution.stop_requested is not None:
        see = f"operation show {number}" if is_operation else f"status {number}"
        raise NotPausable(f"{run} is stopping; see how far it is with: holdfast {see}")


def _tell(session: Session, clock: Clock, job: Job, execution: Execution, now: datetime, *, paused: bool) -> None:
    subject, detail = f"execution {execution.id}", {"job": job.id, "paused_seconds": round(execution.paused_seconds, 1)}
    audit.record(
        session, clock, action="execution.paused" if paused else "execution.resumed", subject=subject, detail=detail
    )
    session.flush()
    if job.source_id is None:
        return
    # The scheduler does not know the job of a standalone crawl, but its run still gets an event.
    state = job.state or State.RUNNING.value
    emit(session, [status(job.id, state, execution_id=execution.id, run_paused=paused)], now=now)


def _shown(execution: Execution, now: datetime, *, is_changed: bool, was_stopped: bool = False) -> PausedRun:
    return PausedRun(
        execution_id=execution.id,
        paused_at=execution.paused_at,
        paused_by=execution.paused_by,
        paused_seconds=round(paused_s(execution.paused_seconds, execution.paused_at, now=now), 1),
        is_changed=is_changed,
        was_stopped=was_stopped,
    )
