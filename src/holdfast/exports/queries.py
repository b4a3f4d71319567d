"""What exports read: snapshots and files, by id, a page at a time. Nothing withdrawn is among them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, and_, false, func, not_, or_, select
from sqlalchemy.orm import Session

from holdfast.db.models import (
    Change,
    Document,
    Execution,
    IndexRun,
    Job,
    PageGroup,
    Snapshot,
    Source,
    WarcFile,
)
from holdfast.errors import NotFound
from holdfast.index.queries import CdxRow, cdx_rows_of, is_ok
from holdfast.warc.record import ORDINALS
from holdfast.withdrawals.visibility import visible, visible_source


class SnapshotRow(NamedTuple):
    """One snapshot with what an export says of it."""

    id: int
    source_code: str
    source_name: str
    url: str
    group: str | None
    captured_at: datetime
    language: str | None
    status: int | None
    media_type: str | None
    title: str | None
    execution_id: int
    backend: str
    fidelity: str


class ExportReach(NamedTuple):
    """Which rows are exported."""

    source_id: int | None = None
    since: datetime | None = None
    until: datetime | None = None
    """Exclusive."""

    @property
    def has_dates(self) -> bool:
        """Whether only some days are meant."""
        return self.since is not None or self.until is not None


class IdStretch(NamedTuple):
    """Ids that are looked at in one go; both ends are in it."""

    first: int
    last: int


def next_stretch(session: Session, reach: ExportReach, *, after: int) -> IdStretch | None:
    """Return the ids of the next file, behind an id, that may hold captures of these days; None if there is none.

    There is no index by time over all captures; files whose captures are all of other days are not looked into.
    """
    in_days = [WarcFile.index_state == "indexed", WarcFile.last_at.is_not(None)]
    outside = []
    if reach.since is not None:
        outside.append(WarcFile.last_at < reach.since)
    if reach.until is not None:
        outside.append(WarcFile.first_at >= reach.until)
    begun = (after + 1) // ORDINALS
    found = session.scalar(
        select(WarcFile.id)
        .where(WarcFile.id >= begun, not_(and_(*in_days, or_(false(), *outside))))
        .order_by(WarcFile.id)
        .limit(1)
    )
    if found is None:
        return None
    return IdStretch(max(after + 1, found * ORDINALS), (found + 1) * ORDINALS - 1)


def snapshots_within(session: Session, reach: ExportReach, ids: IdStretch, *, limit: int) -> list[SnapshotRow]:
    """Return the first snapshots of pages among these ids, by id."""
    return _snapshots(session, reach, ids.first - 1, limit, Snapshot.id <= ids.last)


def snapshots_after(session: Session, reach: ExportReach, *, after: int, limit: int) -> list[SnapshotRow]:
    """Return the next snapshots of pages, by id. With dates it walks all others too: see `next_stretch`."""
    return _snapshots(session, reach, after, limit)


def _snapshots(
    session: Session, reach: ExportReach, after: int, limit: int, *clauses: ColumnElement[bool]
) -> list[SnapshotRow]:
    query = (
        select(
            Snapshot.id,
            Source.code,
            Source.name,
            Snapshot.url,
            PageGroup.url,
            Snapshot.captured_at,
            Document.language,
            Snapshot.status,
            Snapshot.media_type,
            Document.title,
            Snapshot.execution_id,
            Snapshot.backend,
            Snapshot.fidelity,
        )
        .join(Source, Source.id == Snapshot.source_id)
        .outerjoin(PageGroup, PageGroup.id == Snapshot.group_id)
        .outerjoin(Document, Document.id == Snapshot.document_id)
        .where(Snapshot.is_page, Snapshot.id > after, *clauses, *visible())
        .order_by(Snapshot.id)
        .limit(limit)
    )
    if reach.source_id is not None:
        query = query.where(Snapshot.source_id == reach.source_id)
    if reach.since is not None:
        query = query.where(Snapshot.captured_at >= reach.since)
    if reach.until is not None:
        query = query.where(Snapshot.captured_at < reach.until)
    return [SnapshotRow._make(row) for row in session.execute(query)]


def changes_after(session: Session, reach: ExportReach, *, after: int, limit: int) -> list[int]:
    """Return the ids of the next changes in reach behind one: by id, or, of some days, in the order of time.

    Each is the order of an index, so that nothing but these is read.
    """
    query = select(Change.id).where(visible_source(Change.source_id)).limit(limit)
    if reach.source_id is not None:
        query = query.where(Change.source_id == reach.source_id)
    if not reach.has_dates:
        return list(session.scalars(query.where(Change.id > after).order_by(Change.id)))
    if reach.since is not None:
        query = query.where(Change.to_captured_at >= reach.since)
    if reach.until is not None:
        query = query.where(Change.to_captured_at < reach.until)
    last = session.execute(
        select(Change.to_captured_at, Change.id).where(Change.id <= after).order_by(Change.id.desc()).limit(1)
    ).one_or_none()
    if last is not None:
        # The bound on the moment lets the index seek; the `or` only leaves out what was given before.
        same_moment = and_(Change.to_captured_at == last[0], Change.id > last[1])
        query = query.where(Change.to_captured_at >= last[0], or_(Change.to_captured_at > last[0], same_moment))
    return list(session.scalars(query.order_by(Change.to_captured_at, Change.id)))


def file_paths(session: Session, ids: list[int]) -> dict[int, str]:
    """Return where these files lie, less what was discarded."""
    rows = session.execute(
        select(WarcFile.id, WarcFile.path).where(WarcFile.id.in_(ids), WarcFile.state != "discarded")
    )
    return {row[0]: row[1] for row in rows}


class BrokenEnd(NamedTuple):
    """Where a file breaks off inside a compressed record."""

    offset: int
    capture_id: int | None
    """The capture that begins there, if the index could read one."""


def broken_ends(session: Session, ids: Iterable[int]) -> dict[int, BrokenEnd]:
    """Return, of these files, those that break off inside a compressed record: other readers fail on its bytes.

    A plain file is not among them, for readers take what is left of its last record.
    """
    rows = session.execute(
        select(WarcFile.id, IndexRun.warnings)
        .join(IndexRun, IndexRun.warc_file_id == WarcFile.id)
        .where(WarcFile.id.in_(sorted(set(ids))), not_(WarcFile.path.endswith(".warc")))
    )
    found: dict[int, BrokenEnd] = {}
    for file_id, warnings in rows:
        offset = warnings.get("truncated", {}).get("offset")
        if offset is None:
            continue
        ids_of_file = Snapshot.id.between(file_id * ORDINALS, (file_id + 1) * ORDINALS - 1)
        last = session.execute(
            select(Snapshot.warc_offset, Snapshot.id).where(ids_of_file).order_by(Snapshot.id.desc()).limit(1)
        ).one_or_none()
        # Damage in the middle can look like an end; captures behind it are read by their offsets, and stay.
        if last is None or last[0] <= offset:
            found[file_id] = BrokenEnd(offset, last[1] if last is not None and last[0] == offset else None)
    return found


def whole_rows_of(session: Session, ids: Iterable[int]) -> dict[int, CdxRow]:
    """Return these captures by id, less what was withdrawn, and less those that their file breaks off in."""
    rows = cdx_rows_of(session, ids)
    for end in broken_ends(session, [row.warc_file_id for row in rows.values()]).values():
        rows.pop(end.capture_id or 0, None)
    return rows


class ExportedPage(NamedTuple):
    """One page for the list inside a package."""

    id: int
    record_id: str | None
    url: str
    url_hash: int
    captured_at: datetime
    title: str | None


def page_rows(session: Session, execution_id: int, *, after: int, limit: int) -> list[ExportedPage]:
    """Return the next captures of pages that were there, by id."""
    rows = session.execute(
        select(Snapshot.id, Snapshot.record_id, Snapshot.url, Snapshot.url_hash, Snapshot.captured_at, Document.title)
        .outerjoin(Document, Document.id == Snapshot.document_id)
        .where(
            Snapshot.execution_id == execution_id,
            Snapshot.is_page,
            Snapshot.id > after,
            # A record may have no status line; a redirect or an error page is no page to begin reading with.
            or_(Snapshot.status.is_(None), is_ok()),
            # A reader of the package asks for pages with GET.
            Snapshot.method.is_(None),
            *visible(),
        )
        .order_by(Snapshot.id)
        .limit(limit)
    )
    return [ExportedPage._make(row) for row in rows]


def chosen_pages(session: Session, ids: list[int]) -> list[ExportedPage]:
    """Return those of these captures that are pages, whatever their status; ask for some thousand at most."""
    rows = session.execute(
        select(Snapshot.id, Snapshot.record_id, Snapshot.url, Snapshot.url_hash, Snapshot.captured_at, Document.title)
        .outerjoin(Document, Document.id == Snapshot.document_id)
        .where(Snapshot.id.in_(ids), Snapshot.is_page, *visible())
        .order_by(Snapshot.id)
    )
    return [ExportedPage._make(row) for row in rows]


class ExportedFile(NamedTuple):
    """One sealed file of an execution."""

    id: int
    path: str
    size: int
    sha256: str
    crc32: int
    sealed_at: datetime
    indexed_at: datetime | None


def sealed_files(session: Session, execution_id: int) -> list[ExportedFile]:
    """Return the sealed files of an execution, oldest first; what of an unindexed one is withdrawn is not known."""
    rows = session.execute(
        select(
            WarcFile.id,
            WarcFile.path,
            WarcFile.size,
            WarcFile.sha256,
            WarcFile.crc32,
            WarcFile.sealed_at,
            IndexRun.finished_at,
        )
        .outerjoin(IndexRun, IndexRun.warc_file_id == WarcFile.id)
        .where(
            WarcFile.execution_id == execution_id,
            WarcFile.state == "sealed",
            WarcFile.index_state == "indexed",
        )
        .order_by(WarcFile.id)
    )
    return [ExportedFile._make(row) for row in rows]


class ExportedExecution(NamedTuple):
    """An execution and its source."""

    id: int
    source_id: int
    created_at: datetime
    config: dict[str, Any]
    job_config: dict[str, Any]
    source_code: str
    source_name: str
    base_url: str | None
    description: str | None


def execution(session: Session, execution_id: int) -> ExportedExecution:
    """Return an execution and its source; NotFound if there is none, or the viewer may not see its source."""
    row = session.execute(
        select(
            Execution.id,
            Source.id,
            Execution.created_at,
            Execution.config,
            Job.config,
            Source.code,
            Source.name,
            Source.base_url,
            Source.description,
        )
        .join(Job, Job.id == Execution.job_id)
        .join(Source, Source.id == Job.source_id)
        .where(Execution.id == execution_id, visible_source(Source.id))
    ).one_or_none()
    if row is None:
        raise NotFound(f"there is no execution {execution_id}; see them with: holdfast status")
    return ExportedExecution._make(row)


def records_noted(session: Session, *, execution_id: int | None = None, source_id: int | None = None) -> int:
    """Return how many records the files of an execution or a source have, as was noted by the index: a row a file."""
    query = select(func.coalesce(func.sum(IndexRun.records), 0)).join(WarcFile, WarcFile.id == IndexRun.warc_file_id)
    if execution_id is not None:
        query = query.where(WarcFile.execution_id == execution_id)
    if source_id is not None:
        query = query.join(Execution, Execution.id == WarcFile.execution_id).join(Job, Job.id == Execution.job_id)
        query = query.where(Job.source_id == source_id)
    return int(session.scalar(query) or 0)
