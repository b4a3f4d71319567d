"""Queries and updates of job rows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, and_, literal_column, select
from sqlalchemy.orm import Session

from holdfast.db.models import Execution, Job, Source
from holdfast.errors import Invalid, NotFound
from holdfast.jobs.kinds import CRAWL, FEED, IMPORT
from holdfast.sources.schedule import LONGEST, UNITS, Schedule, schedule_of

# A job may have any name, a directory may not: a path with a slash or dots would point elsewhere.
_ODD = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST = 80


def execution_name(source_code: str, execution_id: int, job_name: str | None = None) -> str:
    """Return the job's name, or else its source's code, followed by the execution's number."""
    return f"{job_name or source_code}-{execution_id}"


def folder_name(source_code: str, execution_id: int, job_name: str | None) -> str:
    """Return the execution's name as a safe path component: a job may have any name."""
    return execution_name(source_code, execution_id, plain_name(job_name))


def plain_name(job_name: str | None) -> str:
    """Return a job's name reduced to letters, digits, dots and dashes; may be empty."""
    return _ODD.sub("-", job_name or "")[:_LONGEST].strip("-.")


class JobNotFound(NotFound):
    """The job does not exist, or was deleted."""

    code = "job_not_found"
    summary = "Job not found"

    def __init__(self) -> None:
        super().__init__("Job not found; see them with: holdfast job list, or GET /api/v1/jobs")


class ExecutionNotFound(NotFound):
    """The run does not exist, or the job has no run with this number."""

    code = "execution_not_found"
    summary = "Execution not found"
    sentence = "Execution not found; see a job's at GET /api/v1/jobs/{id}/executions"


class IntervalRefused(Invalid):
    """Not a valid interval for a job."""

    code = "interval_refused"

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field


def interval_of(number: int | None, unit: str = "minutes") -> timedelta | None:
    """Return the time between two runs, None for a job that runs once; raise IntervalRefused naming the field."""
    if unit not in UNITS:
        raise IntervalRefused("interval_type", f"{unit[:40]!r} is not one of {', '.join(UNITS)}")
    if number is None:
        return None
    if number <= 0:
        raise IntervalRefused("interval_minutes", "it must be greater than 0; leave it out for a job that runs once")
    # Checked before multiplying: a timedelta of more than 2.7 million years overflows.
    if number > LONGEST // UNITS[unit]:
        raise IntervalRefused("interval_minutes", "ten years at most")
    return number * UNITS[unit]


def schedule_of_job(job: Job) -> Schedule | None:
    if not job.schedule_enabled:
        return None
    return schedule_of(job.interval_minutes, job.interval_type, job.anchor, adapts=job.adaptive_scheduling)


OPEN: Final = ("queued", "running", "stopped")
"""States of an execution that has not ended; a job has at most one."""
OVER: Final = ("completed", "failed", "cancelled")
# Number of values per IN: older versions of SQLite bind at most 999.
_AT_ONCE = 500


def of_source() -> ColumnElement[bool]:
    """Select the jobs of sources: crawls, feeds and imports. The job of an operation has no source."""
    return Job.source_id.is_not(None)


def is_open_operation() -> ColumnElement[bool]:
    """Return the condition for jobs of operations that have not ended, in the words of their index."""
    words: list[ColumnElement[str]] = [literal_column(f"'{state}'") for state in ("pending", "scheduled", "running")]
    return and_(Job.source_id.is_(None), Job.state.in_(words))


def open_operations() -> Select[int]:
    """Select the jobs of operations that have not ended, by their index: workers ask each second."""
    # With a range of its key, or SQLite would take the index of states, and read all jobs that wait for their turn.
    return select(Job.id).where(is_open_operation(), Job.fingerprint > "").correlate(None)


def locked_job(session: Session, job_id: int) -> Job | None:
    """Return a job of a source that is not deleted, locked until the transaction ends."""
    wanted = select(Job).where(Job.id == job_id, Job.deleted_at.is_(None), of_source())
    return session.scalars(wanted.with_for_update()).one_or_none()


def job(session: Session, job_id: int) -> Job | None:
    return session.scalars(select(Job).where(Job.id == job_id, Job.deleted_at.is_(None), of_source())).one_or_none()


def locked_source(session: Session, source_id: int) -> Source | None:
    """Return a source, locked so that no other process creates a job for it until the transaction ends."""
    # Do not lock its key: PostgreSQL checks that when a transaction writes a job's row twice, and would deadlock. This
    # row lock ensures that two requests for the same source's job create one job.
    query = select(Source).where(Source.id == source_id).with_for_update(key_share=True)
    return session.scalars(query).one_or_none()


def locked_both(session: Session, job_id: int) -> tuple[Job, Source]:
    """Return a job and its source, both locked; raise JobNotFound, also for ad-hoc crawls and imports.

    The source is locked first, as everywhere (decision 0012), so that two transactions cannot deadlock.
    """
    source_id = session.scalar(select(Job.source_id).where(Job.id == job_id))
    source = None if source_id is None else locked_source(session, source_id)
    if source is None:
        raise JobNotFound
    return scheduled_job(session, job_id), source


def scheduled_job(session: Session, job_id: int) -> Job:
    """Return a job, locked; raise JobNotFound, also for ad-hoc crawls and imports, which the scheduler does not run."""
    job = locked_job(session, job_id)
    if job is None or job.state is None:
        raise JobNotFound
    return job


def locked_execution(session: Session, execution_id: int) -> Execution:
    """Return an execution, reloaded and locked. Its job is locked first, as everywhere."""
    query = select(Execution).where(Execution.id == execution_id).with_for_update()
    # Its worker may have settled it since the session loaded it.
    return session.scalars(query.execution_options(populate_existing=True)).one()


def crawl_job(session: Session, *, source_id: int, kind: str = CRAWL) -> Job | None:
    """Return the one unfinished crawl job of a source (or the one that polls its feeds), locked."""
    return session.scalars(
        select(Job)
        .where(Job.source_id == source_id, Job.kind == kind, Job.state != "cancelled", Job.deleted_at.is_(None))
        .with_for_update()
    ).one_or_none()


def intervals_of_kind(session: Session, *, kind: str) -> dict[int, tuple[int | None, str]]:
    """Return the sources that have an unfinished job of this kind, with its interval and unit."""
    query = select(Job.source_id, Job.interval_minutes, Job.interval_type)
    query = query.where(Job.kind == kind, Job.state != "cancelled", Job.deleted_at.is_(None), of_source())
    return {row[0]: (row[1], row[2]) for row in session.execute(query) if row[0] is not None}


def schedules_of_sources(session: Session, source_ids: Sequence[int]) -> dict[int, Schedule]:
    query = select(Job).where(Job.kind == CRAWL, Job.state != "cancelled", Job.deleted_at.is_(None))
    found: dict[int, Schedule] = {}
    for at in range(0, len(source_ids), _AT_ONCE):
        for job in session.scalars(query.where(Job.source_id.in_(source_ids[at : at + _AT_ONCE]))):
            if job.source_id is not None and (schedule := schedule_of_job(job)) is not None:
                found[job.source_id] = schedule
    return found


def has_executions(session: Session, *, job_id: int) -> bool:
    return session.scalar(select(Execution.id).where(Execution.job_id == job_id).limit(1)) is not None


def open_execution(session: Session, *, job_id: int) -> Execution | None:
    """Return a job's queued, running or stopped execution, locked; there is at most one."""
    return session.scalars(
        select(Execution).where(Execution.job_id == job_id, Execution.state.in_(OPEN)).with_for_update()
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


OWN: Final = ("native", FEED)
"""Backends that are our own crawler, which registers its files itself."""


def backend_of(kind: str, *configs: Mapping[str, Any]) -> str:
    """Return the backend of a job of this kind: from the first configuration that names one, else our own crawler.

    Feeds are always polled by our own crawler, whatever crawls the source.
    """
    if kind == FEED:
        return FEED
    # The job's own configuration comes before its source's: a job may try another backend.
    return next((str(config["backend"]) for config in configs if config.get("backend")), "native")


def is_own_run(kind: str, ran_with: Mapping[str, Any], *configs: Mapping[str, Any]) -> bool:
    """Return whether a started run is one of our own crawler, by the configuration it runs with.

    The configurations of its job and source count only until the runner has written that: they may have changed
    since.
    """
    if kind == IMPORT:
        return False
    return backend_of(kind, *((ran_with,) if ran_with else configs)) in OWN
