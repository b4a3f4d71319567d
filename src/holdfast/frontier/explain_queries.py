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
    Page,
    PageCrawl,
    Queue,
    Snapshot,
    Source,
    WarcFile,
)
from holdfast.frontier.figures import COUNTED


class AttemptOnPage(NamedTuple):
    attempt: PageCrawl
    found_on: str | None
    job_id: int | None
    source: str | None


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


def attempts_on(session: Session, pages: Sequence[int], *where: ColumnElement[bool], limit: int) -> list[AttemptOnPage]:
    """Return attempts at these pages, newest first."""
    if not pages:
        return []
    via = aliased(Page)
    rows = session.execute(
        select(PageCrawl, via.url, Job.id, Source.code)
        .outerjoin(via, via.id == PageCrawl.via_page_id)
        .outerjoin(Execution, Execution.id == PageCrawl.execution_id)
        .outerjoin(Job, Job.id == Execution.job_id)
        .outerjoin(Source, Source.id == Job.source_id)
        .where(PageCrawl.page_id.in_(pages), *where)
        .order_by(PageCrawl.id.desc())
        .limit(limit)
    )
    return [AttemptOnPage(*row) for row in rows]


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


def count_captures(
    session: Session, *, url_hash: int, key: str | None, seen: Sequence[ColumnElement[bool]] = ()
) -> tuple[int, datetime | None, datetime | None, int]:
    """Return the number and time range of a page's captures; with a key, also the number of its other spellings'."""
    this = and_(Snapshot.url_hash == url_hash, *seen)
    counted = select(Snapshot.id).where(this).limit(COUNTED + 1).subquery()
    count = session.scalar(select(func.count()).select_from(counted)) or 0
    first, last = (
        session.scalar(select(Snapshot.captured_at).where(this).order_by(order, Snapshot.id).limit(1))
        for order in (Snapshot.captured_at, Snapshot.captured_at.desc())
    )
    others = 0
    if key is not None:
        other = select(Snapshot.id).where(Snapshot.url_key == key, Snapshot.url_hash != url_hash, *seen).limit(COUNTED)
        others = session.scalar(select(func.count()).select_from(other.subquery())) or 0
    return count, first, last, others


def newest_captures(
    session: Session, *, url_hash: int, limit: int, seen: Sequence[ColumnElement[bool]] = ()
) -> list[tuple[Snapshot, str | None]]:
    """Return the newest captures of a page with their sources' codes, including those taken down."""
    rows = session.execute(
        select(Snapshot, Source.code)
        .outerjoin(Source, Source.id == Snapshot.source_id)
        .where(Snapshot.url_hash == url_hash, *seen)
        .order_by(Snapshot.captured_at.desc(), Snapshot.id.desc())
        .limit(limit)
    )
    return [(snapshot, code) for snapshot, code in rows]


def sources_of_captures(session: Session, *, url_hash: int) -> list[Source]:
    ids = select(Snapshot.source_id).where(Snapshot.url_hash == url_hash).limit(COUNTED).distinct()
    return list(session.scalars(select(Source).where(Source.id.in_(ids)).order_by(Source.code)))


def captures_by_id(session: Session, ids: Collection[int | None]) -> dict[int | None, Snapshot]:
    """Return captures by id; those not indexed yet are missing."""
    known = [number for number in ids if number is not None]
    return {row.id: row for row in session.scalars(select(Snapshot).where(Snapshot.id.in_(known)))} if known else {}


def file_paths(session: Session, ids: Collection[int | None]) -> dict[int | None, str]:
    """Return the paths of WARC files as stored in their rows, except discarded files."""
    known = [number for number in ids if number is not None]
    if not known:
        return {}
    rows = session.execute(
        select(WarcFile.id, WarcFile.path).where(WarcFile.id.in_(known), WarcFile.state != "discarded")
    )
    return {row[0]: row[1] for row in rows}
