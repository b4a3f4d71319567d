"""Decides whether a running job, or the storage path of jobs, needs recovery; records observations and actions.

A job needs it if it is stalled, or slow for long; a path if it is dead. Limits prevent frequent or futile
recovery.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import takewhile
from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from holdfast.clock import Clock
from holdfast.config import RecoverySettings, StorageSettings
from holdfast.db.models import Execution, Job, Recovery
from holdfast.jobs.administration.maintenance import DirectoryRun, add_recovery, directories, directory_runs

# A crawl captures its first pages within minutes, and a restart takes as long to show an effect.
GUARD_S = 600.0
RESTARTS_PER_DAY = 3
# After this many restarts in a row, each with fewer new pages than this, a person must look at the job.
VAIN_RESTARTS, VAIN_PAGES = 3, 10
# A crawl is slow below this rate; this many slow checks in a row restart it.
SLOW_PAGES_PER_MINUTE, SLOW_CHECKS = 2.0, 6
# A dead path: checks in a row before anything is done, the pause after an action, and the most actions on all paths
# together and for one job in 24 hours.
DEAD_CHECKS, STORAGE_COOLDOWN_S = 2, 900.0
ACTIONS_PER_HOUR, ACTIONS_PER_DAY, ACTIONS_PER_JOB = 2, 6, 3

DAY = timedelta(hours=24)


class RecoveryAction(StrEnum):
    """An observation or recovery action for a job, stored in `recoveries`."""

    RESTART_STALLED = "restart_stalled"
    RESTART_SLOW = "restart_slow"
    SEEN_SLOW = "seen_slow"
    SEEN_FINE = "seen_fine"
    """It was slow before, and no longer is."""
    WOKEN = "woken"
    NOTHING = "nothing"


RESTARTS = (RecoveryAction.RESTART_STALLED, RecoveryAction.RESTART_SLOW)


class RunActivity(NamedTuple):
    pages: int
    running_s: float
    """Since its current holder leased it."""
    idle_s: float
    """Since its count of pages last changed, or since it was leased if the count never did."""
    pages_per_minute: float | None
    """None if unknown."""


Decision = tuple[RecoveryAction, str]
"""An action and its reason."""


def decide(activity: RunActivity, history: Sequence[Recovery], limits: RecoverySettings, *, now: datetime) -> Decision:
    """Return what to do for a job. `history` holds its notes of at least the last day, oldest first."""
    # A crawl that was just leased has no counts yet and would look stalled.
    if activity.running_s < GUARD_S:
        return RecoveryAction.NOTHING, "just_started"
    if activity.idle_s >= limits.stalled_s:
        return _restart(RecoveryAction.RESTART_STALLED, activity, history, limits, now)
    slow = activity.pages_per_minute is not None and activity.pages_per_minute < SLOW_PAGES_PER_MINUTE
    noted = len(streak(history, RecoveryAction.SEEN_SLOW))
    if slow and noted + 1 >= SLOW_CHECKS:
        return _restart(RecoveryAction.RESTART_SLOW, activity, history, limits, now)
    if slow:
        return RecoveryAction.SEEN_SLOW, f"slow {noted + 1} of {SLOW_CHECKS}"
    return RecoveryAction.SEEN_FINE if noted else RecoveryAction.NOTHING, "healthy"


def _restart(
    wanted: RecoveryAction, activity: RunActivity, history: Sequence[Recovery], limits: RecoverySettings, now: datetime
) -> Decision:
    """Return a restart unless one happened recently, too often today, or never helped."""
    restarts = [one for one in history if one.action in RESTARTS]
    # A restart takes a while to show: a second one would only discard what it has started.
    if restarts and (now - restarts[-1].at).total_seconds() < GUARD_S:
        return RecoveryAction.NOTHING, "just_helped"
    if _count_since([one.at for one in restarts], now - DAY) >= RESTARTS_PER_DAY:
        return RecoveryAction.NOTHING, "helped_too_often"
    recent = restarts[-VAIN_RESTARTS:]
    # Restarts that led to no new pages do not help: the site or its configuration is at fault, and a person has to
    # look.
    if len(recent) == VAIN_RESTARTS and max(_yields(recent, activity.pages)) < VAIN_PAGES:
        return RecoveryAction.NOTHING, "breaker_open"
    return wanted, "stalled" if wanted is RecoveryAction.RESTART_STALLED else "slow"


def _yields(restarts: Sequence[Recovery], pages: int) -> list[int]:
    """Return the new pages after each restart; if a crawl's count restarted from 0, all of them are new."""
    # The next restart shows what each restart achieved; the current count judges the last one.
    ends = [*(one.pages for one in restarts[1:]), pages]
    return [end - one.pages if end >= one.pages else end for one, end in zip(restarts, ends, strict=True)]


SEEN_DEAD, SEEN_ALIVE, FREED = "seen_dead", "seen_alive", "path_freed"
WORDS = (SEEN_DEAD, SEEN_ALIVE, FREED)
"""Actions recorded in `recoveries` about a job's path."""
HOUR = timedelta(hours=1)


def decide_storage(
    affected: Sequence[int], notes: Sequence[Recovery], limits: StorageSettings, *, now: datetime
) -> tuple[tuple[int, ...], str]:
    """Return which of the jobs that write to a dead path need help now, and the reason.

    `notes` hold a day of all jobs' notes, oldest first: an action on one path counts for all.
    """
    streaks = [seen_dead(notes, job_id) for job_id in affected]
    # Count the current check, too.
    looks = 1 + max(map(len, streaks), default=0)
    if looks < DEAD_CHECKS:
        return (), f"seen dead {looks} of {DEAD_CHECKS} times"
    dead_s = (now - min((one[0].at for one in streaks if one), default=now)).total_seconds()
    # Two failed checks within a second are one outage: a mount may be back a moment later.
    if dead_s < limits.dead_s:
        return (), f"dead for {dead_s:.0f} of {limits.dead_s:g} s"
    freed_at = sorted({note.at for note in notes if note.action == FREED})
    if freed_at and (now - freed_at[-1]).total_seconds() < STORAGE_COOLDOWN_S:
        return (), "something was done a short while ago"
    in_hour, in_day = _count_since(freed_at, now - HOUR), _count_since(freed_at, now - DAY)
    if in_hour >= ACTIONS_PER_HOUR or in_day >= ACTIONS_PER_DAY:
        return (), "something was done too often"
    # Some of the jobs that share a path may have reached today's limit: still free the others.
    free = tuple(job_id for job_id in affected if _helped(notes, job_id, now) < ACTIONS_PER_JOB)
    return free, "dead" if free else "its jobs were helped too often today"


def seen_dead(notes: Sequence[Recovery], job_id: int) -> list[Recovery]:
    """Return a job's last consecutive notes that its path is dead, oldest first."""
    return streak([note for note in notes if note.job_id == job_id], SEEN_DEAD)


def streak(notes: Sequence[Recovery], action: str) -> list[Recovery]:
    """Return the notes of one action after the last other one, oldest first."""
    return list(takewhile(lambda note: note.action == action, reversed(notes)))[::-1]


def _count_since(moments: Sequence[datetime], start: datetime) -> int:
    return sum(at > start for at in moments)


def _helped(notes: Sequence[Recovery], job_id: int, now: datetime) -> int:
    return _count_since([note.at for note in notes if note.job_id == job_id and note.action == FREED], now - DAY)


def note(
    session: Session,
    clock: Clock,
    runs: Iterable[DirectoryRun],
    action: str,
    reason: str,
    *,
    pages: int | None = None,
) -> None:
    """Record an observation or action for the job of each run; `pages` defaults to what its row counts."""
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
                pages=run.execution.items_crawled if pages is None else pages,
            ),
        )


def waiting_for_storage(session: Session) -> list[DirectoryRun]:
    """Return the newest execution with a directory of each job that waits after a machine failure, by job id."""
    newest = (
        select(func.max(Execution.id))
        .join(Job, Job.id == Execution.job_id)
        .where(
            Job.state == "scheduled", Job.infra_retry_count > 0, Job.deleted_at.is_(None), Execution.output_dir != ""
        )
        .group_by(Execution.job_id)
        .scalar_subquery()
    )
    return directory_runs(session, directories().where(Execution.id.in_(newest)).order_by(Job.id))


def notes_since(session: Session, moment: datetime) -> list[Recovery]:
    """Return the notes about the paths of all jobs since a moment, oldest first."""
    query = select(Recovery).where(Recovery.at >= moment, Recovery.action.in_(WORDS))
    return list(session.scalars(query.order_by(Recovery.at, Recovery.id)))
