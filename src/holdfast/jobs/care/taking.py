"""Runs that are taken from whoever holds them: as the machine's fault, or to be gone on with by another.

Who opens the session ends it. The holder hears that its lease is lost as soon as it hears anything, and writes nothing
more: every write of its carries a token that is no longer the job's.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sqlalchemy.orm import Session

from holdfast.clock import Clock
from holdfast.db.models import Execution, Job
from holdfast.jobs.board.queries import locked_job
from holdfast.jobs.care.queries import Run, locked_execution
from holdfast.jobs.endings import Ending, Result
from holdfast.jobs.journal.events import Event, emit
from holdfast.jobs.retries import Failure
from holdfast.jobs.schedule.queries import end_hold
from holdfast.jobs.settling import Settler, reported
from holdfast.jobs.states import State


def take_for_storage(session: Session, clock: Clock, settler: Settler, run: Run, *, error: str) -> bool:
    """End a run whose storage is dead, as `infra_error`; False if its holder does not run it any more."""

    def end(job: Job, execution: Execution, now: datetime) -> list[Event]:
        ending = Ending(result=Result.FAILED, failure=Failure.INFRA, reason="storage", error=error,
                        counts=reported(execution), metrics=execution.metrics)  # fmt: skip
        return settler.settle(session, job, execution, ending, now=now)

    return _take(session, clock, run, end)


def take_to_restart(session: Session, clock: Clock, settler: Settler, run: Run, *, reason: str) -> bool:
    """Hand a run back to the queue, to be gone on with where it is; False if its holder does not run it any more."""
    return _take(session, clock, run, lambda job, execution, now: settler.hand_back(
        session, job, execution, now=now, reason=reason))  # fmt: skip


def _take(
    session: Session, clock: Clock, run: Run, end: Callable[[Job, Execution, datetime], list[Event]]
) -> bool:  # fmt: skip
    """Close the hold of a run and have it end in this way; False if its holder does not run it any more."""
    held = _held(session, run)
    if held is None:
        return False
    job, execution = held
    now = clock.now()
    end_hold(session, job_id=job.id, epoch=job.lock_epoch, ending="lease_lost", now=now)
    emit(session, end(job, execution, now), now=now)
    return True


def _held(session: Session, run: Run) -> tuple[Job, Execution] | None:
    """Return the rows, locked, if the same holder as before still runs the same execution."""
    job, execution = locked_job(session, run.job.id), locked_execution(session, run.execution.id)
    if job is None or job.state != State.RUNNING or execution.state != "running":
        return None
    return (job, execution) if job.lock_epoch == run.job.lock_epoch else None
