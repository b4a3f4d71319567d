"""The statements of the scheduler and of the workers that hold jobs: claims compare and set, and every write is fenced.

Rows are locked in one order everywhere (job, execution, hold, hour, events): no two wait in a circle.
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

_OPEN = ("queued", "running", "stopped")
_WAITING = tuple(sorted(SCHEDULABLE))
_STARTABLE = tuple(sorted(sources_of(State.RUNNING)))


class LeaseClaim(NamedTuple):
    """What fences a write: the job, and the token and epoch of the lease under which it is done."""

    job_id: int
    token: str
    epoch: int


def anything_due(session: Session, *, now: datetime) -> bool:
    """Return whether a job waits whose time has come; one seek: the order leads by the index."""
    query = select(Job.id).where(Job.next_run_at <= now).order_by(Job.next_run_at, Job.id).limit(1)
    return session.scalar(query) is not None


def claim_due(session: Session, *, now: datetime, limit: int) -> list[int]:
    """Take due jobs off the clock, earliest first, and return their ids: each is returned to one caller only."""
    # The state stands inside a function so that SQLite goes by the time: it would walk through all that is scheduled.
    waits = func.coalesce(Job.state, "").in_(_WAITING)
    due = and_(Job.next_run_at <= now, waits, Job.lock_token.is_(None), Job.deleted_at.is_(None))
    ids = session.scalars(
        select(Job.id)
        .join(Source, Source.id == Job.source_id)
        .where(due, Source.enabled)
        .order_by(Job.next_run_at, Job.id)
        .limit(limit)
        # Jobs that another scheduler is claiming at this moment are left to it: neither waits for the other.
        .with_for_update(of=Job, skip_locked=True)
    ).all()
    if not ids:
        return []
    # Compare and set: a scheduler that was quicker left `next_run_at` empty.
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
    # Only a counted retry goes on where the last run ended: a new plan, or a run on demand, begins anew.
    " THEN (SELECT max(e.id) FROM executions e WHERE e.job_id = j.id) END,"
    " CASE WHEN j.current_retry_count + j.infra_retry_count > 0"
    " THEN (SELECT e.directory FROM executions e WHERE e.job_id = j.id ORDER BY e.id DESC LIMIT 1) END"
    " FROM jobs j WHERE j.id IN :ids ORDER BY j.due_at, j.id ON CONFLICT DO NOTHING RETURNING id, job_id"
).bindparams(bindparam("ids", expanding=True), bindparam("now", type_=Moment()))


def enqueue(session: Session, ids: Sequence[int], *, now: datetime) -> dict[int, int]:
    """Queue one execution for each job and return them by job. The unique keys decide: one a turn, one open a job."""
    return {row[1]: row[0] for row in session.execute(_ENQUEUE, {"ids": list(ids), "now": now})}


def unstick(session: Session, ids: Sequence[int], *, moment: datetime) -> None:
    """Give a new time to jobs that were taken off the clock although their turn had been run before."""
    opened = exists().where(Execution.job_id == Job.id, Execution.state.in_(_OPEN))
    session.execute(
        update(Job)
        .where(Job.id.in_(ids), ~opened)
        .values(next_run_at=moment, updated_at=moment)
        .execution_options(synchronize_session=False)
    )


class QueuedCandidate(NamedTuple):
    """A queued execution, and whether its job may begin it or has begun it."""

    execution_id: int
    job_id: int
    may_begin: bool


class WantedJobs(NamedTuple):
    """What a worker takes: some kinds of jobs, one job, or anything."""

    kinds: tuple[str, ...] | None = None
    job_id: int | None = None
    directory: str | None = None
    """Nothing whose files lie in another data directory than this one, unless no worker of that lives."""


class LastWorker(NamedTuple):
    """The worker of a data directory that was heard of last."""

    host: str
    heartbeat_at: datetime


def last_worker(session: Session, directory: str) -> LastWorker | None:
    """Return the worker of a data directory that was heard of last; None if there never was one."""
    query = select(Owner.host, Owner.heartbeat_at).where(Owner.directory == directory)
    row = session.execute(query.order_by(Owner.heartbeat_at.desc()).limit(1)).one_or_none()
    return None if row is None else LastWorker(*row)


def next_queued(session: Session, wanted: WantedJobs, *, now: datetime) -> QueuedCandidate | None:
    """Return the execution that has waited longest; none before its time, none of a disabled source."""
    # Without a lock first: nearly every look finds nothing, and SQLite would need its only write lock for that.
    row = session.execute(_queued(wanted, now)).one_or_none()
    return None if row is None else QueuedCandidate(*row)


def lock_next(session: Session, wanted: WantedJobs, *, now: datetime) -> QueuedCandidate | None:
    """Return the same of those that may begin, with the row of its job locked; what others have locked is left out."""
    free = _queued(wanted, now).where(Job.lock_token.is_(None), Job.state.in_(_STARTABLE))
    # Without its key, as an update locks: rows that point to the job may be written meanwhile.
    row = session.execute(free.with_for_update(of=Job, skip_locked=True, key_share=True)).one_or_none()
    return None if row is None else QueuedCandidate(*row)


def _queued(wanted: WantedJobs, now: datetime) -> Select[int, int, bool]:
    query = (
        select(Execution.id, Execution.job_id, or_(Job.state.in_(_STARTABLE), Job.lock_token.is_not(None)))
        .join(Job, Job.id == Execution.job_id)
        .join(Source, Source.id == Job.source_id)
        # A source may have been disabled after its run was queued: the run waits until it is enabled again.
        .where(Execution.state == "queued", Execution.queued_at <= now, Source.enabled)
        .order_by(Execution.queued_at, Execution.id)
        .limit(1)
    )
    query = query if wanted.job_id is None else query.where(Job.id == wanted.job_id)
    if wanted.directory is not None:
        query = query.where(is_ours(wanted.directory, now))
    return query if wanted.kinds is None else query.where(Job.kind.in_(wanted.kinds))


def is_ours(directory: str, now: datetime) -> ColumnElement[bool]:
    """Select executions without a data directory, those of this one, and those of one whose workers are all silent."""
    here = or_(Execution.directory.is_(None), Execution.directory == directory)
    lives = exists().where(Owner.directory == Execution.directory, Owner.heartbeat_at >= now - AWAY)
    return or_(here, ~lives.correlate(Execution))


def hold_job(session: Session, *, job_id: int, token: str, owner: str, now: datetime) -> int:
    """Give a job that `lock_next` has locked to an owner and return the new epoch; from here on it is running."""
    return session.scalars(
        update(Job)
        .where(Job.id == job_id)
        .values(
            state=State.RUNNING.value,
            lock_token=token,
            # The epoch fences late writes: a holder that was taken for dead carries the one before.
            lock_epoch=Job.lock_epoch + 1,
            lock_owner=owner,
            lock_acquired_at=now,
            lock_heartbeat_at=now,
            next_run_at=None,
            updated_at=now,
        )
        .returning(Job.lock_epoch)
        .execution_options(synchronize_session=False)
    ).one()


def begin_execution(session: Session, *, execution_id: int, now: datetime) -> Execution | None:
    """Turn a queued execution into a running one and return it; None if it is no longer queued."""
    begun = session.scalars(
        update(Execution)
        .where(Execution.id == execution_id, Execution.state == "queued")
        # A run that is taken over began when its first worker began.
        .values(state="running", started_at=func.coalesce(Execution.started_at, literal(now, Moment())))
        .returning(Execution.id)
        .execution_options(synchronize_session=False)
    ).one_or_none()
    return None if begun is None else session.get_one(Execution, execution_id, populate_existing=True)


def close_stray(session: Session, *, execution_id: int, now: datetime) -> None:
    """Close a queued execution whose job can never begin it: its state was changed past `JobActions`."""
    may_begin = exists().where(Job.id == Execution.job_id, or_(Job.state.in_(_STARTABLE), Job.lock_token.is_not(None)))
    closed = session.scalar(
        update(Execution)
        # Asked again in the same statement: its job may have become startable since it was looked at.
        .where(Execution.id == execution_id, Execution.state == "queued", ~may_begin)
        .values(state="cancelled", reason="stray", finished_at=now)
        .returning(Execution.id)
        .execution_options(synchronize_session=False)
    )
    if closed is not None:
        end_pause(session.get_one(Execution, closed, populate_existing=True), now=now)


def job_and_source(session: Session, job_id: int) -> tuple[Job, Source]:
    """Return a job and its source as they are now."""
    row = session.execute(
        select(Job, Source)
        .join(Source, Source.id == Job.source_id)
        .where(Job.id == job_id)
        # The session may hold these rows as they were before they were locked.
        .execution_options(populate_existing=True)
    ).one()
    return row[0], row[1]


def output_dir(session: Session, execution_id: int | None) -> str | None:
    """Return the directory that an execution writes to, if it has one."""
    return session.scalar(select(Execution.output_dir).where(Execution.id == execution_id)) or None


def begin_hold(session: Session, claim: LeaseClaim, *, execution_id: int, owner: str, now: datetime) -> None:
    """Note that an owner has begun to hold an execution."""
    session.execute(
        insert(Hold).values(
            job_id=claim.job_id, execution_id=execution_id, epoch=claim.epoch, owner=owner, acquired_at=now
        )
    )


def end_hold(session: Session, *, job_id: int, epoch: int, ending: str, now: datetime) -> None:
    """Note how an owner's time with an execution ended."""
    session.execute(
        update(Hold)
        # Once only: the sweep that took a lock and the late holder both come here.
        .where(Hold.job_id == job_id, Hold.epoch == epoch, Hold.ended_at.is_(None))
        .values(ended_at=now, ending=ending)
        .execution_options(synchronize_session=False)
    )


def beat(session: Session, claim: LeaseClaim, *, now: datetime) -> str | None:
    """Say that the holder lives, and return the job's state; None if it is no longer the holder."""
    return session.scalar(
        update(Job)
        .where(_held(claim))
        .values(lock_heartbeat_at=now)
        .returning(Job.state)
        .execution_options(synchronize_session=False)
    )


def held_state(session: Session, claim: LeaseClaim) -> str | None:
    """Return the job's state if this claim holds it; None if it does not."""
    return session.scalar(select(Job.state).where(_held(claim)))


def lock_owners(session: Session) -> list[str]:
    """Return who holds jobs now, by the index of the locks."""
    return sorted(
        {owner for owner in session.scalars(select(Job.lock_owner).where(Job.lock_token.is_not(None))) if owner}
    )


def stop_word(session: Session, *, execution_id: int) -> str | None:
    """Return what an execution was asked from outside: drain, cancel, or nothing."""
    return session.scalar(select(Execution.stop_requested).where(Execution.id == execution_id))


def held_job(session: Session, claim: LeaseClaim) -> Job | None:
    """Return the job if this claim still holds it, locked against everybody else; None if it does not."""
    return session.scalars(
        select(Job).where(_held(claim)).with_for_update().execution_options(populate_existing=True)
    ).one_or_none()


def _held(claim: LeaseClaim) -> Any:
    return and_(Job.id == claim.job_id, Job.lock_token == claim.token, Job.lock_epoch == claim.epoch)


def execution(session: Session, execution_id: int) -> Execution:
    """Return an execution, locked."""
    return session.scalars(
        select(Execution)
        .where(Execution.id == execution_id)
        .with_for_update()
        .execution_options(populate_existing=True)
    ).one()


class Silence(NamedTuple):
    """Whose locks are to be cleared."""

    before: datetime
    """Who has not been heard of since."""
    owners: tuple[str, ...] = ()
    """Who is known to be dead."""
    orphans: bool = False
    """Jobs that run without any holder, too: no code of ours makes such rows, so only a start looks for them."""


def stale_ids(session: Session, silence: Silence, *, limit: int) -> list[int]:
    """Return the jobs whose holder is silent or dead, and orphans if they are wanted; by the index of the locks."""
    locked = select(Job.id).where(Job.lock_token.is_not(None))
    wanted = [locked.where(Job.lock_heartbeat_at < silence.before)]
    if silence.owners:
        wanted.append(locked.where(Job.lock_owner.in_(silence.owners)))
    if silence.orphans:
        # Each condition is asked by itself: so each goes by an index, that of the locks or that of the states.
        wanted.append(select(Job.id).where(Job.state == State.RUNNING.value, Job.lock_token.is_(None)))
    return sorted({job_id for query in wanted for job_id in session.scalars(query.limit(limit))})[:limit]


class StaleLock(NamedTuple):
    """A job whose holder is silent."""

    job_id: int
    owner: str | None
    heartbeat_at: datetime


def stale_held(session: Session, silence: Silence, *, limit: int) -> list[StaleLock]:
    """Return the jobs whose holder is silent, with who it is and since when."""
    ids = stale_ids(session, silence, limit=limit)
    rows = session.execute(
        select(Job.id, Job.lock_owner, func.coalesce(Job.lock_heartbeat_at, Job.lock_acquired_at, Job.created_at))
        .where(Job.id.in_(ids))
        .order_by(Job.id)
    )
    return [StaleLock(*row) for row in rows]


def stale_jobs(session: Session, silence: Silence, *, limit: int) -> list[Job]:
    """Return the same as rows that are locked and still stale; one that another process has locked is left to it."""
    rows = session.scalars(
        select(Job)
        .where(Job.id.in_(stale_ids(session, silence, limit=limit)))
        .order_by(Job.id)
        .with_for_update(skip_locked=True)
        .execution_options(populate_existing=True)
    )
    # Looked at again under the lock: its holder may have been heard of between the two statements.
    return [row for row in rows if _is_stale(row, silence)]


def _is_stale(job: Job, silence: Silence) -> bool:
    if job.lock_token is None:
        return silence.orphans and job.state == State.RUNNING
    beat = job.lock_heartbeat_at
    return beat is None or beat < silence.before or job.lock_owner in silence.owners


def count_hour(session: Session, hour: datetime, **counts: int) -> None:
    """Add to the counts of an hour."""
    statement = insert_into(session, RunHour).values(hour=hour, **counts)
    table = RunHour.__table__.c
    # Added in the statement: two workers that settle in the same hour both count.
    grown = {name: table[name] + statement.excluded[name] for name in counts}
    session.execute(statement.on_conflict_do_update(index_elements=["hour"], set_=grown))


def hours_since(session: Session, moment: datetime | None) -> dict[str, int]:
    """Return the sums over all hours since a moment, or over all that there are."""
    names = ("succeeded", "failed", "cancelled", "duration_ms", "stale_locks")
    query = select(*(func.coalesce(func.sum(getattr(RunHour, name)), 0) for name in names))
    row = session.execute(query if moment is None else query.where(RunHour.hour >= moment)).one()
    return {name: int(value) for name, value in zip(names, row, strict=True)}


def last_scheduled_at(session: Session) -> datetime | None:
    """Return when a process that schedules was last heard of, None if none is at work."""
    # A worker with --no-scheduler is an owner of another kind (`runner`): it queues nothing.
    schedules = Owner.kind.in_(("worker", "scheduler"))
    return session.scalar(select(func.max(Owner.heartbeat_at)).where(Owner.ended_at.is_(None), schedules))


class StartPageAnswer(NamedTuple):
    """What a start page was answered with."""

    status: int | None = None
    content_hash: str | None = None
    etag: str | None = None
    redirected_to: str | None = None
    """Where it led, if it was no page itself."""


def page_etag(session: Session, *, domain: str, url_hash: int) -> str | None:
    """Return the ETag that a page had when it was last seen."""
    query = select(Page.etag).join(Domain, Domain.id == Page.domain_id)
    return session.scalar(query.where(Domain.name == domain, Page.url_hash == url_hash))


def start_answer(session: Session, *, execution_id: int, domain: str, url_hash: int) -> StartPageAnswer:
    """Return what an execution's start page was answered with last."""
    row = session.execute(
        select(
            PageCrawl.status_code,
            # A page without text (a picture, a PDF) has no hash of its content: its bytes are compared.
            func.coalesce(PageCrawl.content_hash, PageCrawl.payload_digest),
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
        # The last attempt: a page that was tried again is judged by what it answered in the end.
        .order_by(PageCrawl.attempt.desc())
        .limit(1)
    ).one_or_none()
    return StartPageAnswer() if row is None else StartPageAnswer(*row)
