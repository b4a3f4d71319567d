"""Whether a running job, or the storage path of jobs, needs help, and the notes of what was seen and done for it.

A job does if it is stalled, or slow for long; a path if it is dead. Neither is helped too often, or in vain.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from holdfast import audit
from holdfast.clock import Clock
from holdfast.config import RecoverySettings, StorageSettings
from holdfast.db.models import Execution, Job, Recovery, Source
from holdfast.jobs.administration.maintenance import DirectoryRun, add_recovery

DAY = timedelta(hours=24)


class RecoveryAction(StrEnum):
    """What is done, or noted, for a job; kept in `recoveries`."""

    RESTART_STALLED = "restart_stalled"
    RESTART_SLOW = "restart_slow"
    SEEN_SLOW = "seen_slow"
    SEEN_FINE = "seen_fine"
    """It was slow before, and is not any more."""
    WOKEN = "woken"
    NOTHING = "nothing"


RESTARTS = (RecoveryAction.RESTART_STALLED, RecoveryAction.RESTART_SLOW)


class RunActivity(NamedTuple):
    """What can be seen of a running job from outside."""

    pages: int
    running_s: float
    """Since its present holder took it."""
    idle_s: float
    """Since its count of pages last changed, or since it was taken if it never did."""
    pages_per_minute: float | None
    """None if nothing can be said."""


class RecoveryNote(NamedTuple):
    """A row of `recoveries`: what was seen of a job, or done for it."""

    job_id: int
    at: datetime
    action: str
    pages: int = 0
    """How many pages its run had then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryDecision:
    """What is to be done for a job, and why; or why nothing is."""

    action: RecoveryAction
    reason: str


def decide(
    activity: RunActivity, history: Sequence[RecoveryNote], limits: RecoverySettings, *, now: datetime
) -> RecoveryDecision:
    """Return what a job needs. `history` is what was seen of it and done for it, a day of it at least, oldest first."""
    # A crawl that has just been taken has no counts yet: it would look as if it stood still.
    if activity.running_s < limits.guard_s:
        return RecoveryDecision(action=RecoveryAction.NOTHING, reason="just_started")
    if activity.idle_s >= limits.stalled_s:
        return _restart(RecoveryAction.RESTART_STALLED, activity, history, limits, now)
    slow = activity.pages_per_minute is not None and activity.pages_per_minute < limits.slow_pages_per_minute
    noted = _streak(history)
    if slow and noted + 1 >= limits.slow_looks:
        return _restart(RecoveryAction.RESTART_SLOW, activity, history, limits, now)
    if slow:
        return RecoveryDecision(action=RecoveryAction.SEEN_SLOW, reason=f"slow {noted + 1} of {limits.slow_looks}")
    return RecoveryDecision(action=RecoveryAction.SEEN_FINE if noted else RecoveryAction.NOTHING, reason="healthy")


def _restart(
    wanted: RecoveryAction,
    activity: RunActivity,
    history: Sequence[RecoveryNote],
    limits: RecoverySettings,
    now: datetime,
) -> RecoveryDecision:
    """Return a restart unless it was tried a moment ago, too often today, or in vain each time."""
    restarts = [one for one in history if one.action in RESTARTS]
    # A restart takes a while to show: a second one would only throw away what it has begun.
    if restarts and (now - restarts[-1].at).total_seconds() < limits.guard_s:
        return RecoveryDecision(action=RecoveryAction.NOTHING, reason="just_helped")
    if sum(now - one.at < DAY for one in restarts) >= limits.per_day:
        return RecoveryDecision(action=RecoveryAction.NOTHING, reason="helped_too_often")
    recent = restarts[-limits.breaker_times :]
    # Restarts that led to no new pages do not help: the site or its configuration is at fault, and a person has to
    # look.
    if len(recent) == limits.breaker_times and max(_yields(recent, activity.pages)) < limits.breaker_pages:
        return RecoveryDecision(action=RecoveryAction.NOTHING, reason="breaker_open")
    return RecoveryDecision(action=wanted, reason="stalled" if wanted is RecoveryAction.RESTART_STALLED else "slow")


def _yields(restarts: Sequence[RecoveryNote], pages: int) -> list[int]:
    """Return the new pages that each restart led to; a crawl that counts from nothing again counts from there."""
    # What each restart led to is what the next one found; the last is judged by what there is now.
    ends = [*(one.pages for one in restarts[1:]), pages]
    return [end - one.pages if end >= one.pages else end for one, end in zip(restarts, ends, strict=True)]


def _streak(history: Sequence[RecoveryNote]) -> int:
    count = 0
    for one in reversed(history):
        if one.action != RecoveryAction.SEEN_SLOW:
            break
        count += 1
    return count


SEEN_DEAD, SEEN_ALIVE, FREED = "seen_dead", "seen_alive", "path_freed"
WORDS = (SEEN_DEAD, SEEN_ALIVE, FREED)
"""What is noted in `recoveries` about a job's path."""
HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageDecision:
    """Whether something is done about a path, for which of its jobs, and why; or why nothing is."""

    jobs: tuple[int, ...] = ()
    """Empty if nothing is done."""
    reason: str


def decide_storage(
    affected: Sequence[int], notes: Sequence[RecoveryNote], limits: StorageSettings, *, now: datetime
) -> StorageDecision:
    """Return what to do about a path that these jobs write to and that is dead now.

    `notes` hold a day of what was seen and done for all jobs, oldest first: what was done for one path counts for all.
    """
    streaks = [streak(notes, job_id) for job_id in affected]
    # The look that is being taken counts, too.
    looks = 1 + max(map(len, streaks), default=0)
    if looks < limits.confirmations:
        return StorageDecision(reason=f"seen dead {looks} of {limits.confirmations} times")
    dead_s = (now - min((one[0].at for one in streaks if one), default=now)).total_seconds()
    # Two looks within a second are one outage: a mount may be back a moment later.
    if dead_s < limits.dead_s:
        return StorageDecision(reason=f"dead for {dead_s:.0f} of {limits.dead_s:g} s")
    freed_at = sorted({note.at for note in notes if note.action == FREED})
    if freed_at and (now - freed_at[-1]).total_seconds() < limits.cooldown_s:
        return StorageDecision(reason="something was done a short while ago")
    if _since(freed_at, now - HOUR) >= limits.per_hour or _since(freed_at, now - DAY) >= limits.per_day:
        return StorageDecision(reason="something was done too often")
    # Of jobs that share a path some may have been freed too often today: the others still are.
    free = tuple(job_id for job_id in affected if _helped(notes, job_id, now) < limits.per_job)
    return StorageDecision(jobs=free, reason="dead" if free else "its jobs were helped too often today")


def streak(notes: Sequence[RecoveryNote], job_id: int) -> list[RecoveryNote]:
    """Return the last notes of a job as far as they say that its path is dead, oldest first."""
    found: list[RecoveryNote] = []
    for note in reversed([one for one in notes if one.job_id == job_id]):
        if note.action != SEEN_DEAD:
            break
        found.append(note)
    return found[::-1]


def _since(freed_at: Sequence[datetime], moment: datetime) -> int:
    return sum(at > moment for at in freed_at)


def _helped(notes: Sequence[RecoveryNote], job_id: int, now: datetime) -> int:
    return sum(note.job_id == job_id and note.action == FREED and note.at > now - DAY for note in notes)


def note(session: Session, clock: Clock, runs: Iterable[DirectoryRun], action: str, reason: str) -> None:
    """Note what was seen of a path, or done for it, with each of its jobs."""
    now = clock.now()
    for run in runs:
        add_recovery(
            session,
            Recovery(
                job_id=run.job.id,
                execution_id=run.execution.id,
                at=now,
                action=action,
                reason=reason,
                pages=run.execution.items_crawled,
            ),
        )


def record_steps(session: Session, clock: Clock, path: str, detail: dict[str, Any]) -> None:
    """Keep in the audit log what was done about a dead path, step by step."""
    audit.record(session, clock, action="storage.path_freed", subject=f"path {path}", detail=detail)


def waiting_for_storage(session: Session) -> list[DirectoryRun]:
    """Return the newest execution with a directory of each job that waits because its machine failed, by job."""
    newest = (
        select(func.max(Execution.id))
        .join(Job, Job.id == Execution.job_id)
        .where(
            Job.state == "scheduled", Job.infra_retry_count > 0, Job.deleted_at.is_(None), Execution.output_dir != ""
        )
        .group_by(Execution.job_id)
        .scalar_subquery()
    )
    query = (
        select(Job, Source, Execution)
        .join(Source, Source.id == Job.source_id)
        .join(Execution, Execution.job_id == Job.id)
        .where(Execution.id.in_(newest))
        .order_by(Job.id)
    )
    return [DirectoryRun(*row) for row in session.execute(query)]


def notes_since(session: Session, moment: datetime) -> list[RecoveryNote]:
    """Return what was noted about the paths of all jobs since a moment, oldest first."""
    query = (
        select(Recovery.job_id, Recovery.at, Recovery.action)
        .where(Recovery.at >= moment, Recovery.action.in_(WORDS))
        .order_by(Recovery.at, Recovery.id)
    )
    return [RecoveryNote(*row) for row in session.execute(query)]
