"""How long a run was worked on, how long it was paused, and how long it waits for its machine."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from datetime import datetime

    from holdfast.db.models import Execution, Job

AWAY: Final = timedelta(hours=24)
"""Silence of a data directory after which another machine continues its runs: most repairs take less than a day."""


def awaited(host: str, seen_at: datetime, directory: str) -> str:
    """Return in words which machine a queued run waits for, and when another one may continue it."""
    return (
        f"waits for a worker on {host} (data directory {directory}, last seen {seen_at:%Y-%m-%d %H:%M} UTC); from "
        f"{seen_at + AWAY:%Y-%m-%d %H:%M} UTC on, another machine continues the run without the files of this one"
    )


def worked_s(since: datetime, until: datetime, *, paused_at: datetime | None) -> float:
    """Return how long a holder worked from one moment to another; while it is paused, a run is not worked on."""
    end = until if paused_at is None else min(until, max(paused_at, since))
    return max(0.0, (end - since).total_seconds())


def paused_s(before: float, paused_at: datetime | None, *, now: datetime) -> float:
    """Return how long a run was paused in all: what its earlier pauses lasted, and the present one."""
    return before if paused_at is None else before + max(0.0, (now - paused_at).total_seconds())


def end_pause(execution: Execution, *, now: datetime) -> None:
    """Write that a run is paused no more, because it goes on or is over: how long it was is added up."""
    execution.paused_seconds = paused_s(execution.paused_seconds, execution.paused_at, now=now)
    execution.paused_at = execution.paused_by = None


def may_go_on(job: Job, execution: Execution, *, is_own: bool) -> bool:
    """Return whether a stopped run, the newest of its job, can be resumed: the job's next run takes over its queue."""
    is_stopped = execution.state == "completed" and execution.reason == "stopped"
    # The next poll of a feed reads the whole feed again: there is no queue to take over.
    is_crawl = is_own and job.kind != "feed" and job.deleted_at is None
    return is_crawl and is_stopped and job.state in ("completed", "scheduled")


def may_wait(job: Job, execution: Execution, *, is_own: bool) -> Literal["pause", "resume"] | None:
    """Return what may be done to a job's newest run as it stands: `run_pausing` refuses what this does not name.

    It `is_own` where our own crawler works on it.
    """
    if may_go_on(job, execution, is_own=is_own):
        return "resume"
    begun = execution.state == "running" or (execution.state == "queued" and execution.started_at is not None)
    if not begun or execution.stop_requested is not None:
        return None
    if execution.paused_at is not None:
        return "resume"
    # A tool has no door for a pause, and an import asks no site.
    return "pause" if is_own else None
