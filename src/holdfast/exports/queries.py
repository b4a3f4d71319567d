"""Queries of exports: snapshots and files, by id, a page at a time. Captures under a takedown are excluded."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Row, and_, false, func, not_, or_, select
from sqlalchemy.orm import Session

from holdfast.db.models import Change, Document, Execution, IndexRun, Job, PageGroup, Snapshot, Source, WarcFile
from holdfast.errors import NotFound
from holdfast.index.queries import CdxRow, cdx_rows_of, is_ok
from holdfast.storage.store import FileKey
from holdfast.warc.record import ORDINALS
from holdfast.withdrawals.visibility import visible, visible_source

# A row of the columns that the queries below select under these names.
SnapshotRow = Row[*tuple[Any, ...]]
ExportedPage = Row[*tuple[Any, ...]]
ExportedFile = Row[*tuple[Any, ...]]
ExportedExecution = Row[*tuple[Any, ...]]


class ExportReach(NamedTuple):
    source_id: int | None = None
    since: datetime | None = None
    until: datetime | None = None
    """Exclusive."""
    after: int = -1
    """Start after this id."""
    limit: int | None = None
    """Number of rows; None for all."""

    @property
    def has_dates(self) -> bool:
        return self.since is not None or self.until is not None


def next_stretch(session: Session, reach: ExportReach, *, after: int) -> tuple[int, int] | None:
    """Return the first and the last id of the next file that may hold captures of these days.

    There is no index by time over all captures; files whose captures are all of other days are skipped.
    """
    in_days = [WarcFile.index_state == "indexed", WarcFile.last_at.is_not(None)]
    outside = []
    if reach.since is not None:
        outside.append(WarcFile.last_at < reach.since)
    if reach.until is not None:
        outside.append(WarcFile.first_at >= reach.until)
    first = (after + 1) // ORDINALS
    found = session.scalar(
        select(WarcFile.id)
        .where(WarcFile.id >= first, not_(and_(*in_days, or_(false(), *outside))))
        .order_by(WarcFile.id)
        .limit(1)
    )
    if found is None:
        return None
    return max(after + 1, found * ORDINALS), (found + 1) * ORDINALS - 1


def snapshots_after(
    session: Session, reach: ExportReach, *, after: int, limit: int, until: int | None = None
) -> list[SnapshotRow]:
    """Return the next snapshots of pages, by id. With dates it walks all others too: see `next_stretch`."""
    clauses = [] if until is None else [Snapshot.id <= until]
    query = (
        select(
            *(Snapshot.id, Source.code.label("source_code"), Source.name, Snapshot.url, PageGroup.url.label("group")),
            *(Snapshot.captured_at, Document.language, Snapshot.status, Snapshot.media_type, Document.title),
            *(Snapshot.execution_id, Snapshot.backend, Snapshot.fidelity),
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
    return list(session.execute(query))


def changes_after(session: Session, reach: ExportReach, *, after: int, limit: int) -> list[int]:
    """Return the ids of the next changes: ordered by id or, with dates, by time.

    Each order is that of an index, so no other rows are read.
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
        # The bound on the moment lets the index seek; the `or` only excludes the rows of earlier pages.
        same_moment = and_(Change.to_captured_at == last[0], Change.id > last[1])
        query = query.where(Change.to_captured_at >= last[0], or_(Change.to_captured_at > last[0], same_moment))
    return list(session.scalars(query.order_by(Change.to_captured_at, Change.id)))


def file_keys(session: Session, ids: list[int]) -> dict[int, FileKey]:
    """Return the keys of these files, without discarded ones."""
    rows = session.execute(
        select(WarcFile.id, WarcFile.key, WarcFile.location).where(WarcFile.id.in_(ids), WarcFile.state != "discarded")
    )
    return {row[0]: FileKey(row[1], row[2]) for row in rows}


def file_key(file: ExportedFile) -> FileKey:
    return FileKey(file.key, file.location)


# The offset of the broken record, and the id of its capture.
BrokenEnd = tuple[int, int | None]


def broken_ends(session: Session, ids: Iterable[int]) -> dict[int, BrokenEnd]:
    """Return where those of these files end that do so inside a compressed record; other readers fail on them.

    Uncompressed files are omitted: other readers accept a truncated record.
    """
    rows = session.execute(
        select(WarcFile.id, IndexRun.warnings)
        .join(IndexRun, IndexRun.warc_file_id == WarcFile.id)
        .where(WarcFile.id.in_(sorted(set(ids))), not_(WarcFile.key.endswith(".warc")))
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
        # Damage in the middle can look like an end; captures after it are read by their offsets and kept.
        if last is None or last[0] <= offset:
            found[file_id] = (offset, last[1] if last is not None and last[0] == offset else None)
    return found


def whole_rows_of(session: Session, ids: Iterable[int]) -> dict[int, CdxRow]:
    """Return these captures by id, without those under a takedown and those cut off at the end of their file."""
    rows = cdx_rows_of(session, ids)
    for _, capture_id in broken_ends(session, [row.warc_file_id for row in rows.values()]).values():
        rows.pop(capture_id or 0, None)
    return rows


_PAGES = select(
    *(Snapshot.id, Snapshot.record_id, Snapshot.url, Snapshot.url_hash, Snapshot.captured_at, Document.title)
).outerjoin(Document, Document.id == Snapshot.document_id)


def page_rows(session: Session, execution_id: int, *, after: int, limit: int) -> list[ExportedPage]:
    rows = session.execute(
        _PAGES.where(
            Snapshot.execution_id == execution_id,
            Snapshot.is_page,
            Snapshot.id > after,
            # A record may lack a status line; a redirect or an error page is no good first page.
            or_(Snapshot.status.is_(None), is_ok()),
            # Readers of the package request pages with GET.
            Snapshot.method.is_(None),
            *visible(),
        )
        .order_by(Snapshot.id)
        .limit(limit)
    )
    return list(rows)


def chosen_pages(session: Session, ids: list[int]) -> list[ExportedPage]:
    """Return those of these captures that are pages, whatever their status; pass a few thousand ids at most."""
    rows = session.execute(_PAGES.where(Snapshot.id.in_(ids), Snapshot.is_page, *visible()).order_by(Snapshot.id))
    return list(rows)


def sealed_files(session: Session, execution_id: int) -> list[ExportedFile]:
    """Return an execution's sealed files, oldest first; takedowns in files that are not indexed are unknown."""
    rows = session.execute(
        select(
            *(WarcFile.id, WarcFile.key, WarcFile.location, WarcFile.size, WarcFile.sha256, WarcFile.crc32),
            WarcFile.sealed_at,
            IndexRun.finished_at.label("indexed_at"),
        )
        .outerjoin(IndexRun, IndexRun.warc_file_id == WarcFile.id)
        .where(WarcFile.execution_id == execution_id, WarcFile.state == "sealed", WarcFile.index_state == "indexed")
        .order_by(WarcFile.id)
    )
    return list(rows)


def execution(session: Session, execution_id: int) -> ExportedExecution:
    """Return an execution and its source; raise NotFound if it is missing or the viewer may not see its source."""
    row = session.execute(
        select(
            *(Execution.id, Execution.created_at, Execution.config, Job.config.label("job_config")),
            *(Source.id.label("source_id"), Source.code.label("source_code"), Source.name.label("source_name")),
            *(Source.base_url, Source.description),
        )
        .join(Job, Job.id == Execution.job_id)
        .join(Source, Source.id == Job.source_id)
        .where(Execution.id == execution_id, visible_source(Source.id))
    ).one_or_none()
    if row is None:
        raise NotFound(f"there is no execution {execution_id}; see them with: holdfast status")
    return row


def records_noted(session: Session, *, execution_id: int | None = None, source_id: int | None = None) -> int:
    """Return the number of records in the indexed files of an execution or a source; reads one row per file."""
    query = select(func.coalesce(func.sum(IndexRun.records), 0)).join(WarcFile, WarcFile.id == IndexRun.warc_file_id)
    if execution_id is not None:
        query = query.where(WarcFile.execution_id == execution_id)
    if source_id is not None:
        query = query.join(Execution, Execution.id == WarcFile.execution_id).join(Job, Job.id == Execution.job_id)
        query = query.where(Job.source_id == source_id)
    return int(session.scalar(query) or 0)
