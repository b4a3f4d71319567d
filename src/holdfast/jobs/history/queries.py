"""Which executions have grown old, and what still refers to them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

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

_CLOSED = ("completed", "failed", "cancelled")


def beyond(session: Session, *, job_id: int, number: int) -> list[int]:
    """Return the closed, unpruned executions of a job up to this number."""
    return list(
        session.scalars(
            select(Execution.id).where(
                Execution.job_id == job_id, Execution.number <= number, Execution.pruned_at.is_(None),
                Execution.state.in_(_CLOSED),
            )
        )
    )  # fmt: skip


def aged(session: Session, *, before: datetime, limit: int) -> list[int]:
    """Return the closed, unpruned executions that ended before a moment, oldest first."""
    return list(
        session.scalars(
            select(Execution.id)
            .where(
                Execution.finished_at < before, Execution.finished_at.is_not(None), Execution.pruned_at.is_(None),
                Execution.state.in_(_CLOSED),
            )
            .order_by(Execution.finished_at, Execution.id)
            .limit(limit)
        )
    )  # fmt: skip


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
