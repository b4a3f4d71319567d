"""Reads and writes `recoveries`: what the watchdogs saw and did for each job; decides how often they may act."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from enum import Enum, auto
from itertools import takewhile
from typing import NamedTuple

from sqlalchemy import ColumnElement, delete, select
from sqlalchemy.orm import Session

from holdfast.clock import Clock
from holdfast.db.models import Recovery
from holdfast.jobs.administration.maintenance import DirectoryRun

HOUR, DAY = timedelta(hours=1), timedelta(hours=24)
REMEMBERED = timedelta(days=30)
"""How long recovery actions count."""
_FORGOTTEN = 20


class Rate(NamedTuple):
    """How often a watchdog may act."""

    pause_s: float
    """Since its last action: it takes a while until one shows."""
    most: tuple[tuple[timedelta, int], ...]
    """The most actions within each span."""


class Refusal(Enum):
    PAUSE = auto()
    TOO_OFTEN = auto()


def refused(acted_at: Sequence[datetime], rate: Rate, *, now: datetime) -> Refusal | None:
    """Return why no action may follow those of these moments now; None if one may."""
    if acted_at and (now - max(acted_at)).total_seconds() < rate.pause_s:
        return Refusal.PAUSE
    is_often = any(sum(at > now - span for at in acted_at) >= most for span, most in rate.most)
    return Refusal.TOO_OFTEN if is_often else None


def recoveries(session: Session, which: ColumnElement[bool], *, since: datetime) -> list[Recovery]:
    """Return the observations and actions since a moment that meet a condition, oldest first."""
    query = select(Recovery).where(which, Recovery.at >= since)
    return list(session.scalars(query.order_by(Recovery.at, Recovery.id)))


def streak(notes: Sequence[Recovery], action: str) -> list[Recovery]:
    """Return the notes of one action after the last other one, oldest first."""
    return list(takewhile(lambda note: note.action == action, reversed(notes)))[::-1]


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


def add_recovery(session: Session, recovery: Recovery) -> None:
    """Log a recovery action; each call also deletes a few of the oldest that no longer affect a decision."""
    session.add(recovery)
    # Delete a few with each new row: the table stays small without a separate task.
    oldest = select(Recovery.id).order_by(Recovery.id).limit(_FORGOTTEN).scalar_subquery()
    session.execute(
        delete(Recovery)
        .where(Recovery.id.in_(oldest), Recovery.at < recovery.at - REMEMBERED)
        .execution_options(synchronize_session=False)
    )
