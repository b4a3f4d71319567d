"""Queries for operations, uploads, and the sizes of stores."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, func, select, text
from sqlalchemy.orm import Session

from holdfast.db.engine import insert_into
from holdfast.db.models import Execution, Hold, Job, Upload, WarcFile
from holdfast.jobs.store import is_open_operation, of_source, open_operations
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


def open_by_digest(session: Session, sha256: str | None) -> int | None:
    return session.scalar(select(Upload.id).where(_OPEN, Upload.sha256 == sha256))


def open_uploads(session: Session) -> set[int]:
    return set(session.scalars(select(Upload.id).where(_OPEN)))


class OperationRow(NamedTuple):
    job: Job
    execution: Execution
    attempt: int
    """Number of starts."""


_IS_OPERATION = ~of_source()
# Each flight has one; each upload and each edition is a flight.
_OPEN_AT_MOST = 1000
_STARTS = select(func.count()).where(Hold.execution_id == Execution.id).correlate(Execution).scalar_subquery()


def insert_job(session: Session, values: dict[str, Any]) -> int | None:
    """Add the job of an operation and return its id; None if an open one has the same fingerprint."""
    made = insert_into(session, Job).values(**values)
    made = made.on_conflict_do_nothing(index_elements=[Job.fingerprint], index_where=is_open_operation())
    found = session.scalar(made.returning(Job.id))
    return None if found is None else int(found)


def operation(session: Session, operation_id: int, *, for_update: bool = False) -> OperationRow | None:
    job = select(Execution.job_id).where(Execution.id == operation_id).scalar_subquery()
    wanted = select(Job.id).where(Job.id == job, _IS_OPERATION)
    if for_update:
        # Lock the job first, the order of all code that settles or releases runs.
        session.execute(wanted.with_for_update())
    return next(iter(_operations(session, wanted.correlate(None), limit=1)), None)


def listed_operations(
    session: Session, *, kind: str | None = None, state: str | None = None, before: int | None = None, limit: int
) -> list[OperationRow]:
    """Return operations, newest first; `state` is one of executions."""
    clauses = []
    if state is not None:
        clauses.append(Execution.state == state)
    if before is not None:
        clauses.append(Execution.id < before)
    jobs = select(Job.id).where(_IS_OPERATION).correlate(None)
    return _operations(session, jobs if kind is None else jobs.where(Job.kind == kind), *clauses, limit=limit)


def latest_of_kinds(session: Session, kinds: Sequence[str]) -> dict[str, OperationRow]:
    return {kind: row for kind in kinds for row in listed_operations(session, kind=kind, limit=1)}


def _operations(session: Session, jobs: Select[int], *clauses: ColumnElement[bool], limit: int) -> list[OperationRow]:
    rows = session.execute(
        select(Job, Execution, _STARTS)
        .join(Execution, Execution.job_id == Job.id)
        # Start from the jobs, by their index: SQLite would scan the executions, the newest first.
        .where(Execution.job_id.in_(jobs), *clauses)
        .order_by(Execution.id.desc())
        .limit(limit)
        .execution_options(populate_existing=True)
    )
    return [OperationRow(*row) for row in rows]


def unfinished_operations(session: Session) -> list[OperationRow]:
    return _operations(session, open_operations(), limit=_OPEN_AT_MOST)


def open_operation(session: Session, *, fingerprint: str) -> int | None:
    query = select(Execution.id).join(Job, Job.id == Execution.job_id)
    return session.scalar(query.where(is_open_operation(), Job.fingerprint == fingerprint))


def failed_starts(session: Session, operation_id: int) -> int:
    """Return how often the process of an operation, or its worker, died."""
    died = Hold.ending.in_(("died", "lease_lost"))
    return session.scalar(select(func.count()).where(Hold.execution_id == operation_id, died)) or 0


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
