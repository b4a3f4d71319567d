"""Queries for the overview of the installation: processes, files to index, stored bytes."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date, timedelta

from sqlalchemy import BigInteger, func, select, type_coerce
from sqlalchemy.orm import Session

from holdfast.db.models import Domain, Execution, IndexRun, Job, Owner, Page, PageCrawl, Source, WarcFile
from holdfast.operations.overview import ActiveExecution, BrokenFile, DayBytes, SourceBytes
from holdfast.records import from_row

_DAY_MICROS = 86_400_000_000
_FIRST_DAY = date(1970, 1, 1)


def open_owners(session: Session, *, limit: int = 1000) -> list[Owner]:
    """Return the processes of all machines whose rows are open, by id."""
    return list(session.scalars(select(Owner).where(Owner.ended_at.is_(None)).order_by(Owner.id).limit(limit)))


def executions_at_work(session: Session, ids: Collection[int]) -> dict[int, ActiveExecution]:
    rows = session.execute(
        select(Execution.id, Execution.job_id, Source.code, Execution.state)
        .join(Job, Job.id == Execution.job_id)
        .join(Source, Source.id == Job.source_id)
        .where(Execution.id.in_(sorted(ids)))
    )
    return {row.id: from_row(ActiveExecution, row, source=row.code) for row in rows}


def held_executions(session: Session) -> dict[str, list[int]]:
    """Return the executions that workers hold, by the worker's name."""
    rows = session.execute(
        select(Job.lock_owner, Execution.id)
        .join(Execution, Execution.job_id == Job.id)
        .where(Job.lock_token.is_not(None), Job.lock_owner.is_not(None), Execution.state == "running")
        .order_by(Execution.id)
    )
    found: dict[str, list[int]] = {}
    for owner, execution_id in rows:
        found.setdefault(str(owner), []).append(execution_id)
    return found


def addresses_of(session: Session, attempt_ids: Collection[int]) -> dict[int, str]:
    rows = session.execute(
        select(PageCrawl.id, Page.url)
        .join(Page, Page.id == PageCrawl.page_id)
        .where(PageCrawl.id.in_(sorted(attempt_ids)))
    )
    return {row[0]: row[1] for row in rows}


def domains_held(session: Session, owner_id: int, *, limit: int) -> list[str]:
    held = select(Domain.name).where(Domain.lease_owner == owner_id).order_by(Domain.name).limit(limit)
    return list(session.scalars(held))


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
        select(WarcFile.id, WarcFile.path, Source.code, WarcFile.execution_id, IndexRun.error)
        .join(Execution, Execution.id == WarcFile.execution_id)
        .join(Job, Job.id == Execution.job_id)
        .join(Source, Source.id == Job.source_id)
        .outerjoin(IndexRun, IndexRun.warc_file_id == WarcFile.id)
        .where(WarcFile.state == "sealed", WarcFile.index_state == "failed", WarcFile.id > after)
        .order_by(WarcFile.id)
        .limit(limit)
    )
    return [from_row(BrokenFile, row, file=row.id, name=row.path.rpartition("/")[2], source=row.code) for row in rows]


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
