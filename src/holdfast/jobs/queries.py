"""The rows of jobs and executions that an import finds or continues, and what executions are called."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from holdfast.db.models import Execution, Job


def job_by_fingerprint(session: Session, *, kind: str, fingerprint: str) -> Job | None:
    """Return the job that crawls the same seeds in the same scope."""
    return session.scalars(
        select(Job).where(Job.kind == kind, Job.fingerprint == fingerprint).order_by(Job.id).limit(1)
    ).one_or_none()


def last_number(session: Session, *, job_id: int) -> int:
    """Return the number of the job's latest execution, 0 if it has none."""
    return session.scalar(select(func.coalesce(func.max(Execution.number), 0)).where(Execution.job_id == job_id)) or 0


def execution_in(session: Session, *, output_dir: str) -> Execution | None:
    """Return the latest execution whose files lie in this folder."""
    return session.scalars(
        select(Execution).where(Execution.output_dir == output_dir).order_by(Execution.id.desc()).limit(1)
    ).one_or_none()


def job_names(session: Session, execution_ids: Iterable[int]) -> dict[int, str | None]:
    """Return the names of the jobs that these executions are runs of; None for a job without one."""
    rows = session.execute(
        select(Execution.id, Job.name)
        .join(Job, Job.id == Execution.job_id)
        .where(Execution.id.in_(sorted(set(execution_ids))))
    )
    return {row[0]: row[1] for row in rows}
