"""What the archive's readers ask of snapshots and documents. Every answer leaves out what was withdrawn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import zstandard
from sqlalchemy import ColumnElement, and_, func, or_, select, update
from sqlalchemy.orm import Session

from holdfast.db.models import (
    Document,
    DocumentText,
    Execution,
    Job,
    Snapshot,
    Source,
    WarcFile,
)
from holdfast.errors import NotFound
from holdfast.urls.address import url_key
from holdfast.warc.record import ORDINALS
from holdfast.warc.roots import locate
from holdfast.withdrawals.visibility import visible

MAX_TEXT_BYTES = 64 * 1024 * 1024
"""No stored text is longer: the parser cuts at four million characters."""


class SnapshotNotFound(NotFound):
    """No such snapshot is here, or it was withdrawn; nobody is told which."""

    code = "snapshot_not_found"


def is_ok() -> ColumnElement[bool]:
    """Return the clause over Snapshot for captures that show the page itself: a 2xx, or a 304 that stands for one."""
    return or_(
        Snapshot.status.between(200, 299),
        and_(Snapshot.status == 304, Snapshot.record_type == "revisit"),
    )


def snapshot(session: Session, snapshot_id: int) -> Snapshot:
    """Return one snapshot; SnapshotNotFound if there is none or it is withdrawn."""
    if -(1 << 63) <= snapshot_id < 1 << 63:
        found = session.scalars(select(Snapshot).where(Snapshot.id == snapshot_id, *visible())).one_or_none()
        if found is not None:
            return found
    raise SnapshotNotFound(f"there is no snapshot {snapshot_id}; find one with: holdfast search WORDS")


def document_of(session: Session, found: Snapshot) -> Document | None:
    """Return the document of a snapshot, None if it has none."""
    return None if found.document_id is None else session.get(Document, found.document_id)


def documents(session: Session, ids: Iterable[int]) -> dict[int, Document]:
    """Return these documents by id; what is not there is left out. Ask for a page of them, not for thousands."""
    wanted = sorted(set(ids))
    if not wanted:
        return {}
    return {row.id: row for row in session.scalars(select(Document).where(Document.id.in_(wanted)))}


def text_of(session: Session, document_id: int) -> str | None:
    """Return a document's main text, one block a line; None if it has none."""
    packed = session.scalar(select(DocumentText.text).where(DocumentText.document_id == document_id))
    return None if packed is None else unpack_text(packed)


def unpack_text(packed: bytes) -> str:
    """Return the text of a `document_texts` row."""
    return zstandard.ZstdDecompressor().decompress(packed, max_output_size=MAX_TEXT_BYTES).decode()


def closest(session: Session, url: str, moment: datetime, *, ok_only: bool = False) -> Snapshot | None:
    """Return the visible capture of this address nearest to a moment, the earlier one on a tie; None if there is none.

    Addresses are matched by their key, as other archives do: scheme, `www` and case do not matter. Two index seeks.
    """
    wanted = [Snapshot.url_key == url_key(url), *visible(), *((is_ok(),) if ok_only else ())]
    before = session.scalars(
        select(Snapshot)
        .where(*wanted, Snapshot.captured_at <= moment)
        .order_by(Snapshot.captured_at.desc(), Snapshot.id.desc())
        .limit(1)
    ).one_or_none()
    if before is not None and before.captured_at == moment:
        return before
    after = session.scalars(
        select(Snapshot)
        .where(*wanted, Snapshot.captured_at > moment)
        .order_by(Snapshot.captured_at, Snapshot.id)
        .limit(1)
    ).one_or_none()
    if before is None or after is None:
        return before or after
    return before if moment - before.captured_at <= after.captured_at - moment else after


class CaptureRange(NamedTuple):
    """Where the captures of an execution stand: between which ids, and between which moments where that was noted."""

    execution_id: int
    first_id: int
    last_id: int
    since: datetime
    until: datetime

    def clauses(self) -> tuple[ColumnElement[bool], ...]:
        """Return the clauses over Snapshot that leave these captures: a short stretch of an address's history."""
        # `+ 0` keeps the planner on the address: the index of executions would read the whole execution.
        return (
            Snapshot.execution_id + 0 == self.execution_id,
            Snapshot.id.between(self.first_id, self.last_id),
            Snapshot.captured_at.between(self.since, self.until),
        )


def holding_of(session: Session, execution_id: int) -> CaptureRange | None:
    """Return where the captures of an execution stand; None if it has no file. A row a file is read."""
    low, high, since, until, known, count = session.execute(
        select(
            func.min(WarcFile.id),
            func.max(WarcFile.id),
            func.min(WarcFile.first_at),
            func.max(WarcFile.last_at),
            func.count(WarcFile.last_at),
            func.count(),
        ).where(WarcFile.execution_id == execution_id)
    ).one()
    if low is None:
        return None
    if known < count or since is None or until is None:
        since, until = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)
    return CaptureRange(execution_id, low * ORDINALS, (high + 1) * ORDINALS - 1, since, until)


def path_of(session: Session, home: Path, warc_file_id: int) -> Path:
    """Return where a WARC file lies; NotFound if it was discarded, StrayFile if none may lie where its row says."""
    stored = session.scalar(select(WarcFile.path).where(WarcFile.id == warc_file_id, WarcFile.state != "discarded"))
    if stored is None:
        raise NotFound(f"there is no WARC file {warc_file_id}")
    return locate(home, stored)


def mark_compared(session: Session, ids: Iterable[int]) -> None:
    """Say that `changes` has looked at these snapshots."""
    session.execute(update(Snapshot).where(Snapshot.id.in_(list(ids))).values(compared=True))


def warc_files(
    session: Session, *, source: str | None = None, execution_id: int | None = None, newest: bool = False
) -> Iterator[tuple[WarcFile, str]]:
    """Yield WARC files with the code of their source, by id, or the newest first; a portion at a time."""
    query = (
        select(WarcFile, Source.code)
        .join(Execution, Execution.id == WarcFile.execution_id)
        .join(Job, Job.id == Execution.job_id)
        .join(Source, Source.id == Job.source_id)
        .where(WarcFile.state != "discarded")
        .order_by(WarcFile.id.desc() if newest else WarcFile.id)
    )
    if source is not None:
        query = query.where(Source.code == source)
    if execution_id is not None:
        query = query.where(WarcFile.execution_id == execution_id)
    for row in session.execute(query.execution_options(yield_per=500)):
        yield row[0], row[1]


def file_by_path(session: Session, path: str) -> WarcFile | None:
    """Return the file that is stored under this path, or has this name if it is the only one."""
    exact = session.scalars(select(WarcFile).where(WarcFile.path == path)).one_or_none()
    if exact is not None or "/" in path:
        return exact
    named = list(session.scalars(select(WarcFile).where(WarcFile.path.endswith(f"/{path}", autoescape=True)).limit(2)))
    return named[0] if len(named) == 1 else None


def execution_with_source(session: Session, execution_id: int) -> tuple[Execution, Source] | None:
    """Return an execution and its source."""
    row = session.execute(
        select(Execution, Source)
        .join(Job, Job.id == Execution.job_id)
        .join(Source, Source.id == Job.source_id)
        .where(Execution.id == execution_id)
    ).one_or_none()
    return None if row is None else (row[0], row[1])
