"""The captures of a job over all its runs, and the crawls of a source; what was withdrawn is left out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import case, func, literal, select
from sqlalchemy.orm import Session, aliased

from holdfast.db.models import Document, Execution, IndexRun, Snapshot, WarcFile
from holdfast.db.visibility import visible
from holdfast.index.queries import holding_of, is_ok
from holdfast.urls import surt
from holdfast.warc.ids import ORDINALS

_FILES_AT_ONCE = 200
MAX_FILES = 20_000
"""Files that are passed over for one question."""


class Captured(NamedTuple):
    """A capture of a page."""

    id: int
    url: str
    captured_at: datetime
    status: int | None
    language: str | None
    title: str | None


def captured_by(session: Session, *, job_id: int, limit: int, offset: int) -> list[Captured]:
    """Return the captures of pages by a job, its newest run first, each run in the order of its files.

    One seek a run, and only what a page passes over is read: both orders are those of an index.
    """
    rows = session.execute(
        select(Snapshot.id, Snapshot.url, Snapshot.captured_at, Snapshot.status, Document.language, Document.title)
        .select_from(Execution)
        .join(Snapshot, Snapshot.execution_id == Execution.id)
        .outerjoin(Document, Document.id == Snapshot.document_id)
        .where(Execution.job_id == job_id, Snapshot.is_page, *visible())
        .order_by(Execution.number.desc(), Snapshot.id)
        .limit(limit)
        .offset(offset)
    )
    return [Captured(*row) for row in rows]


def newest_crawls(session: Session, *, source_id: int, limit: int) -> list[int]:
    """Return the executions whose indexed files came last, newest file first, at most `limit` of them.

    A snapshot's id begins with its file's, and an index has them by source: one seek a file, however many there are.
    """
    found: dict[int, None] = {}
    top: int | None = None
    for _ in range(MAX_FILES // _FILES_AT_ONCE):
        files = _files_below(session, source_id, top)
        rows = session.execute(select(WarcFile.id, WarcFile.execution_id).where(WarcFile.id.in_(files)))
        owners = {row[0]: row[1] for row in rows}
        for file in files:
            found.setdefault(owners[file])
            if len(found) == limit:
                return list(found)
        if len(files) < _FILES_AT_ONCE:
            break
        top = files[-1]
    return list(found)


def _files_below(session: Session, source_id: int, top: int | None) -> list[int]:
    """Return the files below one that hold captures of a source, newest first."""
    newest = select(func.max(Snapshot.id)).where(Snapshot.source_id == source_id)
    walk = select(
        (newest if top is None else newest.where(Snapshot.id < top * ORDINALS)).scalar_subquery().label("newest"),
        literal(1).label("place"),
    ).cte("walk", recursive=True)
    before = aliased(Snapshot)
    lower = walk.c.newest - walk.c.newest % ORDINALS
    following = select(func.max(before.id)).where(before.source_id == source_id, before.id < lower).scalar_subquery()
    walk = walk.union_all(
        select(following, walk.c.place + 1).where(walk.c.newest.is_not(None), walk.c.place < _FILES_AT_ONCE)
    )
    rows = session.scalars(select(walk.c.newest).where(walk.c.newest.is_not(None)).order_by(walk.c.place))
    return [row // ORDINALS for row in rows]


class Crawl(NamedTuple):
    """One execution, and what was noted of its files when they were indexed."""

    execution_id: int
    records: int
    pages: int
    first: datetime | None
    """When its first capture began; None if nobody noted it of one of its files."""
    last: datetime | None


def crawls(session: Session, execution_ids: Sequence[int]) -> list[Crawl]:
    """Return what was noted of the indexed files of these executions; one without any is left out."""
    noted = func.count(WarcFile.last_at) == func.count()
    rows = session.execute(
        select(WarcFile.execution_id, func.sum(IndexRun.records), func.sum(IndexRun.pages),
               case((noted, func.min(WarcFile.first_at))), case((noted, func.max(WarcFile.last_at))))
        .join(IndexRun, IndexRun.warc_file_id == WarcFile.id)
        .where(WarcFile.execution_id.in_(execution_ids), WarcFile.index_state == "indexed", IndexRun.records > 0)
        .group_by(WarcFile.execution_id)
        .order_by(WarcFile.execution_id.desc())
    )  # fmt: skip
    return [Crawl(row[0], int(row[1]), int(row[2]), row[3], row[4]) for row in rows]


def entry_of_crawl(session: Session, base_url: str, execution_id: int) -> Snapshot | None:
    """Return the last good capture of a source's first page by this execution; None if it made none."""
    within = holding_of(session, execution_id)
    if within is None:
        return None
    return session.scalars(
        select(Snapshot)
        .where(Snapshot.url_key == surt(base_url), is_ok(), *visible(), *within.clauses())
        .order_by(Snapshot.captured_at.desc(), Snapshot.id.desc())
        .limit(1)
    ).one_or_none()


class Extent(NamedTuple):
    """How many captures of pages there are, and from when to when."""

    pages: int
    first: datetime
    last: datetime


def extent_of_execution(session: Session, execution_id: int) -> Extent | None:
    """Return what an execution holds, None if nothing may be shown. Reads all its captures: only if they are few."""
    count, first, last = session.execute(
        select(func.count(), func.min(Snapshot.captured_at), func.max(Snapshot.captured_at)).where(
            Snapshot.execution_id == execution_id, Snapshot.is_page, *visible()
        )
    ).one()
    return None if first is None else Extent(count, first, last)


def ends_of_execution(session: Session, execution_id: int) -> list[datetime]:
    """Return when the first and the last page of an execution were captured, in the order of its files: two seeks."""
    pages = select(Snapshot.captured_at).where(Snapshot.execution_id == execution_id, Snapshot.is_page, *visible())
    found = (session.scalar(pages.order_by(order).limit(1)) for order in (Snapshot.id, Snapshot.id.desc()))
    return [moment for moment in found if moment is not None]
