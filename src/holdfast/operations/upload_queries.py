"""The rows of uploads: what is open, what has expired, what room is spoken for."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from holdfast.db.engine import insert_into
from holdfast.db.models import Upload

_OPEN = Upload.expires_at.is_not(None)
RECEIVING, RECEIVED, FAILED = "receiving", "received", "failed"
REMOVABLE = (RECEIVING, FAILED)


def insert_upload(session: Session, values: dict[str, Any]) -> int | None:
    """Add an upload and return its id; None if an open one has the same digest."""
    made = (
        insert_into(session, Upload)
        .values(**values)
        .on_conflict_do_nothing(
            index_elements=[Upload.sha256],
            index_where=_OPEN & Upload.sha256.is_not(None),
        )
        .returning(Upload.id)
    )
    found = session.scalar(made)
    return None if found is None else int(found)


def upload_by_id(session: Session, upload_id: int, *, for_update: bool = False) -> Upload | None:
    """Return one upload as it is now."""
    return session.get(Upload, upload_id, populate_existing=True, with_for_update=for_update)


def open_by_digest(session: Session, sha256: str) -> Upload | None:
    """Return the open upload of these bytes."""
    return session.scalars(select(Upload).where(_OPEN, Upload.sha256 == sha256)).one_or_none()


def open_count(session: Session) -> int:
    """Return how many are open."""
    return session.scalar(select(func.count()).select_from(Upload).where(_OPEN)) or 0


def outstanding_bytes(session: Session) -> int:
    """Return what is still to come of those that are being received: room that is spoken for."""
    found = session.scalar(select(func.sum(Upload.size - Upload.received)).where(_OPEN, Upload.state == RECEIVING))
    return int(found or 0)


def listed_uploads(session: Session, *, state: str | None, before: int | None, limit: int) -> list[Upload]:
    """Return uploads, newest first."""
    clauses = []
    if state is not None:
        clauses.append(Upload.state == state)
    if before is not None:
        clauses.append(Upload.id < before)
    return list(session.scalars(select(Upload).where(*clauses).order_by(Upload.id.desc()).limit(limit)))


def expired_uploads(session: Session, now: datetime, *, limit: int = 100) -> list[int]:
    """Return those whose time is up and that no import reads, the longest first."""
    rows = select(Upload.id).where(_OPEN, Upload.expires_at <= now, Upload.state.in_(REMOVABLE))
    return list(session.scalars(rows.order_by(Upload.expires_at, Upload.id).limit(limit)))


def open_ids(session: Session) -> set[int]:
    """Return the ids of all that are open."""
    return set(session.scalars(select(Upload.id).where(_OPEN)))


def fail_import(session: Session, operation_id: int, *, now: datetime) -> None:
    """Let an upload that an operation was to import be tried again, or expire: the operation ended and did not."""
    waiting = select(Upload).where(Upload.operation_id == operation_id, Upload.state == RECEIVED)
    for row in session.scalars(waiting.with_for_update()):
        # As long as it had from its last byte on: the settings said so then.
        kept = (row.expires_at or now) - row.updated_at
        row.state, row.updated_at, row.expires_at = FAILED, now, now + kept
