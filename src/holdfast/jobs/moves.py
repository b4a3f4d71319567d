"""The one place where a job's state is written, on a row that the caller has locked; each step is checked first."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from holdfast.db.models import Job
from holdfast.jobs.journal.events import Event, status
from holdfast.jobs.states import SCHEDULABLE, State, check


def state_of(job: Job) -> State:
    """Return the state of a job that the scheduler runs."""
    assert job.state is not None, f"job {job.id} is not run by the scheduler"
    return State(job.state)


def move(job: Job, target: State, *, now: datetime, execution_id: int | None = None, **details: Any) -> Event:
    """Take one legal step and return its event; IllegalTransition changes nothing."""
    check(state_of(job), target)
    job.state, job.updated_at = target.value, now
    if target not in SCHEDULABLE:
        job.next_run_at = None
    job.paused_at = now if target is State.PAUSED else None
    if target is not State.PAUSED:
        job.paused_by = None
    if target is State.CANCELLED:
        job.cancelled_at = now
    return status(job.id, target, execution_id=execution_id, **details)
