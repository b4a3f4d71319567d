"""Working time and pauses of runs, and why queued runs wait (`waiting` determines it)."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime

    from holdfast.db.models import Execution, Job

WaitCode = Literal["time", "source", "machine", "disk", "contact", "worker", "busy", "turn"]


class RunWait(NamedTuple):
    """Why a queued run waits: a code for programs, and a sentence with the next step for people."""

    code: WaitCode
    sentence: str


AWAY: Final = timedelta(hours=24)
"""Silence of a data directory after which another machine continues its runs: most repairs take less than a day."""


def awaited(host: str, seen_at: datetime, directory: str) -> str:
    """Return a sentence about the machine that a queued run waits for, and when another one may continue it."""
    return (
        f"waits for a worker on {host} (data directory {directory}, last seen {seen_at:%Y-%m-%d %H:%M} UTC); from "
        f"{seen_at + AWAY:%Y-%m-%d %H:%M} UTC on, another machine continues the run without the files of this one"
    )


def worked_s(since: datetime, until: datetime, *, paused_at: datetime | None) -> float:
    """Return how long a holder worked between two moments, excluding a current pause."""
    end = until if paused_at is None else min(until, max(paused_at, since))
    return max(0.0, (end - since).total_seconds())


def paused_s(before: float, paused_at: datetime | None, *, now: datetime) -> float:
    return before if paused_at is None else before + max(0.0, (now - paused_at).total_seconds())


def end_pause(execution: Execution, *, now: datetime) -> None:
    """End a run's pause, when it continues or ends, and add up its length."""
    execution.paused_seconds = paused_s(execution.paused_seconds, execution.paused_at, now=now)
    execution.paused_at = execution.paused_by = None


def may_go_on(job: Job, execution: Execution, *, is_own: bool) -> bool:
    """Return whether a stopped run, the newest of its job, can be resumed: the job's next run continues its queue."""
    is_stopped = execution.state == "completed" and execution.reason == "stopped"
    # The next poll reads the whole feed again: there is no queue to continue.
    is_crawl = is_own and job.kind != "feed" and job.deleted_at is None
    return is_crawl and is_stopped and job.state in ("completed", "scheduled")


def may_wait(job: Job, execution: Execution, *, is_own: bool) -> Literal["pause", "resume"] | None:
    """Return the action that a job's newest run allows now; `run_pausing` rejects any other.

    `is_own` if our own crawler runs it.
    """
    if may_go_on(job, execution, is_own=is_own):
        return "resume"
    is_started = execution.state == "running" or (execution.state == "queued" and execution.started_at is not None)
    if not is_started or execution.stop_requested is not None:
        return None
    if execution.paused_at is not None:
        return "resume"
    # A tool cannot be paused, and an import sends no requests.
    return "pause" if is_own else None
