"""What operators ask of the rows behind the archive: processes at work, files that wait or are broken, bytes kept."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date, timedelta
from typing import NamedTuple

from sqlalchemy import BigInteger, func, select, type_coerce
from sqlalchemy.orm import Session

from holdfast.db.models import Domain, Execution, IndexRun, Job, Owner, Page, PageCrawl, Source, WarcFile

_DAY_MICROS = 86_400_000_000
_FIRST_DAY = date(1970, 1, 1)


def open_owners(session: Session, *, limit: int = 1000) -> list[Owner]:
    """Return the processes of all machines whose rows are open, by id."""
    return list(session.scalars(select(Owner).where(Owner.ended_at.is_(None)).order_by(Owner.id).limit(limit)))


class ExecutionAtWork(NamedTuple):
    """A run that a process works on."""

    execution_id: int
    job_id: int
    source: str
    state: str


def executions_at_work(session: Session, ids: Collection[int]) -> dict[int, ExecutionAtWork]:
    """Return these executions with their sources."""
    rows = session.execute(
        select(Execution.id, Execution.job_id, Source.code, Execution.state)
        .join(Job, Job.id == Execution.job_id)
        .join(Source, Source.id == Job.source_id)
        .where(Execution.id.in_(sorted(ids)))
    )
    return {row[0]: ExecutionAtWork(*row) for row in rows}


def held_executions(session: Session) -> dict[str, list[int]]:
    """Return the runs of jobs that workers hold, by the worker's name."""
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
    """Return the addresses that attempts are on."""
    rows = session.execute(
        select(PageCrawl.id, Page.url)
        .join(Page, Page.id == PageCrawl.page_id)
        .where(PageCrawl.id.in_(sorted(attempt_ids)))
    )
    return {row[0]: row[1] for row in rows}


def domains_held(session: Session, owner_id: int, *, limit: int) -> list[str]:
    """Return domains that a process asks now."""
    held = select(Domain.name).where(Domain.lease_owner == owner_id).order_by(Domain.name).limit(limit)
    return list(session.scalars(held))


def files_by_index_state(session: Session) -> dict[str, int]:
    """Return how many sealed files there are of each state of the index."""
    rows = session.execute(
        select(WarcFile.index_state, func.count())
        .where(WarcFile.state == "sealed")
        .group_by(WarcFile.index_state)
        .order_by(WarcFile.index_state)
    )
    return {row[0]: row[1] for row in rows}


class BrokenFile(NamedTuple):
    """A sealed file that the index could not read."""

    id: int
    path: str
    source: str
    execution_id: int
    error: str | None


def broken_files(session: Session, *, after: int, limit: int) -> list[BrokenFile]:
    """Return files that the index gave up, by id."""
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
    return [BrokenFile(*row) for row in rows]


class KeptBytes(NamedTuple):
    """What is kept of a source."""

    source: str
    files: int
    size: int


def kept_by_source(session: Session) -> Sequence[KeptBytes]:
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
    return [KeptBytes(row[0], row[1], int(row[2] or 0)) for row in rows]


class SealedDay(NamedTuple):
    """What was sealed on a day, UTC."""

    day: date
    files: int
    size: int


def sealed_by_day(session: Session) -> list[SealedDay]:
    """Return files and bytes of sealed WARC files by the day on which they were sealed, the first day first."""
    # Moments are whole microseconds since 1970 in both databases: a division finds the day.
    day = type_coerce(WarcFile.sealed_at, BigInteger) // _DAY_MICROS
    rows = session.execute(
        select(day, func.count(), func.coalesce(func.sum(WarcFile.size), 0))
        .where(WarcFile.state == "sealed", WarcFile.sealed_at.is_not(None))
        .group_by(day)
        .order_by(day)
    )
    return [SealedDay(_FIRST_DAY + timedelta(days=int(on)), files, int(size or 0)) for on, files, size in rows if on]
