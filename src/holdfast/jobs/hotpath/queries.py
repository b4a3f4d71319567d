"""The rows that the watch over storage reads: which directories jobs need now, and what was noted about them."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from holdfast.db.models import Execution, Job, Recovery, Source
from holdfast.jobs.care.queries import Run
from holdfast.jobs.hotpath.deciding import WORDS, Note


def waiting_for_storage(session: Session) -> list[Run]:
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
    return [Run(*row) for row in session.execute(query)]


def notes_since(session: Session, moment: datetime) -> list[Note]:
    """Return what was noted about the paths of all jobs since a moment, oldest first."""
    query = (
        select(Recovery.job_id, Recovery.at, Recovery.action)
        .where(Recovery.at >= moment, Recovery.action.in_(WORDS))
        .order_by(Recovery.at, Recovery.id)
    )
    return [Note(*row) for row in session.execute(query)]
