"""The rows of jobs and executions."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from holdfast.db.models import Execution, ExecutionCount, Job, Source
from holdfast.db.models.frontier import Queue

OPEN = ("running", "stopped")


def job_by_fingerprint(session: Session, *, kind: str, fingerprint: str) -> Job | None:
    """Return the job that crawls the same seeds in the same scope."""
    return session.scalars(
        select(Job).where(Job.kind == kind, Job.fingerprint == fingerprint).order_by(Job.id).limit(1)
    ).one_or_none()


def open_execution(session: Session, *, job_id: int) -> Execution | None:
    """Return the job's unfinished execution; there is at most one."""
    return session.scalars(
        select(Execution).where(Execution.job_id == job_id, Execution.state.in_(OPEN)).order_by(Execution.id).limit(1)
    ).one_or_none()


def last_number(session: Session, *, job_id: int) -> int:
    """Return the number of the job's latest execution, 0 if it has none."""
    return session.scalar(select(func.coalesce(func.max(Execution.number), 0)).where(Execution.job_id == job_id)) or 0


def execution(session: Session, execution_id: int) -> Execution | None:
    """Return one execution."""
    return session.get(Execution, execution_id)


def latest_executions(session: Session, *, limit: int, states: tuple[str, ...] | None = None) -> list[Execution]:
    """Return the newest executions, newest first."""
    query = select(Execution).order_by(Execution.id.desc()).limit(limit)
    return list(session.scalars(query.where(Execution.state.in_(states)) if states else query))


def source_of(session: Session, *, job_id: int) -> Source:
    """Return the source that a job crawls."""
    return session.scalars(select(Source).join(Job, Job.source_id == Source.id).where(Job.id == job_id)).one()


def counts_of(session: Session, *, execution_id: int) -> list[tuple[datetime, dict[str, Any]]]:
    """Return the running totals of each process of an execution, and when they were written."""
    rows = session.execute(
        select(ExecutionCount.updated_at, ExecutionCount.counts)
        .where(ExecutionCount.execution_id == execution_id)
        .order_by(ExecutionCount.owner_id)
    )
    return [(row[0], row[1]) for row in rows]


def queue_of(session: Session, *, execution_id: int) -> int:
    """Return how many attempts of an execution are open."""
    total = session.scalar(select(func.coalesce(func.sum(Queue.open), 0)).where(Queue.execution_id == execution_id))
    return int(total or 0)
