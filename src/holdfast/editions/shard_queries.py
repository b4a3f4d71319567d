"""The rows of jobs that an annual campaign made, with their executions; and the marks that editions put on them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from holdfast.db.models import Execution, Job
from holdfast.jobs.views.listing import Latest, admin_state

ANNUAL, SHARD = "annual", "shard"


class ShardState(NamedTuple):
    """A job, its newest execution, and the word that operators see for both."""

    job: Job
    latest: Execution | None
    status: str


def of_edition(session: Session, edition_id: int) -> list[ShardState]:
    """Return the shards of an edition, in the order in which they were made."""
    found = select(Job).where(Job.edition_id == edition_id, Job.deleted_at.is_(None)).order_by(Job.id)
    return standing(session, session.scalars(found))


def of_source(session: Session, source_id: int) -> list[ShardState]:
    """Return every job of a source that is not deleted, oldest first."""
    found = select(Job).where(Job.source_id == source_id, Job.deleted_at.is_(None)).order_by(Job.id)
    return standing(session, session.scalars(found))


def standing(session: Session, jobs: Iterable[Job]) -> list[ShardState]:
    """Return jobs with the newest execution of each."""
    rows = list(jobs)
    newest = (
        select(func.max(Execution.id)).where(Execution.job_id.in_([row.id for row in rows])).group_by(Execution.job_id)
    )
    latest = {row.job_id: row for row in session.scalars(select(Execution).where(Execution.id.in_(newest)))}
    return [ShardState(row, latest.get(row.id), _status(row, latest.get(row.id))) for row in rows]


def _status(job: Job, latest: Execution | None) -> str:
    seen = None if latest is None else Latest(latest.state, latest.index_state)
    tried = job.current_retry_count + job.infra_retry_count
    return admin_state(job.state, retries=tried, latest=seen, failed=job.error_message is not None)


def job_of_edition(session: Session, job_id: int) -> Job | None:
    """Return a job that belongs to an edition, kept to ourselves until the transaction ends; None if it does not."""
    return session.scalars(
        select(Job).where(Job.id == job_id, Job.edition_id.is_not(None), Job.deleted_at.is_(None)).with_for_update()
    ).one_or_none()


def edition_of(session: Session, job_id: int) -> int | None:
    """Return the edition that a job is part of."""
    return session.scalar(select(Job.edition_id).where(Job.id == job_id, Job.deleted_at.is_(None)))


def executions_of(session: Session, job_ids: Collection[int]) -> list[Execution]:
    """Return what these jobs ran, oldest first; what waits and was never begun is left out."""
    return list(
        session.scalars(
            select(Execution)
            .where(Execution.job_id.in_(job_ids), Execution.started_at.is_not(None))
            .order_by(Execution.id)
        )
    )


def attach(job: Job, *, edition_id: int, key: str, kind: str, now: datetime) -> None:
    """Make a job part of an edition."""
    job.edition_id, job.shard_key, job.shard_kind, job.updated_at = edition_id, key, kind, now
    job.acceptance_state = job.acceptance_state or "pending"


def mark(job: Job, acceptance: str, *, now: datetime, details: dict[str, Any] | None = None) -> None:
    """Write what is decided about a shard; details are added to the job's own."""
    if job.acceptance_state == acceptance and not details:
        return
    job.acceptance_state, job.updated_at = acceptance, now
    if details:
        job.details = {**job.details, **details}
