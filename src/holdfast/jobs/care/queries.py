"""The rows that those look at who look after the directories of executions, and the recoveries of stalled jobs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import NamedTuple

from sqlalchemy import Select, delete, exists, func, or_, select
from sqlalchemy.orm import Session

from holdfast.clock import from_micros
from holdfast.db.models import (
    Execution,
    Job,
    JobEvent,
    Queue,
    Recovery,
    Snapshot,
    Source,
    WarcFile,
)
from holdfast.jobs.journal.events import PROGRESS

_REMEMBERED = timedelta(days=30)
_FORGOTTEN = 20


class Run(NamedTuple):
    """An execution that has a directory, with its job and source."""

    job: Job
    source: Source
    execution: Execution


def _runs() -> Select[Job, Source, Execution]:
    return (
        select(Job, Source, Execution)
        .join(Source, Source.id == Job.source_id)
        .join(Execution, Execution.job_id == Job.id)
        .where(Job.deleted_at.is_(None), Execution.output_dir != "")
    )


def run_of_job(session: Session, job_id: int) -> Run | None:
    """Return a job's newest execution that has a directory."""
    query = _runs().where(Job.id == job_id).order_by(Execution.number.desc()).limit(1)
    row = session.execute(query).one_or_none()
    return None if row is None else Run(row[0], row[1], row[2])


def run_of_execution(session: Session, execution_id: int) -> Run | None:
    """Return one execution, if it has a directory."""
    row = session.execute(_runs().where(Execution.id == execution_id)).one_or_none()
    return None if row is None else Run(row[0], row[1], row[2])


def is_wanted(session: Session, *, job_id: int, output_dir: str) -> bool:
    """Return whether an execution of a job is queued or runs in a directory, or is to go on there."""
    there = select(Execution.id).where(Execution.job_id == job_id, Execution.output_dir == output_dir)
    query = select(Execution.id).where(
        Execution.job_id == job_id, Execution.state.in_(("queued", "running", "stopped")),
        or_(Execution.output_dir == output_dir, Execution.resumed_from.in_(there)),
    )  # fmt: skip
    return session.scalar(query.limit(1)) is not None


def job_exists(session: Session, job_id: int) -> bool:
    """Return whether there is such a job."""
    return session.scalar(select(Job.id).where(Job.id == job_id, Job.deleted_at.is_(None))) is not None


def running(session: Session) -> list[Run]:
    """Return the executions that run now, by job."""
    query = _runs().where(Job.state == "running", Execution.state == "running").order_by(Job.id)
    return [Run(*row) for row in session.execute(query)]


def runs_of_source(session: Session, *, source: str | None, limit: int) -> list[Run]:
    """Return the newest execution with a directory of every job, of one source or of all, newest first."""
    newest = (
        select(func.max(Execution.id))
        .where(Execution.output_dir != "")
        .group_by(Execution.job_id)
        .scalar_subquery()
    )  # fmt: skip
    query = _runs().where(Execution.id.in_(newest)).order_by(Execution.id.desc()).limit(limit)
    return [Run(*row) for row in session.execute(query if source is None else query.where(Source.code == source))]


def has_captures(session: Session, *, execution_id: int) -> bool:
    """Return whether the index has made snapshots of an execution's files."""
    return bool(session.scalar(select(exists().where(Snapshot.execution_id == execution_id))))


def registered(session: Session, *, execution_id: int) -> list[WarcFile]:
    """Return the files of an execution that are not discarded."""
    query = select(WarcFile).where(WarcFile.execution_id == execution_id, WarcFile.state != "discarded")
    return list(session.scalars(query.order_by(WarcFile.id)))


def locked_execution(session: Session, execution_id: int) -> Execution:
    """Return an execution, kept to ourselves until the transaction ends."""
    return session.scalars(select(Execution).where(Execution.id == execution_id).with_for_update()).one()


def annual_jobs(session: Session, *, year: int, sources: Sequence[str]) -> list[tuple[Job, Source]]:
    """Return the jobs of a year's campaign, of some sources or of all."""
    query = (
        select(Job, Source)
        .join(Source, Source.id == Job.source_id)
        .where(Job.kind.in_(("annual", "shard")), Job.deleted_at.is_(None))
        .order_by(Job.id)
    )
    rows = session.execute(query.where(Source.code.in_(sources)) if sources else query)
    return [(row[0], row[1]) for row in rows if row[0].details.get("campaign_year") == year]


def waiting(session: Session, *, after: datetime, limit: int) -> list[Job]:
    """Return the jobs that wait out a backoff, next first; locked. Cooldowns (the machine failed) are left alone."""
    query = (
        select(Job)
        .where(
            Job.next_run_at > after,
            Job.state == "scheduled",
            Job.current_retry_count > 0,
            Job.infra_retry_count == 0,
            Job.deleted_at.is_(None),
            Job.lock_token.is_(None),
        )
        .order_by(Job.next_run_at, Job.id)
        .limit(limit)
        .with_for_update()
    )
    return list(session.scalars(query))


def uncleaned_runs(
    session: Session, *, backends: Sequence[str], before: datetime, after: int, limit: int
) -> list[Run]:  # fmt: skip
    """Return executions of some backends that are indexed, ended before a moment and were never cleaned up, by id."""
    query = (
        _runs()
        .where(Execution.index_state == "indexed", Execution.cleanup_status == "none", Execution.finished_at < before)
        .where(Execution.id > after, Execution.config["backend"].as_string().in_(list(backends)))
        .order_by(Execution.id)
        .limit(limit)
    )
    return [Run(*row) for row in session.execute(query)]


def last_progress(session: Session, run: Run) -> datetime | None:
    """Return when a run's counts last changed, by its events; None if they never did."""
    query = select(JobEvent.at).where(
        JobEvent.job_id == run.job.id, JobEvent.execution_id == run.execution.id, JobEvent.name == PROGRESS
    )
    return session.scalar(query.order_by(JobEvent.id.desc()).limit(1))


def next_due(session: Session, run: Run) -> datetime | None:
    """Return when a run of our own crawler has something to ask for; None if nothing is open."""
    frontier_id = run.execution.frontier_id or run.execution.id
    query = select(func.min(Queue.due_at)).where(Queue.execution_id == frontier_id, Queue.open > 0)
    found = session.scalar(query)
    return None if found is None else from_micros(found)


def newest_directories(session: Session, *, source_id: int, count: int) -> list[str]:
    """Return the directories of a source's newest executions, newest first; a retry in the same one counts as one."""
    newest = func.max(Execution.id).label("newest")
    query = (
        select(Execution.output_dir, newest)
        .join(Job, Job.id == Execution.job_id)
        .where(Job.source_id == source_id, Execution.output_dir != "")
        .group_by(Execution.output_dir)
        .order_by(newest.desc())
        .limit(count)
    )
    return [row[0] for row in session.execute(query)]


def busy_count(session: Session) -> int:
    """Return how many executions are queued or run."""
    query = select(func.count()).select_from(Execution).where(Execution.state.in_(("queued", "running")))
    return session.scalar(query) or 0


def recoveries(session: Session, *, job_ids: Sequence[int], since: datetime) -> list[Recovery]:
    """Return what was done for jobs since a moment, oldest first."""
    query = select(Recovery).where(Recovery.job_id.in_(list(job_ids)), Recovery.at >= since)
    return list(session.scalars(query.order_by(Recovery.at, Recovery.id)))


def add_recovery(session: Session, recovery: Recovery) -> None:
    """Note what was done for a job; the oldest notes go, a few with each new one, once they decide nothing any more."""
    session.add(recovery)
    oldest = select(Recovery.id).order_by(Recovery.id).limit(_FORGOTTEN).scalar_subquery()
    session.execute(
        delete(Recovery)
        .where(Recovery.id.in_(oldest), Recovery.at < recovery.at - _REMEMBERED)
        .execution_options(synchronize_session=False)
    )


def run_in(session: Session, output_dir: str) -> Execution | None:
    """Return the newest execution that has this directory."""
    query = select(Execution).where(Execution.output_dir == output_dir).order_by(Execution.id.desc()).limit(1)
    return session.scalars(query).one_or_none()


def fingerprint(output_dir: str) -> str:
    """Return what tells the job of one registered directory from that of another."""
    return sha256(f"directory {output_dir}".encode()).hexdigest()
