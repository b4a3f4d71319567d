"""What is checked of one record: head, length, end, digests, and how it fits to the one before it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from holdfast.warc.digest import Hasher, agrees, hasher_for
from holdfast.warc.feed import Feed
from holdfast.warc.member import BadBytes
from holdfast.warc.payload import parse_head as parse_http_head
from holdfast.warc.payload import payload_chunks
from holdfast.warc.record import (
    LOST_TYPE,
    MAX_HEAD_BYTES,
    MAX_HTTP_HEAD_BYTES,
    BadHead,
    RecordHead,
    bare_id,
    parse_head,
    percent_encoded,
)

_MANDATORY = ("WARC-Type", "WARC-Record-ID", "WARC-Date")
_MANY = {"warc-concurrent-to", "warc-protocol"}
_MAX_LISTED = 1000
_MAX_BREAKS = 64
# Writers that count empty lines differently, or end them with LF; an odd mixture means that Content-Length is wrong.
_SLOPPY = re.compile(rb"(?:\r\n)+|\n+")
_CAPTURES = {"response", "revisit"}


class Problem(NamedTuple):
    """Something that is not as it should be, and where."""

    offset: int
    kind: str
    detail: str


class Ledger:
    """Collects what is found in one file. Problems make it bad; notes are what a careful reader would like to know."""

    def __init__(self) -> None:
        self.records = 0
        self.problem_count = 0
        self.problems: list[Problem] = []
        self.notes: list[Problem] = []
        self.own = False
        """True once the file is known to be ours: then nothing is excused."""

    def problem(self, offset: int, kind: str, detail: str) -> None:
        """List a problem; of very many only the first thousand."""
        self.problem_count += 1
        if len(self.problems) < _MAX_LISTED:
            self.problems.append(Problem(offset, kind, detail))

    def note(self, offset: int, kind: str, detail: str) -> None:
        """List what others may do and we would not."""
        if len(self.notes) < _MAX_LISTED:
            self.notes.append(Problem(offset, kind, detail))

    def fault(self, offset: int, kind: str, detail: str) -> None:
        """List what is a problem in a file of ours and a note in that of others."""
        (self.problem if self.own else self.note)(offset, kind, detail)


class Inspection:
    """Looks at the records of one file, in order."""

    def __init__(self, ledger: Ledger, *, plain: bool = False) -> None:
        self._ledger = ledger
        self._plain = plain
        """True if nothing but the records themselves tells where they end."""
        self._before: RecordHead | None = None

    def record(self, offset: int, feed: Feed) -> bool:
        """Look at the record that the feed stands at, up to its end; return whether the next one can follow there.

        BadBytes if the stream itself is damaged.
        """
        try:
            head = parse_head(feed.head(MAX_HEAD_BYTES))
            size = head.content_length
        except BadHead as exc:
            self._ledger.problem(offset, "record_header", str(exc))
            return False
        first, self._ledger.records = self._ledger.records == 0, self._ledger.records + 1
        self._block(offset, head, Feed(feed.take(size)), size, first)
        self._fields(offset, head)
        self._order(offset, head, first)
        self._before = head
        return self._end(offset, feed)

    def _block(self, offset: int, head: RecordHead, block: Feed, size: int, first: bool) -> None:
        """Read the block once, with both digests; a warcinfo at the front tells whose file this is."""
        stated = head.get("WARC-Block-Digest")
        hasher = hasher_for(stated) if stated else None
        watched = Feed(_watch(block.take(size), hasher))
        if first and head.type == "warcinfo":
            self._ledger.own = self._ledger.own or b"software: holdfast" in watched.peek(512).lower()
        self._payload(offset, head, watched, size)
        watched.drain()
        if watched.position < size:
            raise BadBytes("content_length", f"the block has {watched.position} bytes, Content-Length says {size}")
        if stated and hasher is None:
            self._ledger.note(offset, "digest_unknown", f"{stated[:40]!r} cannot be checked")
        elif stated and hasher is not None and not agrees(stated, hasher):
            self._ledger.problem(offset, "block_digest", f"the block does not have the digest {stated[:100]}")
        elif not stated and self._ledger.own and head.get("Content-Type") != LOST_TYPE:
            self._ledger.problem(offset, "digest_missing", "no WARC-Block-Digest")

    def _payload(self, offset: int, head: RecordHead, block: Feed, size: int) -> None:
        stated = head.get("WARC-Payload-Digest")
        if not stated or head.type == "revisit" or head.get("WARC-Segment-Number"):
            return  # what it is the digest of stands elsewhere
        decoded, raw = hasher_for(stated), hasher_for(stated)
        if decoded is None or raw is None:
            self._ledger.note(offset, "digest_unknown", f"{stated[:40]!r} cannot be checked")
            return
        if "application/http" in (head.get("Content-Type") or "").lower():
            self._http(offset, block, size, decoded, raw)
        else:
            for piece in block.take(size):
                decoded.update(piece)
        if agrees(stated, decoded):
            return
        if not self._ledger.own and agrees(stated, raw):
            self._ledger.note(offset, "payload_digest", "it was made before the transfer encoding was removed")
        elif not self._ledger.own and head.get("WARC-Truncated"):
            self._ledger.note(offset, "payload_digest", "it is that of more bytes than were kept")
        else:
            self._ledger.problem(offset, "payload_digest", f"the payload does not have the digest {stated[:100]}")

    def _http(self, offset: int, block: Feed, size: int, decoded: Hasher, raw: Hasher) -> None:
        try:
            http = parse_http_head(block.head(min(size, MAX_HTTP_HEAD_BYTES)))
            for piece in payload_chunks(http, _watch(block.take(size - block.position), raw)):
                decoded.update(piece)
        except BadBytes as bad:
            if bad.kind != "record_header":
                raise
            self._ledger.note(offset, "http_head", "the block does not begin with an HTTP head")

    def _fields(self, offset: int, head: RecordHead) -> None:
        ledger = self._ledger
        for name in _MANDATORY:
            if not head.get(name):
                ledger.problem(offset, "field_missing", f"no {name}")
        if head.type == "revisit" and not head.get("WARC-Profile"):
            ledger.problem(offset, "field_missing", "no WARC-Profile in a revisit")
        for name, count in Counter(name.lower() for name, _ in head.fields).items():
            if count > 1 and name not in _MANY:
                ledger.fault(offset, "field_repeated", f"{percent_encoded(name)} is there {count} times")
        if head.get("WARC-Date"):
            try:
                _ = head.date
            except BadHead as exc:
                ledger.problem(offset, "field_value", str(exc))

    def _order(self, offset: int, head: RecordHead, first: bool) -> None:
        ledger = self._ledger
        is_lost = (head.get("Content-Type") or "") == LOST_TYPE
        if first and head.type != "warcinfo" and not is_lost:
            ledger.fault(offset, "warcinfo_missing", f"the file begins with a record of type {head.type[:40]!r}")
        if is_lost:
            ledger.note(offset, "lost_record", "a repair found a damaged record here")
        before = self._before
        if head.type != "request" or before is None or before.type == "metadata":
            return
        partner = bare_id(head.get("WARC-Concurrent-To") or "")
        same_event = partner == before.record_id and head.get("WARC-Date") == before.get("WARC-Date")
        if ledger.own and not (same_event and before.type in _CAPTURES):
            ledger.problem(offset, "pair_broken", "a request does not belong to the capture before it")

    def _end(self, offset: int, feed: Feed) -> bool:
        """Look for the two empty lines after a block."""
        near = feed.peek(_MAX_BREAKS)
        breaks = near[: len(near) - len(near.lstrip(b"\r\n"))]
        feed.drop(len(breaks))
        if breaks == b"\r\n\r\n":
            return True
        after = feed.peek(5).upper()
        detail = f"after the block stands {near[:8]!r}, not two empty lines"
        if after not in (b"", b"WARC/"):
            self._ledger.problem(offset, "record_end", detail)
            return False
        if self._plain and not after and b"\r\n\r\n".startswith(breaks):
            self._ledger.problem(offset, "truncated", "the file ends before the two empty lines after the block")
        elif _SLOPPY.fullmatch(breaks) or (not breaks and not self._plain):
            self._ledger.fault(offset, "record_end", detail)
        else:
            self._ledger.problem(offset, "record_end", detail)
        return True


def _watch(pieces: Iterator[bytes], hasher: Hasher | None) -> Iterator[bytes]:
    for piece in pieces:
        if hasher is not None:
            hasher.update(piece)
        yield piece
