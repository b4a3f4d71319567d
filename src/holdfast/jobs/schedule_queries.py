"""Statements of the scheduler and of workers that hold jobs: claims compare and set, and every write is fenced.

Rows are locked in one order everywhere (job, execution, hold, hour, events), so that no deadlock can occur.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, and_, bindparam, exists, func, insert, literal, or_, select, text, update
from sqlalchemy.orm import Session

from holdfast.db.engine import insert_into
from holdfast.db.models import Domain, Execution, Hold, Job, Owner, Page, PageCrawl, RunHour, Source
from holdfast.db.models.base import Moment
from holdfast.jobs.pauses import AWAY, end_pause
from holdfast.jobs.states import SCHEDULABLE, State, sources_of
from holdfast.jobs.store import open_operations
from holdfast.processes.leases import REOPEN, has_ended
from holdfast.records import Operator, record

_OPEN = ("queued", "running", "stopped")
_WAITING = tuple(sorted(SCHEDULABLE))
_STARTABLE = tuple(sorted(sources_of(State.RUNNING)))


class LeaseClaim(NamedTuple):
    """The job, and the token and epoch of its lease, that a write must match."""

    job_id: int
    token: str
    epoch: int


def anything_due(session: Session, *, now: datetime) -> bool:
    """Return whether a job is due: one index seek."""
    query = select(Job.id).where(Job.next_run_at <= now).order_by(Job.next_run_at, Job.id).limit(1)
    return session.scalar(query) is not None


def claim_due(session: Session, *, now: datetime, limit: int) -> list[int]:
    """Clear the next run time of due jobs, earliest first, and return their ids: each goes to one caller only."""
    # The function around the state makes SQLite use the index of the time: otherwise it would scan all scheduled jobs.
    waits = func.coalesce(Job.state, "").in_(_WAITING)
    due = and_(Job.next_run_at <= now, waits, Job.lock_token.is_(None), Job.deleted_at.is_(None))
    ids = session.scalars(
        select(Job.id)
        .join(Source, Source.id == Job.source_id)
        .where(due, Source.enabled)
        .order_by(Job.next_run_at, Job.id)
        .limit(limit)
        # Skip jobs that another scheduler is claiming now: neither waits for the other.
        .with_for_update(of=Job, skip_locked=True)
    ).all()
    if not ids:
        return []
    # Compare and set: a faster scheduler has cleared `next_run_at`.
    claimed = session.scalars(
        update(Job)
        .where(Job.id.in_(ids), due)
        .values(due_at=Job.next_run_at, next_run_at=None, updated_at=now)
        .returning(Job.id)
        .execution_options(synchronize_session=False)
    )
    return sorted(claimed)


_ENQUEUE = text(
    "INSERT INTO executions (job_id, number, state, config, output_dir, created_at, run_seconds, due_at, queued_at,"
    " retry_attempt, resumed_from, directory)"
    " SELECT j.id, 1 + coalesce((SELECT max(e.number) FROM executions e WHERE e.job_id = j.id), 0), 'queued', '{}', '',"
    " :now, 0, j.due_at, j.due_at, j.current_retry_count,"
    " CASE WHEN j.current_retry_count + j.infra_retry_count > 0"
    # Only a counted retry continues where the last run ended: a new plan or a requested run starts from scratch.
    " THEN (SELECT max(e.id) FROM executions e WHERE e.job_id = j.id) END,"
    " CASE WHEN j.current_retry_count + j.infra_retry_count > 0"
    " THEN (SELECT e.directory FROM executions e WHERE e.job_id = j.id ORDER BY e.id DESC LIMIT 1) END"
    " FROM jobs j WHERE j.id IN :ids ORDER BY j.due_at, j.id ON CONFLICT DO NOTHING RETURNING id, job_id"
).bindparams(bindparam("ids", expanding=True), bindparam("now", type_=Moment()))


def enqueue(session: Session, ids: Sequence[int], *, now: datetime) -> dict[int, int]:
    """Queue one execution for each job; return them by job. Unique keys enforce one per turn, one open per job."""
    return {row[1]: row[0] for row in session.execute(_ENQUEUE, {"ids": list(ids), "now": now})}


def unstick(session: Session, ids: Sequence[int], *, moment: datetime) -> None:
    """Set a new next run time for jobs that were claimed although their turn had run already."""
    opened = exists().where(Execution.job_id == Job.id, Execution.state.in_(_OPEN))
    session.execute(
        update(Job)
        .where(Job.id.in_(ids), ~opened)
        .values(next_run_at=moment, updated_at=moment)
        .execution_options(synchronize_session=False)
    )


def last_worker(session: Session, directory: str) -> tuple[str, datetime] | None:
    """Return host and heartbeat of the worker that last used a data directory; None if it was never used."""
    query = select(Owner.host, Owner.heartbeat_at).where(Owner.directory == directory)
    row = session.execute(query.order_by(Owner.heartbeat_at.desc()).limit(1)).one_or_none()
    return None if row is None else (row[0], row[1])


def next_queued(
    session: Session,
    *,
    now: datetime,
    kinds: Sequence[str] | None = None,
    job_id: int | None = None,
    directory: str | None = None,
    operations: bool = False,
) -> tuple[int, int, bool] | None:
    """Return the longest queued execution, its job, and whether the job may start it or has started it.

    Excludes executions before their time and of disabled sources; limited to these kinds or this job, if given.
    With `directory`, excludes those whose files are in another data directory, unless all of its workers are
    dead. With `operations`, return one of these instead of a source's, unless it is paused: they never leave their data
    directory.
    """
    # Check without a lock first: nearly every check finds nothing, and SQLite has only one write lock.
    row = session.execute(_queued(now, kinds, job_id, directory, operations=operations)).one_or_none()
    return None if row is None else (row[0], row[1], row[2])


def lock_next(
    session: Session,
    *,
    now: datetime,
    kinds: Sequence[str] | None = None,
    job_id: int | None = None,
    directory: str | None = None,
    operations: bool = False,
) -> tuple[int, int] | None:
    """Return the longest queued execution that may start, with its job's row locked; skip rows locked by others."""
    queued = _queued(now, kinds, job_id, directory, operations=operations)
    free = queued.where(Job.lock_token.is_(None), Job.state.in_(_STARTABLE))
    # Lock without the key, as an update does: other transactions may write rows that reference the job.
    row = session.execute(free.with_for_update(of=Job, skip_locked=True, key_share=True)).one_or_none()
    return None if row is None else (row[0], row[1])


def _queued(
    now: datetime, kinds: Sequence[str] | None, job_id: int | None, directory: str | None, *, operations: bool
) -> Select[int, int, bool]:
    query = (
        select(Execution.id, Execution.job_id, or_(Job.state.in_(_STARTABLE), Job.lock_token.is_not(None)))
        .join(Job, Job.id == Execution.job_id)
        .where(Execution.state == "queued", Execution.queued_at <= now)
        .order_by(Execution.queued_at, Execution.id)
        .limit(1)
    )
    query = query if job_id is None else query.where(Job.id == job_id)
    if operations:
        query = query.where(Execution.job_id.in_(open_operations()), Execution.paused_at.is_(None))
        return query if directory is None else query.where(Execution.directory == directory)
    # A source may have been disabled after its run was queued: the run waits until it is enabled again.
    query = query.join(Source, Source.id == Job.source_id).where(Source.enabled)
    if directory is not None:
        query = query.where(is_ours(directory, now))
    return query if kinds is None else query.where(Job.kind.in_(kinds))


def is_ours(directory: str, now: datetime) -> ColumnElement[bool]:
    """Select executions without a data directory, of this one, or of one whose workers are all silent."""
    here = or_(Execution.directory.is_(None), Execution.directory == directory)
    lives = exists().where(Owner.directory == Execution.directory, Owner.heartbeat_at >= now - AWAY)
    return or_(here, ~lives.correlate(Execution))


_REOPEN = text(REOPEN).bindparams(bindparam("now", type_=Moment()))


def hold_job(session: Session, *, job_id: int, token: str, owner_id: int, now: datetime) -> int:
    """Assign a job locked by `lock_next` to an owner and return the new epoch; the job is running from here on."""
    session.execute(_REOPEN, {"owner_id": owner_id, "now": now})
    return session.scalars(
        update(Job)
        .where(Job.id == job_id)
        .values(
            state=State.RUNNING.value,
            lock_token=token,
            # The epoch fences late writes: a holder that was considered dead has the previous epoch.
            lock_epoch=Job.lock_epoch + 1,
            lock_owner_id=owner_id,
            lock_acquired_at=now,
            lock_heartbeat_at=now,
            next_run_at=None,
            updated_at=now,
        )
        .returning(Job.lock_epoch)
        .execution_options(synchronize_session=False)
    ).one()


def begin_execution(session: Session, *, execution_id: int, now: datetime) -> Execution | None:
    started = session.scalars(
        update(Execution)
        .where(Execution.id == execution_id, Execution.state == "queued")
        # A run that was taken over keeps the start time of its first worker.
        .values(state="running", started_at=func.coalesce(Execution.started_at, literal(now, Moment())))
        .returning(Execution.id)
        .execution_options(synchronize_session=False)
    ).one_or_none()
    return None if started is None else session.get_one(Execution, execution_id, populate_existing=True)


def close_stray(session: Session, *, execution_id: int, now: datetime) -> None:
    """Close a queued execution whose job can never start it, because its state was changed without `JobActions`."""
    may_begin = exists().where(Job.id == Execution.job_id, or_(Job.state.in_(_STARTABLE), Job.lock_token.is_not(None)))
    closed = session.scalar(
        update(Execution)
        # Check again in the same statement: the job may have become startable since the check.
        .where(Execution.id == execution_id, Execution.state == "queued", ~may_begin)
        .values(state="cancelled", reason="stray", finished_at=now)
        .returning(Execution.id)
        .execution_options(synchronize_session=False)
    )
    if closed is not None:
        end_pause(session.get_one(Execution, closed, populate_existing=True), now=now)


def job_and_source(session: Session, job_id: int) -> tuple[Job, Source]:
    row = session.execute(
        select(Job, Source)
        .join(Source, Source.id == Job.source_id)
        .where(Job.id == job_id)
        # The session may still have these rows as they were before the lock.
        .execution_options(populate_existing=True)
    ).one()
    return row[0], row[1]


def output_dir(session: Session, execution_id: int | None) -> str | None:
    return session.scalar(select(Execution.output_dir).where(Execution.id == execution_id)) or None


def begin_hold(session: Session, claim: LeaseClaim, *, execution_id: int, owner: str, now: datetime) -> None:
    session.execute(
        insert(Hold).values(
            job_id=claim.job_id, execution_id=execution_id, epoch=claim.epoch, owner=owner, acquired_at=now
        )
    )


def end_hold(session: Session, *, job_id: int, epoch: int, ending: str, now: datetime) -> None:
    """Record how an owner's lease of an execution ended; a second call for the same lease changes nothing."""
    session.execute(
        update(Hold)
        # Write it once only: both the sweep that cleared a lock and the late holder call this.
        .where(Hold.job_id == job_id, Hold.epoch == epoch, Hold.ended_at.is_(None))
        .values(ended_at=now, ending=ending)
        .execution_options(synchronize_session=False)
    )


def beat(session: Session, claim: LeaseClaim, *, now: datetime) -> str | None:
    """Write the holder's heartbeat and return the job's state; None if it is no longer the holder."""
    return session.scalar(
        update(Job)
        .where(_held(claim))
        .values(lock_heartbeat_at=now)
        .returning(Job.state)
        .execution_options(synchronize_session=False)
    )


def held_state(session: Session, claim: LeaseClaim) -> str | None:
    return session.scalar(select(Job.state).where(_held(claim)))


def orders(session: Session, *, execution_id: int) -> tuple[str | None, bool]:
    """Return the execution's stop request (drain, cancel, or None), and whether it is paused."""
    query = select(Execution.stop_requested, Execution.paused_at.is_not(None)).where(Execution.id == execution_id)
    row = session.execute(query).one_or_none()
    return (None, False) if row is None else (row[0], bool(row[1]))


def held_job(session: Session, claim: LeaseClaim) -> Job | None:
    """Return the job, locked, if this claim still holds it."""
    return session.scalars(
        select(Job).where(_held(claim)).with_for_update().execution_options(populate_existing=True)
    ).one_or_none()


def _held(claim: LeaseClaim) -> Any:
    return and_(Job.id == claim.job_id, Job.lock_token == claim.token, Job.lock_epoch == claim.epoch)


Stale = Sequence[ColumnElement[bool]]


def stale_locks(silent_since: datetime, *, orphans: bool = False) -> Stale:
    """Return the conditions of a stale lock: its holder is silent since this moment, or has ended.

    With `orphans` also running jobs without any holder: no code of ours creates such rows, so only a start searches
    for them.
    """
    locked, ended = Job.lock_token.is_not(None), text(has_ended("jobs.lock_owner_id"))
    orphan = and_(Job.state == State.RUNNING.value, Job.lock_token.is_(None))
    return [and_(locked, Job.lock_heartbeat_at < silent_since), and_(locked, ended), *([orphan] if orphans else ())]


def stale_ids(session: Session, stale: Stale, *, limit: int) -> list[int]:
    # Query each condition separately, so that each uses an index: that of the locks or that of the states.
    found = [session.scalars(select(Job.id).where(one).limit(limit)) for one in stale]
    return sorted({job_id for ids in found for job_id in ids})[:limit]


@record
class StaleLock:
    """A job whose holder is silent."""

    job: Operator[int]
    owner: Operator[str | None]
    silent_since: Operator[datetime]


def stale_held(session: Session, stale: Stale, *, limit: int) -> list[StaleLock]:
    ids = stale_ids(session, stale, limit=limit)
    rows = session.execute(
        select(Job.id, Job.lock_owner, func.coalesce(Job.lock_heartbeat_at, Job.lock_acquired_at, Job.created_at))
        .where(Job.id.in_(ids))
        .order_by(Job.id)
    )
    return [StaleLock(job=job, owner=owner, silent_since=moment) for job, owner, moment in rows]


def stale_jobs(session: Session, stale: Stale, *, limit: int) -> list[Job]:
    """Return the stale jobs locked and still stale; skip rows that another process has locked."""
    rows = session.scalars(
        select(Job)
        # Check again under the lock: its holder may have sent a heartbeat between the two statements.
        .where(Job.id.in_(stale_ids(session, stale, limit=limit)), or_(*stale))
        .order_by(Job.id)
        .with_for_update(skip_locked=True)
        .execution_options(populate_existing=True)
    )
    return list(rows)


def count_hour(session: Session, now: datetime, **counts: int) -> None:
    hour = now.replace(minute=0, second=0, microsecond=0)
    statement = insert_into(session, RunHour).values(hour=hour, **counts)
    table = RunHour.__table__.c
    # Add in the statement, so that two workers that settle in the same hour both count.
    grown = {name: table[name] + statement.excluded[name] for name in counts}
    session.execute(statement.on_conflict_do_update(index_elements=["hour"], set_=grown))


def hours_since(session: Session, moment: datetime | None) -> dict[str, int]:
    """Return the sums of the hourly counts since a moment, or of all hours."""
    names = ("succeeded", "failed", "cancelled", "duration_ms", "stale_locks")
    query = select(*(func.coalesce(func.sum(getattr(RunHour, name)), 0) for name in names))
    row = session.execute(query if moment is None else query.where(RunHour.hour >= moment)).one()
    return {name: int(value) for name, value in zip(names, row, strict=True)}


def last_scheduled_at(session: Session) -> datetime | None:
    """Return the last heartbeat of a process that schedules; None if none is running."""
    # A worker with --no-scheduler has another owner kind (`runner`): it queues nothing.
    schedules = Owner.kind.in_(("worker", "scheduler"))
    return session.scalar(select(func.max(Owner.heartbeat_at)).where(Owner.ended_at.is_(None), schedules))


def page_etag(session: Session, *, domain: str, url_hash: int) -> str | None:
    query = select(Page.etag).join(Domain, Domain.id == Page.domain_id)
    return session.scalar(query.where(Domain.name == domain, Page.url_hash == url_hash))


def start_answer(session: Session, *, execution_id: int, domain: str, url_hash: int) -> Any:
    """Return status, content_hash, etag and redirected_to of a run's last successful attempt on a page, if any."""
    return session.execute(
        select(
            PageCrawl.status_code.label("status"),
            # A page without text (an image, a PDF) has no content hash: compare its bytes.
            func.coalesce(PageCrawl.content_hash, PageCrawl.payload_digest).label("content_hash"),
            Page.etag,
            PageCrawl.redirected_to,
        )
        .join(Page, Page.id == PageCrawl.page_id)
        .join(Domain, Domain.id == PageCrawl.domain_id)
        .where(
            Domain.name == domain,
            Page.domain_id == Domain.id,
            Page.url_hash == url_hash,
            PageCrawl.execution_id == execution_id,
            PageCrawl.outcome == "success",
        )
        # Use the last attempt: a retried page is judged by its final response.
        .order_by(PageCrawl.attempt.desc())
        .limit(1)
    ).one_or_none()
