"""The rows of jobs: read, locked and changed by what manages them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from holdfast.db.models import Execution, Job, Source
from holdfast.errors import Invalid, NotFound
from holdfast.sources.schedule import LONGEST, UNITS, Schedule, schedule_of

# A job may be called anything; a directory is not, for a path with a slash or dots would lead elsewhere.
_ODD = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST = 80


def execution_name(source_code: str, execution_id: int, job_name: str | None = None) -> str:
    """Return its job's name, or the source's code where the job has none, and the execution's number."""
    return f"{job_name or source_code}-{execution_id}"


def folder_name(source_code: str, execution_id: int, job_name: str | None) -> str:
    """Return the same with nothing in it that a path could stumble over: a job may be called anything."""
    return execution_name(source_code, execution_id, plain_name(job_name))


def plain_name(job_name: str | None) -> str:
    """Return a job's name with letters, digits, dots and dashes only; empty if nothing is left."""
    return _ODD.sub("-", job_name or "")[:_LONGEST].strip("-.")


class JobNotFound(NotFound):
    """There is no such job, or it was deleted."""

    code = "job_not_found"
    summary = "Job not found"

    def __init__(self) -> None:
        super().__init__("Job not found; see them with: holdfast job list, or GET /api/v1/jobs")


class IntervalRefused(Invalid):
    """This is no interval at which a job can run."""

    code = "interval_refused"

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field


def interval_of(number: int | None, unit: str = "minutes") -> timedelta | None:
    """Return the time between two runs, None for a job that runs once; IntervalRefused names the field at fault."""
    if unit not in UNITS:
        raise IntervalRefused("interval_type", f"{unit[:40]!r} is none of {', '.join(UNITS)}")
    if number is None:
        return None
    if number <= 0:
        raise IntervalRefused("interval_minutes", "it must be greater than 0; leave it out for a job that runs once")
    # Checked before multiplying: a timedelta of more than 2.7 million years overflows.
    if number > LONGEST // UNITS[unit]:
        raise IntervalRefused("interval_minutes", "ten years at most")
    return number * UNITS[unit]


def schedule_of_job(job: Job) -> Schedule | None:
    """Return when a job recurs; None for one that runs once."""
    if not job.schedule_enabled:
        return None
    return schedule_of(job.interval_minutes, job.interval_type, job.anchor, adapts=job.adaptive_scheduling)


# Values of one IN: SQLite binds 999 at most in older versions.
_AT_ONCE = 500
CRAWL, FEED, IMPORT = "crawl", "feed", "import"
UNCAPPED = ("annual", "shard")
"""Kinds that are bounded by their scope alone, never by a number of pages or a depth."""


def locked_job(session: Session, job_id: int) -> Job | None:
    """Return a job that is not deleted, and keep it to ourselves until the transaction ends."""
    return session.scalars(
        select(Job).where(Job.id == job_id, Job.deleted_at.is_(None)).with_for_update()
    ).one_or_none()


def job(session: Session, job_id: int) -> Job | None:
    """Return a job that is not deleted."""
    return session.scalars(select(Job).where(Job.id == job_id, Job.deleted_at.is_(None))).one_or_none()


def source_of_job(session: Session, job_id: int) -> int | None:
    """Return the id of the source that a job crawls."""
    return session.scalar(select(Job.source_id).where(Job.id == job_id))


def locked_source(session: Session, source_id: int) -> Source | None:
    """Return a source, and let no other process make a job for it until the transaction ends."""
    # Not its key: PostgreSQL looks at that when a transaction writes a job's row twice, and would wait in a circle.
    # The lock of one row is what makes two starts of the same source's job one job.
    query = select(Source).where(Source.id == source_id).with_for_update(key_share=True)
    return session.scalars(query).one_or_none()


def locked_both(session: Session, job_id: int) -> tuple[Job, Source] | None:
    """Return a job that is not deleted and its source, both locked; None if there is none.

    The source first, as everywhere (decision 0012): two transactions that change one job never wait in a circle.
    """
    source_id = source_of_job(session, job_id)
    source = None if source_id is None else locked_source(session, source_id)
    job = None if source is None else locked_job(session, job_id)
    return None if job is None or source is None else (job, source)


def crawl_job(session: Session, *, source_id: int, kind: str = CRAWL) -> Job | None:
    """Return the one crawl job of a source (or the one that polls its feeds) that is not over for good, locked."""
    return session.scalars(
        select(Job)
        .where(Job.source_id == source_id, Job.kind == kind, Job.state != "cancelled", Job.deleted_at.is_(None))
        .with_for_update()
    ).one_or_none()


def intervals_of_kind(session: Session, *, kind: str) -> dict[int, tuple[int | None, str]]:
    """Return the sources that have a job of this kind which is not over for good, with its interval and unit."""
    query = select(Job.source_id, Job.interval_minutes, Job.interval_type)
    query = query.where(Job.kind == kind, Job.state != "cancelled", Job.deleted_at.is_(None))
    return {row[0]: (row[1], row[2]) for row in session.execute(query)}


def schedules_of_sources(session: Session, source_ids: Sequence[int]) -> dict[int, Schedule]:
    """Return the schedules of these sources' crawl jobs that recur."""
    query = select(Job).where(Job.kind == CRAWL, Job.state != "cancelled", Job.deleted_at.is_(None))
    found: dict[int, Schedule] = {}
    for at in range(0, len(source_ids), _AT_ONCE):
        for job in session.scalars(query.where(Job.source_id.in_(source_ids[at : at + _AT_ONCE]))):
            if (schedule := schedule_of_job(job)) is not None:
                found[job.source_id] = schedule
    return found


def insert_job(session: Session, made: Job) -> Job:
    """Add a job and give it its id."""
    session.add(made)
    session.flush()
    return made


def delete_job(session: Session, made: Job) -> None:
    """Remove a job that never ran."""
    session.delete(made)
    session.flush()


def has_executions(session: Session, *, job_id: int) -> bool:
    """Return whether a job ever ran or was queued."""
    return session.scalar(select(Execution.id).where(Execution.job_id == job_id).limit(1)) is not None


def open_execution(session: Session, *, job_id: int) -> Execution | None:
    """Return the execution of a job that is queued, running or stopped, locked; there is at most one."""
    return session.scalars(
        select(Execution)
        .where(Execution.job_id == job_id, Execution.state.in_(("queued", "running", "stopped")))
        .with_for_update()
    ).one_or_none()


def jobs_of_source(session: Session, *, source_id: int, states: Sequence[str]) -> list[Job]:
    """Return the jobs of a source in these states, locked."""
    return list(
        session.scalars(
            select(Job)
            .where(Job.source_id == source_id, Job.state.in_(states), Job.deleted_at.is_(None))
            .order_by(Job.id)
            .with_for_update()
        )
    )
