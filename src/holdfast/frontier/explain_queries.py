"""Queries for the rows related to one URL; every list is bounded."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import ColumnElement, String, and_, case, cast, func, or_, select, tuple_
from sqlalchemy.orm import Session, aliased

from holdfast.db.models import (
    AddedUrl,
    Domain,
    Execution,
    Job,
    Owner,
    Page,
    PageCrawl,
    Queue,
    Robots,
    Snapshot,
    Source,
    WarcFile,
)
from holdfast.types import RobotsAnswer, RobotsRecord

# Larger numbers are told as "more than": to count millions of rows for one question would take seconds.
COUNTED = 10_000


class AttemptOnPage(NamedTuple):
    attempt: PageCrawl
    found_on: str | None
    job_id: int | None
    source: str | None


def domain_named(session: Session, name: str) -> Domain | None:
    return session.scalars(select(Domain).where(Domain.name == name)).one_or_none()


def owner_of(session: Session, owner_id: int) -> Owner | None:
    return session.get(Owner, owner_id)


def robots_of(session: Session, origin: str) -> RobotsRecord | None:
    row = session.scalars(select(Robots).where(Robots.origin == origin)).one_or_none()
    if row is None:
        return None
    return RobotsRecord(
        origin=row.origin,
        answer=RobotsAnswer(row.answer),
        fetched_at=row.fetched_at,
        checked_at=row.checked_at,
        status=row.status,
        body=row.body,
        failures=row.failures,
    )


def page_ids(session: Session, identities: Collection[tuple[str, int]]) -> list[int]:
    if not identities:
        return []
    rows = session.scalars(
        select(Page.id)
        .join(Domain, Domain.id == Page.domain_id)
        .where(tuple_(Domain.name, Page.url_hash).in_(sorted(identities)))
        .order_by(Page.id)
    )
    return list(rows)


def attempts_on(
    session: Session,
    pages: Sequence[int],
    *,
    before: int | None,
    limit: int,
    seen: Sequence[ColumnElement[bool]] = (),
) -> list[AttemptOnPage]:
    """Return attempts at these pages older than `before`, newest first; `seen` filters by their source."""
    if not pages:
        return []
    via = aliased(Page)
    query = (
        select(PageCrawl, via.url, Job.id, Source.code)
        .outerjoin(via, via.id == PageCrawl.via_page_id)
        .outerjoin(Execution, Execution.id == PageCrawl.execution_id)
        .outerjoin(Job, Job.id == Execution.job_id)
        .outerjoin(Source, Source.id == Job.source_id)
        .where(PageCrawl.page_id.in_(pages), *seen)
        .order_by(PageCrawl.id.desc())
        .limit(limit)
    )
    rows = session.execute(query if before is None else query.where(PageCrawl.id < before))
    return [AttemptOnPage(*row) for row in rows]


def open_attempts(session: Session, pages: Sequence[int], *, limit: int) -> list[AttemptOnPage]:
    if not pages:
        return []
    rows = session.execute(
        select(PageCrawl, Job.id, Source.code)
        .outerjoin(Execution, Execution.id == PageCrawl.execution_id)
        .outerjoin(Job, Job.id == Execution.job_id)
        .outerjoin(Source, Source.id == Job.source_id)
        .where(PageCrawl.page_id.in_(pages), PageCrawl.outcome.is_(None))
        .order_by(PageCrawl.id.desc())
        .limit(limit)
    )
    return [AttemptOnPage(attempt, None, job_id, code) for attempt, job_id, code in rows]


def ended_attempts(session: Session, pages: Sequence[int], runs: Collection[int]) -> dict[int | None, PageCrawl]:
    """Return the last attempt at these pages in each run (by the run that owns the frontier), if it ended."""
    if not pages or not runs:
        return {}
    rows = session.scalars(
        select(PageCrawl)
        .where(PageCrawl.page_id.in_(pages), PageCrawl.execution_id.in_(runs))
        .order_by(PageCrawl.attempt, PageCrawl.id)
    )
    last = {row.execution_id: row for row in rows}
    return {number: row for number, row in last.items() if row.outcome is not None}


def added_by_hand(session: Session, identities: Collection[tuple[str, int]]) -> list[tuple[AddedUrl, str]]:
    """Return where a person added a page for the next run of a source, with the source's code."""
    if not identities:
        return []
    rows = session.execute(
        select(AddedUrl, Source.code)
        .join(Source, Source.id == AddedUrl.source_id)
        .where(tuple_(AddedUrl.domain, AddedUrl.url_hash).in_(sorted(identities)), AddedUrl.execution_id.is_(None))
        .order_by(AddedUrl.id)
        .limit(50)
    )
    return [(row[0], row[1]) for row in rows]


def place_of(session: Session, attempt: PageCrawl) -> int:
    """Return the position of an attempt in its queue, counted up to COUNTED plus one."""
    same = (
        PageCrawl.execution_id == attempt.execution_id,
        PageCrawl.domain_id == attempt.domain_id,
        PageCrawl.outcome.is_(None),
    )
    if attempt.scheduled_for is None:
        ahead = and_(
            PageCrawl.scheduled_for.is_(None),
            or_(
                PageCrawl.priority > attempt.priority,
                and_(PageCrawl.priority == attempt.priority, PageCrawl.id < attempt.id),
            ),
        )
    else:
        # Deferred attempts come after all attempts without a scheduled time.
        ahead = or_(
            PageCrawl.scheduled_for.is_(None),
            PageCrawl.scheduled_for < attempt.scheduled_for,
            and_(PageCrawl.scheduled_for == attempt.scheduled_for, PageCrawl.id < attempt.id),
        )
    found = select(PageCrawl.id).where(*same, ahead).limit(COUNTED).subquery()
    return 1 + (session.scalar(select(func.count()).select_from(found)) or 0)


def queue_due_at(session: Session, attempt: PageCrawl) -> int | None:
    """Return the earliest time at which an attempt's queue is polled, in microseconds."""
    return session.scalar(
        select(Queue.due_at).where(Queue.execution_id == attempt.execution_id, Queue.domain_id == attempt.domain_id)
    )


def execution_at_work_on(session: Session, frontier_id: int) -> Execution | None:
    """Return the execution that currently works on a frontier: its own, or the last one that continues it."""
    job_id = select(Execution.job_id).where(Execution.id == frontier_id).scalar_subquery()
    return session.scalars(
        select(Execution)
        .where(Execution.job_id == job_id, or_(Execution.id == frontier_id, Execution.frontier_id == frontier_id))
        .order_by(Execution.id.desc())
        .limit(1)
    ).one_or_none()


def sources_to_judge(session: Session, name: str, *, limit: int) -> list[int]:
    """Return source ids: those whose configuration contains a name first, then the others by code."""
    holds = (column.contains(name, autoescape=True) for column in (Source.base_url, cast(Source.config, String)))
    named = case((or_(*holds), 0), else_=1)
    return list(session.scalars(select(Source.id).order_by(named, Source.code).limit(limit)))


class CaptureCount(NamedTuple):
    number: int
    first_at: datetime | None
    last_at: datetime | None
    other_spellings: int


def count_captures(
    session: Session, *, url_hash: int, key: str | None, seen: Sequence[ColumnElement[bool]] = ()
) -> CaptureCount:
    """Return the number and time range of a page's captures; with a key, also those of its other spellings."""
    this = and_(Snapshot.url_hash == url_hash, *seen)
    counted = select(Snapshot.id).where(this).limit(COUNTED + 1).subquery()
    count = session.scalar(select(func.count()).select_from(counted)) or 0
    ends = [
        session.scalar(select(Snapshot.captured_at).where(this).order_by(order, Snapshot.id).limit(1))
        for order in (Snapshot.captured_at, Snapshot.captured_at.desc())
    ]
    others = 0
    if key is not None:
        other = select(Snapshot.id).where(Snapshot.url_key == key, Snapshot.url_hash != url_hash, *seen).limit(COUNTED)
        others = session.scalar(select(func.count()).select_from(other.subquery())) or 0
    return CaptureCount(count, ends[0], ends[1], others)


class ListedCapture(NamedTuple):
    snapshot: Snapshot
    source: str | None
    path: str | None


def newest_captures(
    session: Session, *, url_hash: int, limit: int, seen: Sequence[ColumnElement[bool]] = ()
) -> list[ListedCapture]:
    """Return the newest captures of a page, including those taken down."""
    rows = session.execute(
        select(Snapshot, Source.code, WarcFile.path)
        .outerjoin(Source, Source.id == Snapshot.source_id)
        .outerjoin(WarcFile, WarcFile.id == Snapshot.warc_file_id)
        .where(Snapshot.url_hash == url_hash, *seen)
        .order_by(Snapshot.captured_at.desc(), Snapshot.id.desc())
        .limit(limit)
    )
    return [ListedCapture(*row) for row in rows]


def sources_of_captures(session: Session, *, url_hash: int) -> list[Source]:
    ids = select(Snapshot.source_id).where(Snapshot.url_hash == url_hash).limit(COUNTED).distinct()
    return list(session.scalars(select(Source).where(Source.id.in_(ids)).order_by(Source.code)))


def captures_by_id(session: Session, ids: Collection[int]) -> dict[int, Snapshot]:
    """Return captures by id; those not indexed yet are missing."""
    return {row.id: row for row in session.scalars(select(Snapshot).where(Snapshot.id.in_(ids)))} if ids else {}


def file_paths(session: Session, ids: Collection[int]) -> dict[int, str]:
    """Return the paths of WARC files as stored in their rows, except discarded files."""
    if not ids:
        return {}
    rows = session.execute(
        select(WarcFile.id, WarcFile.path).where(WarcFile.id.in_(ids), WarcFile.state != "discarded")
    )
    return {row[0]: row[1] for row in rows}
