"""The rows that an operator's commands look at."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from holdfast.db.models import Execution, Job


def locked_latest(session: Session, *, job_id: int) -> Execution | None:
    """Return a job's newest execution, and keep it to ourselves until the transaction ends."""
    query = select(Execution).where(Execution.job_id == job_id).order_by(Execution.number.desc()).limit(1)
    return session.scalars(query.with_for_update()).one_or_none()


def retried_ids(session: Session, *, source_id: int | None, states: Sequence[str], limit: int) -> list[int]:
    """Return the jobs, oldest first, that have burnt retries: of one source or of all, in some states or in any."""
    query = select(Job.id).where(
        Job.deleted_at.is_(None), Job.state.is_not(None),
        or_(Job.current_retry_count > 0, Job.infra_retry_count > 0),
    )  # fmt: skip
    if source_id is not None:
        query = query.where(Job.source_id == source_id)
    if states:
        query = query.where(Job.state.in_(states))
    return list(session.scalars(query.order_by(Job.id).limit(limit)))
