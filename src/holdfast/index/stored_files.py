"""Sealed WARC files by index state, source and day, as operators see them."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from enum import StrEnum

from sqlalchemy import BigInteger, func, select, type_coerce
from sqlalchemy.orm import Session

from holdfast.db.models import Execution, IndexRun, Job, Source, WarcFile
from holdfast.records import Operator, from_row, record

_DAY_MICROS = 86_400_000_000
_FIRST_DAY = date(1970, 1, 1)


class IndexState(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    INDEXED = "indexed"
    FAILED = "failed"


@record
class FileIndexing:
    """A file that is being indexed."""

    file: Operator[int]
    name: Operator[str]
    source: Operator[str]
    phase: Operator[str]
    records: Operator[int]
    pages: Operator[int]
    bytes_done: Operator[int]
    bytes_total: Operator[int]
    started_at: Operator[datetime]
    progress_at: Operator[datetime]


@record
class BrokenFile:
    """A sealed file that could not be indexed."""

    file: Operator[int]
    name: Operator[str]
    source: Operator[str]
    execution_id: Operator[int]
    error: Operator[str | None]


@record
class SourceBytes:
    """Sealed WARC files of a source."""

    source: Operator[str]
    files: Operator[int]
    bytes: Operator[int]


@record
class DayBytes:
    """WARC files sealed on a day."""

    day: Operator[date]
    """UTC."""
    files: Operator[int]
    bytes: Operator[int]


def files_by_index_state(session: Session) -> dict[str, int]:
    rows = session.execute(
        select(WarcFile.index_state, func.count())
        .where(WarcFile.state == "sealed")
        .group_by(WarcFile.index_state)
        .order_by(WarcFile.index_state)
    )
    return {row[0]: row[1] for row in rows}


def broken_files(session: Session, *, after: int, limit: int) -> list[BrokenFile]:
    """Return files whose indexing was given up, by id."""
    rows = session.execute(
        select(WarcFile.id, WarcFile.key, Source.code, WarcFile.execution_id, IndexRun.error)
        .join(Execution, Execution.id == WarcFile.execution_id)
        .join(Job, Job.id == Execution.job_id)
        .join(Source, Source.id == Job.source_id)
        .outerjoin(IndexRun, IndexRun.warc_file_id == WarcFile.id)
        .where(WarcFile.state == "sealed", WarcFile.index_state == "failed", WarcFile.id > after)
        .order_by(WarcFile.id)
        .limit(limit)
    )
    return [from_row(BrokenFile, row, file=row.id, name=row.key.rpartition("/")[2], source=row.code) for row in rows]


def kept_by_source(session: Session) -> list[SourceBytes]:
    """Return files and bytes of sealed WARC files by source, the largest first."""
    size = func.coalesce(func.sum(WarcFile.size), 0)
    rows = session.execute(
        select(Source.code, func.count(), size)
        .select_from(WarcFile)
        .join(Execution, Execution.id == WarcFile.execution_id)
        .join(Job, Job.id == Execution.job_id)
        .join(Source, Source.id == Job.source_id)
        .where(WarcFile.state == "sealed")
        .group_by(Source.code)
        .order_by(size.desc(), Source.code)
    )
    return [SourceBytes(source=code, files=files, bytes=int(total or 0)) for code, files, total in rows]


def sealed_by_day(session: Session) -> list[DayBytes]:
    """Return files and bytes of sealed WARC files by the day on which they were sealed, oldest first."""
    # Moments are whole microseconds since 1970 in both databases: a division finds the day.
    day = type_coerce(WarcFile.sealed_at, BigInteger) // _DAY_MICROS
    rows = session.execute(
        select(day, func.count(), func.coalesce(func.sum(WarcFile.size), 0))
        .where(WarcFile.state == "sealed", WarcFile.sealed_at.is_not(None))
        .group_by(day)
        .order_by(day)
    )
    return [
        DayBytes(day=_FIRST_DAY + timedelta(days=int(on)), files=files, bytes=int(total or 0))
        for on, files, total in rows
        if on
    ]
