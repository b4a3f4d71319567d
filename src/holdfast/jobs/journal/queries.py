"""The rows of events and of log lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import case, delete, func, insert, literal, select, update
from sqlalchemy.orm import Session

from holdfast.db.models import Execution, Job, JobEvent, LogLine
from holdfast.db.models.base import Json, Moment

_EVENTS_LOCK = 0x686F6C65  # beside the migrations' own


def order_events(session: Session) -> None:
    """Let events be committed in the order of their ids: a reader that has seen one never misses an earlier one.

    PostgreSQL hands out ids before the commit; so writers of events go one after the other, from here to their end.
    Called last in a transaction, when all its rows are locked. SQLite has one writer anyway.
    """
    if session.get_bind().dialect.name == "postgresql":
        session.execute(select(func.pg_advisory_xact_lock(_EVENTS_LOCK)))


def insert_events(session: Session, rows: Sequence[dict[str, Any]]) -> None:
    """Append events."""
    session.execute(insert(JobEvent), rows)


def insert_status(session: Session, executions: Sequence[int], *, now: datetime, name: str,
                  data: Mapping[str, dict[str, Any]]) -> None:  # fmt: skip
    """Append one event for each execution, with what is to be told for the state of its job: one statement for all."""
    told = case(*((Job.state == state, literal(what, Json)) for state, what in data.items()), else_=literal({}, Json))
    rows = (
        select(literal(now, Moment()), literal(name), Execution.job_id, Execution.id, told)
        .join(Job, Job.id == Execution.job_id)
        .where(Execution.id.in_(executions))
        .order_by(Execution.id)
    )
    session.execute(insert(JobEvent).from_select(["at", "name", "job_id", "execution_id", "data"], rows))


def has_events(session: Session, *, before: datetime) -> bool:
    """Return whether there are events from before a moment."""
    return session.scalar(select(JobEvent.id).where(JobEvent.at < before).limit(1)) is not None


def events_after(session: Session, *, after: int, job_id: int | None = None, limit: int = 100) -> list[JobEvent]:
    """Return the events after this one, of all jobs or of one, oldest first."""
    query = select(JobEvent).where(JobEvent.id > after).order_by(JobEvent.id).limit(limit)
    return list(session.scalars(query if job_id is None else query.where(JobEvent.job_id == job_id)))


def last_event(session: Session) -> int:
    """Return the id of the newest event, 0 if there is none: where a new stream begins."""
    return session.scalar(select(func.coalesce(func.max(JobEvent.id), 0))) or 0


def drop_events(session: Session, *, before: datetime, limit: int) -> int:
    """Remove the oldest events from before a moment; return how many."""
    oldest = select(JobEvent.id).where(JobEvent.at < before).order_by(JobEvent.at).limit(limit).scalar_subquery()
    return len(session.scalars(delete(JobEvent).where(JobEvent.id.in_(oldest)).returning(JobEvent.id)).all())


def log_size(session: Session, *, execution_id: int) -> int | None:
    """Return how many lines an execution's log has, None if there is no such execution; its row is locked."""
    query = select(Execution.log_lines).where(Execution.id == execution_id).with_for_update()
    return session.scalar(query)


def append_lines(session: Session, rows: Sequence[dict[str, Any]], *, execution_id: int, size: int,
                 dropped: int) -> None:  # fmt: skip
    """Append lines to an execution's log, and count them and those that found no room."""
    if rows:
        session.execute(insert(LogLine), rows)
    session.execute(
        update(Execution)
        .where(Execution.id == execution_id)
        .values(
            log_lines=Execution.log_lines + len(rows),
            log_bytes=Execution.log_bytes + size,
            log_dropped=Execution.log_dropped + dropped,
        )
    )


def lines_after(session: Session, *, execution_id: int, after: int, level: int, limit: int) -> list[LogLine]:
    """Return the lines of at least this level after this one, oldest first."""
    return list(
        session.scalars(
            select(LogLine)
            .where(LogLine.execution_id == execution_id, LogLine.id > after, LogLine.level >= level)
            .order_by(LogLine.id)
            .limit(limit)
        )
    )


def last_lines(session: Session, *, execution_id: int, level: int, limit: int) -> list[LogLine]:
    """Return the newest lines of at least this level, oldest first."""
    query = select(LogLine).where(LogLine.execution_id == execution_id, LogLine.level >= level)
    return list(reversed(session.scalars(query.order_by(LogLine.id.desc()).limit(limit)).all()))


def drop_lines(session: Session, *, execution_id: int, limit: int) -> int:
    """Remove the first lines of an execution's log, so many at most; return how many there were."""
    first = select(LogLine.id).where(LogLine.execution_id == execution_id).order_by(LogLine.id).limit(limit)
    gone = delete(LogLine).where(LogLine.id.in_(first.scalar_subquery())).returning(LogLine.id)
    return len(session.scalars(gone.execution_options(synchronize_session=False)).all())
