"""Queries for alerts, and for the turn to check for them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, case, delete, func, or_, select, update
from sqlalchemy.orm import Session

from holdfast.clock import from_micros
from holdfast.db.engine import insert_into
from holdfast.db.models import Alert, AlertTurn, Execution, Job, JobEvent, Owner, Series, Source
from holdfast.jobs.journal import STATUS
from holdfast.series.raw_queries import MINUTE_S

_ONLY = 1


def _passed(now: datetime, before: datetime) -> ColumnElement[bool]:
    # Well ahead of now: a clock that was wrong has been set back, and no process would look until it is there again.
    return or_(AlertTurn.looked_at <= before, AlertTurn.looked_at > now + (now - before))


def is_due(session: Session, *, now: datetime, before: datetime) -> bool:
    """Return whether no process has checked since a moment; nothing is locked."""
    passed = session.scalar(select(_passed(now, before)).where(AlertTurn.id == _ONLY))
    return passed is None or bool(passed)


def take_turn(session: Session, *, now: datetime, before: datetime) -> bool:
    """Claim the turn to check; False if another process checked since `before`. Held until the transaction ends."""
    new = insert_into(session, AlertTurn).values(id=_ONLY, looked_at=from_micros(0))
    session.execute(new.on_conflict_do_nothing())
    moved = update(AlertTurn).where(AlertTurn.id == _ONLY, _passed(now, before)).values(looked_at=now)
    returned = moved.returning(AlertTurn.id).execution_options(synchronize_session=False)
    return session.scalar(returned) is not None


def firing(session: Session) -> list[Alert]:
    """Return the unresolved alerts, oldest first."""
    return list(session.scalars(select(Alert).where(Alert.resolved_at.is_(None)).order_by(Alert.id)))


def list_alerts(session: Session, *, is_firing: bool | None, before: int | None, limit: int) -> list[Alert]:
    """Return alerts, newest first: all, firing ones, or resolved ones."""
    query = select(Alert).order_by(Alert.id.desc()).limit(limit)
    if is_firing is not None:
        query = query.where(Alert.resolved_at.is_(None) if is_firing else Alert.resolved_at.is_not(None))
    return list(session.scalars(query if before is None else query.where(Alert.id < before)))


def drop_resolved(session: Session, *, before: datetime, limit: int = 500) -> int:
    oldest = select(Alert.id).where(Alert.resolved_at < before).order_by(Alert.resolved_at).limit(limit)
    gone = delete(Alert).where(Alert.id.in_(oldest)).returning(Alert.id)
    return len(session.scalars(gone.execution_options(synchronize_session=False)).all())


def open_workers(session: Session, *, kinds: Sequence[str]) -> list[Owner]:
    """Return the workers whose rows are open, the longest silent first."""
    query = select(Owner).where(Owner.ended_at.is_(None), Owner.kind.in_(kinds))
    return list(session.scalars(query.order_by(Owner.heartbeat_at, Owner.id)))


def running_jobs(session: Session) -> list[tuple[int, str, datetime]]:
    """Return the running, unpaused runs of jobs, the one with the oldest progress first; not limited.

    Each has its source's code, and when it last captured a page, was leased or was resumed.
    """
    # By the key, from the newest minute back to one with a page; a run without a page in all kept minutes is stalled.
    of_run = Series.execution_id == func.coalesce(Execution.frontier_id, Execution.id), Series.step_s == MINUTE_S
    captured = select(Series.at).where(*of_run, Series.pages > 0).order_by(Series.at.desc()).limit(1)
    told = select(JobEvent.at).where(JobEvent.job_id == Job.id, JobEvent.name == STATUS).order_by(JobEvent.id.desc())
    resumed_at = case((Execution.paused_seconds > 0, told.limit(1).correlate(Job).scalar_subquery()))
    captured_at = captured.correlate(Execution).scalar_subquery()
    # From the locked jobs, by their index: without statistics SQLite would walk through all executions.
    locked = select(Job.id).where(Job.lock_token.is_not(None))
    rows = session.execute(
        select(Execution.id, Source.code, Job.lock_acquired_at, captured_at, resumed_at)
        .join(Job, Job.id == Execution.job_id)
        .join(Source, Source.id == Job.source_id)
        .where(Execution.job_id.in_(locked), Execution.state == "running", Execution.paused_at.is_(None))
    )
    found = ((number, code, max(filter(None, moments))) for number, code, *moments in rows)
    return sorted(found, key=lambda one: one[2])
