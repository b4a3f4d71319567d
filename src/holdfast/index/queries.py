"""Reads of snapshots: their documents and texts, index lines, WARC files and stored bytes.

Captures under a takedown are excluded. Reading one snapshot's bytes is one seek to its record, and one more to
the original of a revisit; memory holds only what the caller reads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from threading import local
from typing import Any, NamedTuple

import zstandard
from sqlalchemy import ColumnElement, and_, bindparam, func, or_, select, update
from sqlalchemy.orm import Session

from holdfast.db.models import (
    Document,
    DocumentText,
    Execution,
    Job,
    LinkText,
    PageGroup,
    SearchOutbox,
    Snapshot,
    Source,
    WarcFile,
)
from holdfast.errors import NotFound
from holdfast.index.writing_queries import OTHER_HOST_TEXTS, OWN_HOST_TEXTS
from holdfast.parse.text import BLOCK_MARK, LINE_MARK, REST_MARK, without_marks
from holdfast.storage.roots import stored_file
from holdfast.storage.store import FileKey, StoredFile
from holdfast.types import CUT_RECORD
from holdfast.values import dataclass
from holdfast.warc.payload import DecodeCaps, HttpHead, Reserve, decode, no_reserve
from holdfast.warc.reader import Record, open_record_at
from holdfast.warc.record import ORDINALS, RecordHead
from holdfast.withdrawals.visibility import any_snapshot, public_source, visible, visible_snapshot

# No stored text is longer: the parser cuts at four million characters.
MAX_TEXT_BYTES = 64 * 1024 * 1024


def is_ok() -> ColumnElement[bool]:
    """Return the clause over Snapshot for successful captures of the page itself: a 2xx, or a 304 that confirms
    one.
    """
    return or_(
        Snapshot.status.between(200, 299),
        and_(Snapshot.status == 304, Snapshot.record_type == "revisit"),
    )


def renew_good_captures(session: Session, captures: Collection[Snapshot], *, now: datetime) -> None:
    """Recompute the newest good captures of these captures' pages, and queue their link texts for search.

    For captures whose noise label was set or removed.
    """
    groups = sorted({one.group_id for one in captures if one.group_id is not None})
    if not groups:
        return
    newest = (
        select(Snapshot.id)
        .where(Snapshot.group_id == PageGroup.id, is_ok(), Snapshot.noise.is_(None))
        .order_by(Snapshot.captured_at.desc(), Snapshot.id.desc())
        .limit(1)
        .scalar_subquery()
    )
    # Use the order of every writer: two writers of the same groups then wait instead of deadlocking.
    session.execute(select(PageGroup.id).where(PageGroup.id.in_(groups)).order_by(PageGroup.id).with_for_update())
    session.execute(
        update(PageGroup)
        .where(PageGroup.id.in_(groups))
        .values(latest_ok_id=newest)
        .execution_options(synchronize_session=False)
    )
    said = select(LinkText.to_hash).where(LinkText.snapshot_id.in_([one.id for one in captures]))
    named = session.scalars(select(PageGroup.url_hash).where(PageGroup.url_hash.in_(said)).distinct())
    if hashes := sorted(named):
        session.add(SearchOutbox(kind="link_texts", created_at=now, refs={"hashes": hashes}))


def document_of(session: Session, found: Snapshot) -> Document | None:
    return None if found.document_id is None else session.get(Document, found.document_id)


def text_of(session: Session, document_id: int) -> str | None:
    packed = session.scalar(select(DocumentText.text).where(DocumentText.document_id == document_id))
    return None if packed is None else unpack_text(packed)


def demand_body(session: Session, found: Snapshot) -> None:
    """Raise SnapshotNotFound for a revisit whose original is hidden: both have the same text and bytes."""
    if found.original_id is not None and any_snapshot(session, found.original_id) is not None:
        visible_snapshot(session, found.original_id)


def shown_text(session: Session, found: Snapshot) -> str | None:
    """Return a capture's text, None if it has none; raise SnapshotNotFound like `demand_body`."""
    demand_body(session, found)
    return None if found.document_id is None else text_of(session, found.document_id)


def unpack_text(packed: bytes) -> str:
    return without_marks(unpack_visible(packed)[0])


def unpack_visible(packed: bytes) -> tuple[str, str]:
    """Return the main content and the rest of the page's text, with the marks of lines that belong to one block."""
    # Cache bytes: one non-ASCII letter doubles the size of a string.
    text, _, rest = _unpacked(packed).partition(_REST)
    return text.decode(), rest.decode()


def searched_texts(packed: bytes) -> Iterator[bytes]:
    """Yield texts to search for words until they are found: the start of a long text, its main content, the rest."""
    if zstandard.frame_content_size(packed) > 2 * _START_BYTES:
        start = _unpacker().stream_reader(packed).read(_START_BYTES)
        if _REST not in start:
            yield start.rpartition(b"\n")[0].replace(_JOINED, b"")
    text, _, rest = _unpacked(packed).partition(_REST)
    yield text.replace(_JOINED, b"")
    yield rest.replace(_JOINED, b"")


def _unpacked(packed: bytes) -> bytes:
    visible: bytes = _unpacker().decompress(packed, max_output_size=MAX_TEXT_BYTES)
    return visible


def _unpacker() -> zstandard.ZstdDecompressor:
    unpacker: zstandard.ZstdDecompressor | None = getattr(_unpackers, "one", None)
    if unpacker is None:
        # Keep one per thread: creating it takes as long as decompressing a page.
        unpacker = _unpackers.one = zstandard.ZstdDecompressor()
    return unpacker


_START_BYTES = 50_000
_REST, _JOINED = REST_MARK.encode(), LINE_MARK.removeprefix(BLOCK_MARK).encode()
_unpackers = local()


MOST_LINK_WORDS = 64
_LINK_WORDS_AT_ONCE = 400
_TEXTS = (
    # These columns are in sort order, the newest first.
    select(LinkText.to_hash, -LinkText.snapshot_id, LinkText.text, LinkText.host_hash)
    .join(Snapshot, Snapshot.id == LinkText.snapshot_id)
    .where(
        LinkText.to_hash.in_(bindparam("hashes", expanding=True)),
        ~Snapshot.noindex,
        Snapshot.noise.is_(None),
        *visible(),
        # All readers share the index of words: everybody would find the link texts of members' pages.
        public_source(Snapshot.source_id),
    )
)


def link_words(session: Session, to_hashes: Iterable[int]) -> list[tuple[int, int, str]]:
    """Return (target's hash, linking host's hash, text) of links to these URLs (hashes of groups): at most 64 per URL.

    The host's hash is 0 for the target's own host.

    At most 16 from the URL's own host and 4 from any other, the newest first, ignoring case in duplicates. Excluded
    are captures under a takedown, of a members' source, with noindex, or that do not show their page. At most some
    hundred rows per URL are read, in the same order on both databases.
    """
    wanted = sorted(set(to_hashes))
    found: list[tuple[int, int, str]] = []
    for at in range(0, len(wanted), _LINK_WORDS_AT_ONCE):
        rows = session.connection().execute(_TEXTS, {"hashes": wanted[at : at + _LINK_WORDS_AT_ONCE]}).all()
        # Sort here: the two databases sort texts differently.
        for _, of_target in groupby(sorted(map(tuple, rows)), key=itemgetter(0)):
            found += _chosen_words(of_target)
    return found


def _chosen_words(rows: Iterable[Any]) -> list[tuple[int, int, str]]:
    chosen: list[tuple[int, int, str]] = []
    seen: set[str] = set()
    counts: dict[int, int] = {}
    for to_hash, _, text, host_hash in rows:
        folded = text.casefold()
        count = counts.get(host_hash, 0)
        if folded in seen or count >= (OTHER_HOST_TEXTS if host_hash else OWN_HOST_TEXTS):
            continue
        seen.add(folded)
        counts[host_hash] = count + 1
        chosen.append((to_hash, host_hash, text))
        if len(chosen) == MOST_LINK_WORDS:
            break
    return chosen


class CaptureRange(NamedTuple):
    execution_id: int
    first_id: int
    last_id: int
    since: datetime
    until: datetime

    def clauses(self) -> tuple[ColumnElement[bool], ...]:
        """Return clauses over Snapshot that select these captures, so that only a short part of a URL's history is
        read.
        """
        # `+ 0` keeps the planner on the address: the index of executions would read the whole execution.
        return (
            Snapshot.execution_id + 0 == self.execution_id,
            Snapshot.id.between(self.first_id, self.last_id),
            Snapshot.captured_at.between(self.since, self.until),
        )


def holding_of(session: Session, execution_id: int) -> CaptureRange | None:
    """Return the range of an execution's captures, None if it has no file. Reads one row per file."""
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


_FILE_KEY = select(WarcFile.key, WarcFile.location).where(
    WarcFile.id == bindparam("number"), WarcFile.state != "discarded"
)
"""Built once: every replayed record asks it."""


def file_of(session: Session, home: Path, warc_file_id: int) -> StoredFile:
    """Return a WARC file; raise NotFound if it was discarded, StrayFile if its row's place is not permitted."""
    row = session.execute(_FILE_KEY, {"number": warc_file_id}).one_or_none()
    if row is None:
        raise NotFound(f"there is no WARC file {warc_file_id}")
    return stored_file(home, FileKey(*row))


def mark_compared(session: Session, ids: Iterable[int]) -> None:
    session.execute(update(Snapshot).where(Snapshot.id.in_(list(ids))).values(compared=True))


def warc_files(
    session: Session, *, source: str | None = None, execution_id: int | None = None, newest: bool = False
) -> Iterator[tuple[WarcFile, str]]:
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


def sealed_files_after(
    session: Session, *, source: str | None, execution_id: int | None, after: int, limit: int
) -> list[tuple[int, str, int]]:
    """Return (id, path, size) of sealed files, by id."""
    rows = session.execute(
        _sealed(select(WarcFile.id, WarcFile.path, WarcFile.size), source, execution_id)
        .where(WarcFile.id > after)
        .order_by(WarcFile.id)
        .limit(limit)
    )
    return [(row[0], row[1], int(row[2] or 0)) for row in rows]


def sealed_total(session: Session, *, source: str | None, execution_id: int | None) -> tuple[int, int]:
    """Return the number of sealed files and their total size in bytes."""
    row = session.execute(_sealed(select(func.count(), func.sum(WarcFile.size)), source, execution_id)).one()
    return int(row[0]), int(row[1] or 0)


def _sealed(query: Any, source: str | None, execution_id: int | None) -> Any:
    query = query.select_from(WarcFile).where(WarcFile.state == "sealed")
    if source is not None:
        query = (
            query.join(Execution, Execution.id == WarcFile.execution_id)
            .join(Job, Job.id == Execution.job_id)
            .join(Source, Source.id == Job.source_id)
            .where(Source.code == source)
        )
    return query if execution_id is None else query.where(WarcFile.execution_id == execution_id)


def file_by_path(session: Session, path: str) -> WarcFile | None:
    """Return the file stored under this path, or with this name if it is the only one."""
    exact = session.scalars(select(WarcFile).where(WarcFile.path == path)).one_or_none()
    if exact is not None or "/" in path:
        return exact
    named = list(session.scalars(select(WarcFile).where(WarcFile.path.endswith(f"/{path}", autoescape=True)).limit(2)))
    return named[0] if len(named) == 1 else None


def execution_with_source(session: Session, execution_id: int) -> tuple[Execution, Source] | None:
    row = session.execute(
        select(Execution, Source)
        .join(Job, Job.id == Execution.job_id)
        .join(Source, Source.id == Job.source_id)
        .where(Execution.id == execution_id)
    ).one_or_none()
    return None if row is None else (row[0], row[1])


class CdxRow(NamedTuple):
    id: int
    url_key: str
    captured_at: datetime
    url: str
    record_type: str
    media_type: str | None
    status: int | None
    digest: str | None
    length: int
    offset: int
    method: str | None
    redirect_to: str | None
    warc_file_id: int
    original_id: int | None


# The columns of CdxRow, in its order; the CDX server queries them by key.
CDX_COLUMNS: tuple[Any, ...] = (
    Snapshot.id,
    Snapshot.url_key,
    Snapshot.captured_at,
    Snapshot.url,
    Snapshot.record_type,
    Snapshot.media_type,
    Snapshot.status,
    Snapshot.payload_digest,
    Snapshot.warc_length,
    Snapshot.warc_offset,
    Snapshot.method,
    Snapshot.redirect_to,
    Snapshot.warc_file_id,
    Snapshot.original_id,
)


def cdx_rows(
    session: Session, *, execution_id: int | None = None, source_id: int | None = None, after: int, limit: int
) -> list[CdxRow]:
    query = select(*CDX_COLUMNS).where(Snapshot.id > after, *visible()).order_by(Snapshot.id).limit(limit)
    if execution_id is not None:
        query = query.where(Snapshot.execution_id == execution_id)
    if source_id is not None:
        query = query.where(Snapshot.source_id == source_id)
    return [CdxRow._make(row) for row in session.execute(query)]


def cdx_rows_of(session: Session, ids: Iterable[int]) -> dict[int, CdxRow]:
    """Return these captures by id, without those under a takedown; pass a few thousand ids at most.

    Used for originals, so that no revisit shows the content of a capture under a takedown.
    """
    wanted = sorted(set(ids))
    if not wanted:
        return {}
    rows = session.execute(select(*CDX_COLUMNS).where(Snapshot.id.in_(wanted), *visible()).order_by(Snapshot.id))
    return {row[0]: CdxRow._make(row) for row in rows}


_EMPTY = HttpHead(200, "OK", ())
# Headers of the confirmed response that a 304 must not change (RFC 9111, section 3.2: they describe the body).
_OF_THE_BODY = frozenset(
    {
        "content-encoding",
        "content-length",
        "content-md5",
        "content-range",
        "content-type",
        "digest",
        "transfer-encoding",
    }
)


@dataclass(slots=True, kw_only=True)
class StoredRecord:
    head: HttpHead | None
    """Status and headers; None for a resource. A 304 becomes the response it confirmed, with its own headers."""
    record: RecordHead
    """The record of the snapshot itself, even if the body comes from another record."""
    payload: Iterator[bytes]
    """The body without chunked encoding, content codings as stored; readable once. Empty if its original is lost."""
    body_head: HttpHead | None
    """The head that states the coding of the body: the original's, for a revisit."""

    @property
    def status(self) -> int | None:
        """The HTTP status; 200 for a resource; None without a status line."""
        return 200 if self.head is None else self.head.status or None

    @property
    def media_type(self) -> str | None:
        if self.head is not None and (declared := self.head.media_type or (self.body_head or _EMPTY).media_type):
            return declared
        if self.head is not None:
            return None
        return (self.record.get("Content-Type") or "").partition(";")[0].strip().lower() or None

    def content(self, limit: int, reserve: Reserve = no_reserve) -> bytes:
        """Return the decoded body, at most `limit` bytes; decompression bombs stop at their caps."""
        caps = DecodeCaps(max_output_bytes=limit, reserve=reserve)
        return decode(self.body_head or _EMPTY, self.payload, caps)[0]


@contextmanager
def open_stored(session: Session, home: Path, snapshot: Snapshot) -> Iterator[StoredRecord]:
    """Open the content of a snapshot. The session is needed only until this is open.

    Raise NotFound if the file is gone or a revisit's original is under a takedown, DamagedWarc if its record is
    missing.
    """
    with ExitStack() as stack:
        record = stack.enter_context(_opened_at(session, home, snapshot))
        if snapshot.record_type != "revisit":
            head, payload = _opened(record)
            yield StoredRecord(head=head, record=record.head, payload=payload, body_head=head)
            return
        own = record.http()[0] if record.head.content_length else None
        original = None if snapshot.original_id is None else any_snapshot(session, snapshot.original_id)
        if original is None:
            yield StoredRecord(head=own, record=record.head, payload=iter(()), body_head=own)
            return
        visible_snapshot(session, original.id)  # no revisit shows a capture under a takedown
        body_head, payload = _opened(stack.enter_context(_opened_at(session, home, original)))
        head = _confirmed(own, body_head)
        yield StoredRecord(head=head, record=record.head, payload=payload, body_head=body_head)


def _opened_at(session: Session, home: Path, snapshot: Snapshot) -> AbstractContextManager[Record]:
    file = file_of(session, home, snapshot.warc_file_id)
    return open_record_at(file, snapshot.warc_offset, is_cut=CUT_RECORD in (snapshot.problems or "").split(","))


def _opened(record: Record) -> tuple[HttpHead | None, Iterator[bytes]]:
    declared = (record.head.get("Content-Type") or "").lower()
    if record.head.type == "resource" or (declared and not declared.startswith("application/http")):
        return None, record.block()
    return record.http()


def _confirmed(own: HttpHead | None, body_head: HttpHead | None) -> HttpHead | None:
    """Return the head to show: a revisit's own, or for a 304 (or none) the original's, freshened by it (RFC 9111)."""
    if own is None or body_head is None:
        return own or body_head
    if own.status != 304:
        return own
    fresh = [(name, value) for name, value in own.headers if name.lower() not in _OF_THE_BODY]
    renewed = {name.lower() for name, _ in fresh}
    kept = [(name, value) for name, value in body_head.headers if name.lower() not in renewed]
    return HttpHead(body_head.status, body_head.reason, (*kept, *fresh))
