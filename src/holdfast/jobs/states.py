"""The seven states of a job and every way between them.

A new state is written by `move`; only the claim of a worker (`schedule_queries.hold_job`) is a statement of its own.

    pending ──→ scheduled ──→ running ──→ completed ──→ scheduled   (recurring)
                    │  ↑         ├──────→ failed ─────→ pending     (retry)
                    ↓  │         └──────→ scheduled                 (tried again later, or handed back)
                  paused

A job is pending while it waits for one run that a person asked for (a one-time job, a retry by hand, a forced run), and
scheduled while it waits for its turn. All but the three ends may be cancelled; nothing leaves cancelled.
"""

from __future__ import annotations

from collections import deque
from datetime import datetime
from enum import StrEnum
from typing import Any

from holdfast.db.models import Job
from holdfast.errors import Conflict
from holdfast.jobs.journal import NewJobEvent, status


class State(StrEnum):
    """What a job is doing, in the words of `/api/v1`."""

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
    # A run that is tried again, or handed back by its worker, waits as scheduled: its turn is known already.
    State.RUNNING: frozenset({State.COMPLETED, State.FAILED, State.SCHEDULED, State.CANCELLED}),
    State.PAUSED: frozenset({State.SCHEDULED, State.CANCELLED}),
    State.COMPLETED: frozenset({State.SCHEDULED}),
    State.FAILED: frozenset({State.PENDING}),
    # Nothing leaves cancelled: to crawl the source again is a new job with a history of its own.
    State.CANCELLED: frozenset(),
}
"""`paused` cannot be forced and `completed` cannot be retried."""

TERMINAL = frozenset({State.COMPLETED, State.FAILED, State.CANCELLED})
SCHEDULABLE = frozenset({State.PENDING, State.SCHEDULED})


class JobAction(StrEnum):
    """What a person may do to a job."""

    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    RETRY = "retry"
    FORCE_RUN = "force-run"


_ACTIONS: dict[JobAction, tuple[frozenset[State], State]] = {
    JobAction.PAUSE: (frozenset({State.SCHEDULED}), State.PAUSED),
    JobAction.RESUME: (frozenset({State.PAUSED}), State.SCHEDULED),
    JobAction.CANCEL: (frozenset({State.SCHEDULED, State.RUNNING, State.PAUSED, State.PENDING}), State.CANCELLED),
    # From failed only (decision 0012): a completed job runs again by its schedule or by a new plan.
    JobAction.RETRY: (frozenset({State.FAILED}), State.PENDING),
    # From scheduled only, as decision 0012 has it: what is paused is resumed first.
    JobAction.FORCE_RUN: (frozenset({State.SCHEDULED}), State.PENDING),
}


class IllegalTransition(Conflict):
    """A job's state does not allow this; nothing was changed."""

    code = "illegal_transition"

    def __init__(self, wanted: str, state: str, allowed: frozenset[State], *, hint: str | None = None) -> None:
        words = ", ".join(sorted(allowed)) or "none"
        following = f"; {hint}" if hint else ""
        super().__init__(f"a job that is {state} cannot {wanted}; it must be one of: {words}{following}")
        self.wanted, self.state, self.allowed = wanted, state, allowed

    def with_hint(self, hint: str) -> IllegalTransition:
        """Return it with what can be done instead."""
        return IllegalTransition(self.wanted, self.state, self.allowed, hint=hint)


def may_become(state: State, target: State) -> bool:
    """Return whether a job may go from one state to the other in one step; staying is no step."""
    return target in TRANSITIONS[state]


def sources_of(target: State) -> frozenset[State]:
    """Return the states from which a job may become this."""
    return frozenset(state for state, targets in TRANSITIONS.items() if target in targets)


def check(state: State, target: State) -> None:
    """Raise IllegalTransition unless the table allows this step."""
    if not may_become(state, target):
        raise IllegalTransition(f"become {target}", state, sources_of(target))


def after(action: JobAction, state: State) -> State:
    """Return what a job becomes by an action; IllegalTransition names the states that allow it."""
    allowed, target = _ACTIONS[action]
    if state not in allowed:
        raise IllegalTransition(action.value, state, allowed)
    check(state, target)
    return target


def route(state: State, target: State) -> tuple[State, ...]:
    """Return the shortest chain of legal steps that a new plan for the same job takes; IllegalTransition if none does.

    Only states in which nothing runs are passed through: a chain never starts, ends or cancels a run.
    """
    ways: deque[tuple[State, ...]] = deque([()])
    seen = {state}
    while ways:
        way = ways.popleft()
        here = way[-1] if way else state
        if here == target:
            return way
        # Sorted, so that two equally short chains are always the same one, and so are their events.
        for following in sorted(TRANSITIONS[here] & {State.PENDING, State.SCHEDULED}):
            if following not in seen:
                seen.add(following)
                ways.append((*way, following))
    raise IllegalTransition(f"become {target}", state, sources_of(target))


def state_of(job: Job) -> State:
    """Return the state of a job that the scheduler runs."""
    assert job.state is not None, f"job {job.id} is not run by the scheduler"
    return State(job.state)


def move(job: Job, target: State, *, now: datetime, execution_id: int | None = None, **details: Any) -> NewJobEvent:
    """Take one legal step and return its event; IllegalTransition changes nothing."""
    check(state_of(job), target)
    job.state, job.updated_at = target.value, now
    # The scheduler queues whatever has a time: one that is left behind here would run a job that rests.
    if target not in SCHEDULABLE:
        job.next_run_at = None
    job.paused_at = now if target is State.PAUSED else None
    # `paused_by` decides who may resume it: enabling a source wakes only what the source had paused.
    if target is not State.PAUSED:
        job.paused_by = None
    if target is State.CANCELLED:
        job.cancelled_at = now
    return status(job.id, target, execution_id=execution_id, **details)
