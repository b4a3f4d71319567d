"""The rows of jobs, as those who manage them read and change them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from holdfast.db.models import Execution, Job, Source
from holdfast.errors import Invalid
from holdfast.jobs.slots import ScheduledTurn

_ODD = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST = 80


def execution_name(source_code: str, execution_id: int, job_name: str | None = None) -> str:
    """Return its job's name, or the source's code where the job has none, and the execution's number."""
    return f"{job_name or source_code}-{execution_id}"


def folder_name(source_code: str, execution_id: int, job_name: str | None) -> str:
    """Return the same with nothing in it that a path could stumble over: a job may be called anything."""
    plain = _ODD.sub("-", job_name or "")[:_LONGEST].strip("-.")
    return execution_name(source_code, execution_id, plain)


UNITS: Final = {"minutes": timedelta(minutes=1), "hours": timedelta(hours=1), "days": timedelta(days=1)}
LONGEST: Final = timedelta(days=3660)


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
    if number > LONGEST // UNITS[unit]:
        raise IntervalRefused("interval_minutes", "ten years at most")
    return number * UNITS[unit]


CRAWL, FEED = "crawl", "feed"
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
    """Return a source, and let nobody else make a job for it until the transaction ends."""
    # Not its key: PostgreSQL looks at that when a transaction writes a job's row twice, and would wait in a circle.
    query = select(Source).where(Source.id == source_id).with_for_update(key_share=True)
    return session.scalars(query).one_or_none()


def locked_both(session: Session, job_id: int) -> tuple[Job, Source] | None:
    """Return a job that is not deleted and its source, both locked; None if there is none.

    The source first, as everywhere (decision 0012): two who change the same job never wait for each other.
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


def turns(session: Session) -> list[ScheduledTurn]:
    """Return every scheduled job as the slots see it, and recurring ones that run."""
    rows = session.execute(
        select(
            Job.id,
            Job.interval_minutes,
            Job.interval_type,
            Job.next_run_at,
            Job.placed_at,
            Job.state,
            Job.schedule_enabled,
        )
        .where(Job.state.in_(("scheduled", "running")), Job.deleted_at.is_(None))
        .order_by(Job.id)
    )
    found = []
    for job_id, number, unit, moment, placed_at, state, enabled in rows:
        interval = number * UNITS[unit] if enabled and number is not None else timedelta()
        if interval or state == "scheduled":
            found.append(
                ScheduledTurn(
                    job_id=job_id,
                    interval=interval,
                    next_run_at=moment,
                    placed_at=placed_at,
                    running=state == "running",
                )
            )
    return found


class DueJob(NamedTuple):
    """A job and when it is due, for the slot table."""

    job_id: int
    next_run_at: datetime | None
    interval: timedelta | None


def waiting(session: Session, *, since: datetime | None = None) -> list[DueJob]:
    """Return what waits for its turn: everything, or what changed since a moment (then also what waits no longer)."""
    query = select(Job.id, Job.next_run_at, Job.interval_minutes, Job.interval_type)
    query = query.where(Job.next_run_at.is_not(None) if since is None else Job.updated_at >= since)
    return [
        DueJob(row[0], row[1], None if row[2] is None else row[2] * UNITS[row[3]]) for row in session.execute(query)
    ]


def shift(session: Session, *, job_id: int, old: datetime, new: datetime, now: datetime) -> bool:
    """Move a job to another time if nothing happened to it since it was looked at; False if something did."""
    moved = session.scalars(
        update(Job)
        .where(Job.id == job_id, Job.state == "scheduled", Job.next_run_at == old)
        .values(next_run_at=new, rhythm_at=new, placed_at=now, updated_at=now)
        .returning(Job.id)
        .execution_options(synchronize_session=False)
    )
    return moved.one_or_none() is not None
