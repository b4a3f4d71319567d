"""How much history is kept: a job's newest hundred executions or the last thirty days, whichever is less (NC-026).

Pruning lets go of logs, metrics and stacks. The row itself goes only if no file, page or edition refers to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import delete, exists, func, select, update
from sqlalchemy.orm import Session, aliased

from holdfast.db.models import (
    Change,
    Execution,
    ExecutionCount,
    Hold,
    Job,
    Owner,
    PageCrawl,
    Queue,
    Snapshot,
    WarcFile,
)
from holdfast.jobs.journal import drop_lines

_CLOSED = ("completed", "failed", "cancelled")


def beyond(session: Session, *, job_id: int, number: int) -> list[int]:
    """Return the closed, unpruned executions of a job up to this number."""
    return list(
        session.scalars(
            select(Execution.id).where(
                Execution.job_id == job_id,
                Execution.number <= number,
                Execution.pruned_at.is_(None),
                Execution.state.in_(_CLOSED),
            )
        )
    )


def aged(session: Session, *, before: datetime, limit: int) -> list[int]:
    """Return the closed, unpruned executions that ended before a moment, oldest first."""
    return list(
        session.scalars(
            select(Execution.id)
            .where(
                Execution.finished_at < before,
                Execution.finished_at.is_not(None),
                Execution.pruned_at.is_(None),
                Execution.state.in_(_CLOSED),
            )
            .order_by(Execution.finished_at, Execution.id)
            .limit(limit)
        )
    )


def strip(session: Session, ids: Sequence[int], *, now: datetime) -> None:
    """Let go of the stacks and metrics of executions."""
    session.execute(
        update(Execution)
        .where(Execution.id.in_(ids))
        .values(stack=None, metrics={}, pruned_at=now)
        .execution_options(synchronize_session=False)
    )


def forget(session: Session, ids: Sequence[int]) -> int:
    """Remove those of the executions that nothing refers to, never a job's latest; return how many."""
    later = aliased(Execution)
    newest = select(func.max(later.id)).where(later.job_id == Execution.job_id).scalar_subquery()
    referring = [
        exists().where(table.execution_id == Execution.id)
        for table in (WarcFile, PageCrawl, Snapshot, Owner, Queue, ExecutionCount)
    ]
    retried = aliased(Execution)
    referring.append(exists().where(retried.job_id == Execution.job_id, retried.resumed_from == Execution.id))
    referring.append(exists().where(Change.to_execution_id == Execution.id))
    referring.append(exists().where(Job.id == Execution.job_id, Job.edition_id.is_not(None)))
    gone = session.scalars(
        delete(Execution)
        .where(Execution.id.in_(ids), Execution.id < newest, *(~refers for refers in referring))
        .returning(Execution.id)
        .execution_options(synchronize_session=False)
    ).all()
    if gone:
        session.execute(delete(Hold).where(Hold.execution_id.in_(gone)))
    return len(gone)


_LINES = 10_000
"""Lines of logs that one transaction removes: SQLite takes 0.1 s for them (measured)."""


class Pruned(NamedTuple):
    """What a pruning let go of."""

    stripped: int
    removed: int
    is_all: bool = True
    """Whether there was time for all that was found."""


def prune_beyond(session: Session, *, job_id: int, number: int, now: datetime) -> Pruned:
    """Prune the executions of a job up to this number; called as each run ends, so it finds one or two."""
    return _prune(session, beyond(session, job_id=job_id, number=number) if number > 0 else [], now)


def prune_aged(session: Session, *, before: datetime, now: datetime, limit: int = 100, lines: int = _LINES) -> Pruned:
    """Prune executions that ended before a moment, so many of them and of their lines: a transaction stays short."""
    return _prune(session, aged(session, before=before, limit=limit), now, lines=lines)


def anything_aged(session: Session, *, before: datetime) -> bool:
    """Return whether an execution is old enough to be pruned."""
    return bool(aged(session, before=before, limit=1))


def _prune(session: Session, ids: Sequence[int], now: datetime, *, lines: int = _LINES) -> Pruned:
    """Prune as many of these as one short transaction can: those whose log is too long for it lose a part of it."""
    room, done = lines, []
    for execution_id in ids:
        room -= drop_lines(session, execution_id=execution_id, limit=room)
        if room <= 0:
            break
        done.append(execution_id)
    if done:
        strip(session, done, now=now)
    return Pruned(len(done), forget(session, done) if done else 0, is_all=room > 0)
