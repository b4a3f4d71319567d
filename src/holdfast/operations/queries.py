"""Queries for operations, uploads, and the sizes of stores."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, func, select, text, update
from sqlalchemy.orm import Session

from holdfast.clock import to_micros
from holdfast.db.engine import insert_into
from holdfast.db.models import Operation, Upload, WarcFile
from holdfast.records import Operator, record

_OPEN = Upload.expires_at.is_not(None)
RECEIVING, RECEIVED, FAILED = "receiving", "received", "failed"
REMOVABLE = (RECEIVING, FAILED)


def insert_upload(session: Session, values: dict[str, Any]) -> int | None:
    """Add an upload and return its id; None if an open one has the same digest."""
    made = (
        insert_into(session, Upload)
        .values(**values)
        .on_conflict_do_nothing(index_elements=[Upload.sha256], index_where=_OPEN & Upload.sha256.is_not(None))
        .returning(Upload.id)
    )
    found = session.scalar(made)
    return None if found is None else int(found)


def upload_by_id(session: Session, upload_id: int, *, for_update: bool = False) -> Upload | None:
    return session.get(Upload, upload_id, populate_existing=True, with_for_update=for_update)


def outstanding_bytes(session: Session) -> int:
    """Return the bytes still to be received by open uploads: reserved space."""
    found = session.scalar(select(func.sum(Upload.size - Upload.received)).where(_OPEN, Upload.state == RECEIVING))
    return int(found or 0)


def listed_uploads(session: Session, *, state: str | None, before: int | None, limit: int) -> list[Upload]:
    clauses = []
    if state is not None:
        clauses.append(Upload.state == state)
    if before is not None:
        clauses.append(Upload.id < before)
    return list(session.scalars(select(Upload).where(*clauses).order_by(Upload.id.desc()).limit(limit)))


def expired_uploads(session: Session, now: datetime, *, limit: int = 100) -> list[int]:
    """Return expired uploads that no import reads, the longest expired first."""
    rows = select(Upload.id).where(_OPEN, Upload.expires_at <= now, Upload.state.in_(REMOVABLE))
    return list(session.scalars(rows.order_by(Upload.expires_at, Upload.id).limit(limit)))


def fail_import(session: Session, operation_id: int, *, now: datetime) -> None:
    """Mark an upload as failed after its import operation ended without success: it can be retried, or expires."""
    waiting = select(Upload).where(Upload.operation_id == operation_id, Upload.state == RECEIVED)
    for row in session.scalars(waiting.with_for_update()):
        # Give it as much time as it had from its last byte on, by the settings of then.
        kept = (row.expires_at or now) - row.updated_at
        row.state, row.updated_at, row.expires_at = FAILED, now, now + kept


def open_by_digest(session: Session, sha256: str | None) -> int | None:
    return session.scalar(select(Upload.id).where(_OPEN, Upload.sha256 == sha256))


def open_uploads(session: Session) -> set[int]:
    return set(session.scalars(select(Upload.id).where(_OPEN)))


_UNFINISHED = Operation.finished_at.is_(None)


def insert_operation(session: Session, values: dict[str, Any]) -> int | None:
    """Add an operation and return its id; None if an open one is at the same flight."""
    made = (
        insert_into(session, Operation)
        .values(**values)
        .on_conflict_do_nothing(index_elements=[Operation.flight], index_where=_UNFINISHED)
        .returning(Operation.id)
    )
    found = session.scalar(made)
    return None if found is None else int(found)


def listed_operations(
    session: Session, *, kind: str | None = None, state: str | None = None, before: int | None = None, limit: int
) -> list[Operation]:
    found = select(Operation).order_by(Operation.id.desc()).limit(limit)
    if kind is not None:
        found = found.where(Operation.kind == kind)
    if state is not None:
        found = found.where(Operation.state == state)
    if before is not None:
        found = found.where(Operation.id < before)
    return list(session.scalars(found))


def take_operation(
    session: Session, operation_id: int, attempt: int, *, now: datetime, until: datetime, run_file: str | None
) -> bool:
    """Lease an operation and start it; return False if another process did so since it was read."""
    taken = session.execute(
        update(Operation)
        .where(Operation.id == operation_id, _UNFINISHED, Operation.attempt == attempt)
        .values(
            attempt=attempt + 1,
            state="running",
            run_file=run_file,
            lease_until=until,
            # Set the time of the first start: a process that continues the operation keeps it.
            started_at=func.coalesce(Operation.started_at, to_micros(now)),
            updated_at=now,
        )
        .returning(Operation.id)
    )
    return taken.one_or_none() is not None


def change_held(session: Session, held: tuple[int, int], values: dict[str, Any]) -> bool | None:
    """Update an operation that a process holds; return whether it should stop, None if another process holds it
    now.
    """
    changed = session.execute(
        update(Operation).where(*_held(held)).values(**values).returning(Operation.stop_asked)
    ).one_or_none()
    return None if changed is None else bool(changed[0])


def is_held(session: Session, held: tuple[int, int]) -> bool:
    """Return whether a process still holds an operation, and lock its row until the transaction ends."""
    return session.scalar(select(Operation.id).where(*_held(held)).with_for_update()) is not None


def _held(held: tuple[int, int]) -> tuple[ColumnElement[bool], ...]:
    operation_id, attempt = held
    return Operation.id == operation_id, Operation.attempt == attempt, Operation.state == "running", _UNFINISHED


def latest_of_kinds(session: Session, kinds: Sequence[str]) -> dict[str, Operation]:
    found = {}
    for kind in kinds:
        row = session.scalars(
            select(Operation).where(Operation.kind == kind).order_by(Operation.id.desc()).limit(1)
        ).one_or_none()
        if row is not None:
            found[kind] = row
    return found


def open_operation(session: Session, *, flight: str) -> Operation | None:
    return session.scalars(select(Operation).where(_UNFINISHED, Operation.flight == flight)).one_or_none()


def open_operations(session: Session) -> Sequence[Operation]:
    """Return the pending and running operations, oldest first; uses the index of open ones."""
    return session.scalars(select(Operation).where(_UNFINISHED).order_by(Operation.id)).all()


_TABLES = """
SELECT c.relname, pg_total_relation_size(c.oid), greatest(c.reltuples, 0)::bigint FROM pg_class c
 WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace ORDER BY 2 DESC, 1 LIMIT 100"""


@record
class TableSize:
    """A table with its indexes."""

    table: Operator[str]
    bytes: Operator[int]
    rows: Operator[int]
    """The database server's last estimate."""


def server_bytes(session: Session) -> int:
    return int(session.scalar(text("SELECT pg_database_size(current_database())")) or 0)


def table_sizes(session: Session) -> list[TableSize]:
    """Return the largest tables of a database server; SQLite would have to read its whole file."""
    return [TableSize(table=name, bytes=size, rows=rows) for name, size, rows in session.execute(text(_TABLES))]


def warc_totals(session: Session) -> tuple[int, int]:
    """Return the bytes and the number of sealed WARC files: reads one row per file."""
    row = session.execute(select(func.sum(WarcFile.size), func.count()).where(WarcFile.state == "sealed")).one()
    return int(row[0] or 0), int(row[1])
