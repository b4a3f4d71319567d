"""The stored bytes of one snapshot: one seek to its record, and one more to the original of a revisit.

Nothing is held in memory but what the caller asks for; damaged bytes raise DamagedWarc where they are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.orm import Session

from holdfast.db.models import Snapshot
from holdfast.index.queries import path_of
from holdfast.index.queries import snapshot as snapshot_shown
from holdfast.warc.payload import DecodeCaps, HttpHead, decode
from holdfast.warc.reader import Record, open_record_at
from holdfast.warc.record import RecordHead
from holdfast.withdrawals.queries import any_snapshot

_EMPTY = HttpHead(200, "OK", ())
# What a 304 must not change of the answer that it confirms (RFC 9111, section 3.2: it describes the body).
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
    """A capture as it is stored."""

    head: HttpHead | None
    """Status and headers; None for a resource. A 304 comes as the answer that it confirmed, with its own headers."""
    record: RecordHead
    """Of the snapshot itself, also where the body is another record's."""
    payload: Iterator[bytes]
    """The body without its chunks, content codings as stored; can be read once. Empty if a revisit's original is lost.
    """
    body_head: HttpHead | None
    """The head that tells how the body is coded: the original's, for a revisit."""

    @property
    def status(self) -> int | None:
        """The HTTP status; 200 for a resource; None where there is no status line."""
        return 200 if self.head is None else self.head.status or None

    @property
    def media_type(self) -> str | None:
        """The declared type without parameters, lower case."""
        if self.head is not None and (declared := self.head.media_type or (self.body_head or _EMPTY).media_type):
            return declared
        if self.head is not None:
            return None
        return (self.record.get("Content-Type") or "").partition(";")[0].strip().lower() or None

    def content(self, limit: int) -> bytes:
        """Return the body with its content codings undone, at most `limit` bytes of it; bombs stop at their caps."""
        return decode(self.body_head or _EMPTY, self.payload, DecodeCaps(max_output_bytes=limit)).data


@contextmanager
def open_stored(session: Session, home: Path, snapshot: Snapshot) -> Iterator[StoredRecord]:
    """Open what a snapshot shows. The session is needed only until this is open.

    NotFound if the file is gone or the original of a revisit was withdrawn, DamagedWarc if no record stands there.
    """
    with ExitStack() as stack:
        record = stack.enter_context(
            open_record_at(path_of(session, home, snapshot.warc_file_id), snapshot.warc_offset)
        )
        if snapshot.record_type != "revisit":
            head, payload = _opened(record)
            yield StoredRecord(head=head, record=record.head, payload=payload, body_head=head)
            return
        own = record.http()[0] if record.head.content_length else None
        original = None if snapshot.original_id is None else any_snapshot(session, snapshot.original_id)
        if original is None:
            yield StoredRecord(head=own, record=record.head, payload=iter(()), body_head=own)
            return
        snapshot_shown(session, original.id)  # what is withdrawn shows through none of its revisits either
        place = path_of(session, home, original.warc_file_id), original.warc_offset
        body_head, payload = _opened(stack.enter_context(open_record_at(*place)))
        head = _confirmed(own, body_head)
        yield StoredRecord(head=head, record=record.head, payload=payload, body_head=body_head)


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
