"""Events for external readers: rows in commit order, read by streams and webhooks.

Jobs (`jobs.journal`) and changes have tables of their own; these rows are for everything that happens rarely.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from holdfast.db.models import Event

# PostgreSQL's advisory lock for events; migrations, the index and withdrawals have others.
_EVENTS_LOCK = 0x686F6C65


class EventName(StrEnum):
    JOB_CREATED = "job.created"
    JOB_SCHEDULED = "job.scheduled"
    JOB_PAUSED = "job.paused"
    JOB_COMPLETED = "job.completed"
    JOB_FAILED = "job.failed"
    JOB_CANCELLED = "job.cancelled"
    EXECUTION_QUEUED = "execution.queued"
    EXECUTION_STARTED = "execution.started"
    EXECUTION_PAUSED = "execution.paused"
    EXECUTION_RESUMED = "execution.resumed"
    EXECUTION_COMPLETED = "execution.completed"
    EXECUTION_FAILED = "execution.failed"
    EXECUTION_CANCELLED = "execution.cancelled"
    EXECUTION_INDEXED = "execution.indexed"
    EXECUTION_INDEX_FAILED = "execution.index_failed"
    CHANGE_DETECTED = "change.detected"
    """A page was updated, is gone, or is no longer accessible."""
    CHANGE_NEW_PAGE = "change.new_page"
    """A page was captured for the first time."""
    EDITION_REPORTED = "edition.reported"
    EDITION_FROZEN = "edition.frozen"
    ALERT_FIRING = "alert.firing"
    ALERT_RESOLVED = "alert.resolved"
    REPORT_CREATED = "report.created"
    WEBHOOK_DISABLED = "webhook.disabled"
    WEBHOOK_TEST = "webhook.test"


def order_events(session: Session) -> None:
    """Make events commit in the order of their ids: a reader that has seen one never misses an earlier one.

    PostgreSQL assigns ids before the commit, so event writers are serialised from here to the end of their
    transaction. Call this last in a transaction, when all its rows are locked. SQLite has a single writer anyway.
    """
    if session.get_bind().dialect.name == "postgresql":
        session.execute(select(func.pg_advisory_xact_lock(_EVENTS_LOCK)))


def record_event(
    session: Session, name: EventName, *, at: datetime, data: dict[str, Any], source_id: int | None = None
) -> None:
    """Append an event as the last act of the caller's transaction, so that both commit or neither does.

    `data` is sent to external systems: only ids, codes, URLs and Holdfast's own text, never text from a page or a
    person.
    """
    order_events(session)
    session.add(Event(at=at, name=name.value, source_id=source_id, data=data))
    session.flush()


def has_old_events(session: Session, *, before: datetime) -> bool:
    """Return whether there are events before `before`, not counting the newest."""
    newest = select(func.max(Event.id)).scalar_subquery()
    return session.scalar(select(Event.id).where(Event.at < before, Event.id < newest).limit(1)) is not None


def drop_old_events(session: Session, *, before: datetime, limit: int) -> int:
    """Delete the oldest events before `before`, never the newest; return how many."""
    # Keep the newest: SQLite would reuse its number for the next event, and readers continue after numbers.
    newest = select(func.max(Event.id)).scalar_subquery()
    oldest = select(Event.id).where(Event.at < before, Event.id < newest).order_by(Event.at).limit(limit)
    gone = delete(Event).where(Event.id.in_(oldest.scalar_subquery())).returning(Event.id)
    return len(session.scalars(gone).all())
