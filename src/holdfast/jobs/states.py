"""The seven states of a job and the transitions between them.

A new state is written by `move`; only the claim of a worker (`schedule_queries.hold_job`) is a statement of
its own.

    pending ──→ scheduled ──→ running ──→ completed ──→ scheduled   (recurring)
                    │  ↑         ├──────→ failed ─────→ pending     (retry)
                    ↓  │         └──────→ scheduled                 (retried later, or released)
                  paused

A job is pending while it waits for one run that a person requested (a one-time job, a manual retry, a forced
run), and scheduled while it waits for its turn. All states but the three final ones allow cancelling;
cancelled is final.
"""

from __future__ import annotations

from collections import deque
from datetime import datetime
from enum import StrEnum
from typing import Any

from holdfast.db.models import Job, JobEvent
from holdfast.errors import Conflict
from holdfast.jobs.journal import status


class State(StrEnum):
    """State of a job, in the words of `/api/v1`."""

    PENDING = "pending"
    SCHEDULED = "scheduled"
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


TRANSITIONS: dict[State, frozenset[State]] = {
    State.PENDING: frozenset({State.SCHEDULED, State.RUNNING, State.CANCELLED}),
    State.SCHEDULED: frozenset({State.RUNNING, State.PENDING, State.PAUSED, State.CANCELLED}),
    # A run that is retried, or released by its worker, waits as scheduled: its turn is already known.
    State.RUNNING: frozenset({State.COMPLETED, State.FAILED, State.SCHEDULED, State.CANCELLED}),
    State.PAUSED: frozenset({State.SCHEDULED, State.CANCELLED}),
    State.COMPLETED: frozenset({State.SCHEDULED}),
    State.FAILED: frozenset({State.PENDING}),
    # Cancelled is final: to crawl the source again, create a new job with its own history.
    State.CANCELLED: frozenset(),
}
"""`paused` cannot be forced and `completed` cannot be retried."""

TERMINAL = frozenset({State.COMPLETED, State.FAILED, State.CANCELLED})
SCHEDULABLE = frozenset({State.PENDING, State.SCHEDULED})


class JobAction(StrEnum):
    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    RETRY = "retry"
    FORCE_RUN = "force-run"


_ACTIONS: dict[JobAction, tuple[frozenset[State], State]] = {
    JobAction.PAUSE: (frozenset({State.SCHEDULED}), State.PAUSED),
    JobAction.RESUME: (frozenset({State.PAUSED}), State.SCHEDULED),
    JobAction.CANCEL: (frozenset({State.SCHEDULED, State.RUNNING, State.PAUSED, State.PENDING}), State.CANCELLED),
    # Allow it from failed only (decision 0012): a completed job runs again by its schedule or by a new plan.
    JobAction.RETRY: (frozenset({State.FAILED}), State.PENDING),
    # Allow it from scheduled only (decision 0012): a paused job must be resumed first.
    JobAction.FORCE_RUN: (frozenset({State.SCHEDULED}), State.PENDING),
}


class IllegalTransition(Conflict):
    """The job's state does not allow this; nothing was changed."""

    code = "illegal_transition"

    def __init__(self, wanted: str, state: str, allowed: frozenset[State], *, hint: str | None = None) -> None:
        words = ", ".join(sorted(allowed)) or "none"
        following = f"; {hint}" if hint else ""
        super().__init__(f"a job that is {state} cannot {wanted}; it must be one of: {words}{following}")
        self.wanted, self.state, self.allowed = wanted, state, allowed

    def with_hint(self, hint: str) -> IllegalTransition:
        return IllegalTransition(self.wanted, self.state, self.allowed, hint=hint)


def sources_of(target: State) -> frozenset[State]:
    return frozenset(state for state, targets in TRANSITIONS.items() if target in targets)


def check(state: State, target: State) -> None:
    """Raise IllegalTransition unless the table allows this step; staying is not a step."""
    if target not in TRANSITIONS[state]:
        raise IllegalTransition(f"become {target}", state, sources_of(target))


def after(action: JobAction, state: State) -> State:
    """Return the state of a job after an action; IllegalTransition names the states that allow it."""
    allowed, target = _ACTIONS[action]
    if state not in allowed:
        raise IllegalTransition(action.value, state, allowed)
    check(state, target)
    return target


def route(state: State, target: State) -> tuple[State, ...]:
    """Return the shortest chain of legal steps to the target state; raise IllegalTransition if none exists.

    It passes only through states in which nothing runs: a chain never starts, ends or cancels a run.
    """
    ways: deque[tuple[State, ...]] = deque([()])
    seen = {state}
    while ways:
        way = ways.popleft()
        here = way[-1] if way else state
        if here == target:
            return way
        # Sort, so that the choice among equally short chains, and with it the events, is always the same.
        for following in sorted(TRANSITIONS[here] & {State.PENDING, State.SCHEDULED}):
            if following not in seen:
                seen.add(following)
                ways.append((*way, following))
    raise IllegalTransition(f"become {target}", state, sources_of(target))


def state_of(job: Job) -> State:
    assert job.state is not None, f"job {job.id} is not run by the scheduler"
    return State(job.state)


def move(job: Job, target: State, *, now: datetime, execution_id: int | None = None, **details: Any) -> JobEvent:
    """Take one legal step and return its event; raise IllegalTransition, without a change, for any other."""
    check(state_of(job), target)
    job.state, job.updated_at = target.value, now
    # The scheduler queues every job with a time: a leftover time would run a paused or finished job.
    if target not in SCHEDULABLE:
        job.next_run_at = None
    job.paused_at = now if target is State.PAUSED else None
    # `paused_by` decides who may resume it: enabling a source resumes only jobs that its disabling paused.
    if target is not State.PAUSED:
        job.paused_by = None
    if target is State.CANCELLED:
        job.cancelled_at = now
    return status(job.id, target, execution_id=execution_id, **details)
