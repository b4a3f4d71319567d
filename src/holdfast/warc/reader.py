"""Reads WARC files of any writer: records in sequence, or one record by its offset, with bounded memory.

Supports gzip, zstd and plain files; reports and skips damage, and rejects ambiguous input.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain

from holdfast.errors import Invalid
from holdfast.storage.folder import AnyFile
from holdfast.warc.member import (
    MAGIC,
    OWN_HEADER_BYTES,
    BadBytes,
    ByteSource,
    GzipMember,
    Pulse,
    Resync,
    ZstdFrame,
    compressed_pieces,
    is_gzip,
    is_zstd,
    load_dictionary,
    open_source,
    own_length,
    pulsed,
    skip_frames,
    whole_own_length,
)
from holdfast.warc.payload import HttpHead, payload_chunks
from holdfast.warc.payload import parse_head as parse_http_head
from holdfast.warc.record import MAX_HEAD_BYTES, MAX_HTTP_HEAD_BYTES, BadHead, RecordHead, parse_head

# Some writers end the lines of a head with CR CR LF, and some with LF alone.
_EMPTY_LINE = re.compile(rb"\n\r{0,2}\n")
_BREAKS = re.compile(rb"[\r\n]*")


class RecordStream:
    """A forward-only stream: a head up to its empty line, then a number of bytes, then the next head."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._held = b""
        # Do not cut off consumed bytes: a piece with thousands of records would be copied for each.
        self._start = 0
        self.position = 0
        """How many bytes have been taken."""

    def head(self, limit: int) -> bytes:
        """Return everything up to and including the next empty line, or the rest without one.

        Empty at the end. Raise BadBytes if `limit` bytes contain no empty line.
        """
        searched = 0
        while True:
            # Stop at the limit: a piece may be much larger, and its caller may return for each byte.
            match = _EMPTY_LINE.search(self._held, self._start + max(searched - 3, 0), self._start + limit)
            if match:
                return self._cut(match.end() - self._start)
            searched = self._left
            if searched > limit:
                raise BadBytes("record_header", f"no empty line within {limit} bytes")
            if not self._more():
                return self._cut(searched)

    def take(self, count: int) -> Iterator[bytes]:
        """Yield the next `count` bytes, fewer if the stream ends."""
        while count > 0:
            if not self._left and not self._more():
                return
            piece = self._cut(min(count, self._left))
            count -= len(piece)
            yield piece

    def peek(self, count: int) -> bytes:
        """Return the next `count` bytes without consuming them, fewer if the stream ends."""
        while self._left < count and self._more():
            pass
        return self._held[self._start : self._start + count]

    def drop(self, count: int) -> None:
        """Consume this many of the bytes just peeked at."""
        count = min(count, self._left)
        self._start += count
        self.position += count

    def skip_breaks(self) -> None:
        """Consume any number of line breaks; a piece without other content is scanned only once."""
        while self._left or self._more():
            breaks = _BREAKS.match(self._held, self._start)
            self.drop(breaks.end() - self._start if breaks else 0)
            if self._left:
                return

    def rest(self) -> Iterator[bytes]:
        while self._left or self._more():
            yield self._cut(self._left)

    def drain(self) -> int:
        count = self._left
        self._held, self._start = b"", 0
        for piece in self._pieces:
            count += len(piece)
        self.position += count
        return count

    @property
    def _left(self) -> int:
        return len(self._held) - self._start

    def _more(self) -> bool:
        for piece in self._pieces:
            if piece:
                self._held = self._held[self._start :] + piece if self._left else piece
                self._start = 0
                return True
        return False

    def _cut(self, count: int) -> bytes:
        cut = self._held if count == len(self._held) else self._held[self._start : self._start + count]
        self.drop(count)
        if not self._left:
            self._held, self._start = b"", 0
        return cut


_HELD_BYTES = 1 << 20
_PIECE_BYTES = 64 * 1024
_MAX_WHOLE_BYTES = 128 << 20


class DamagedWarc(Invalid):
    """The file is damaged here; `holdfast verify` lists all damage, and a repair preserves the complete records."""

    code = "damaged_warc"

    def __init__(self, offset: int, kind: str, detail: str) -> None:
        super().__init__(f"damaged at {offset} ({kind}): {detail}")
        self.offset, self.kind, self.detail = offset, kind, detail


OnDamage = Callable[[DamagedWarc], None]
"""Called for every damage; the reader then continues after it."""


class Record:
    """One record: its head, its position, and its block, which can be read once and before the next record."""

    __slots__ = ("_feed", "_left", "head", "is_alone", "is_cut", "length", "offset", "ordinal")

    def __init__(
        self, head: RecordHead, feed: RecordStream, *, offset: int, length: int, ordinal: int, is_alone: bool = False
    ) -> None:
        self.head = head
        self.is_cut = False
        """Whether the file ends inside its block, which then ends where the file does."""
        self.offset = offset
        self.length = length
        """Bytes that it takes up in the file."""
        self.ordinal = ordinal
        """Its number in the file, counted from 0; -1 if it was read by its offset."""
        self.is_alone = is_alone
        """Whether it is all that its member holds, and the member's checksums were not looked at yet."""
        self._feed = feed
        self._left = head.content_length

    def block(self) -> Iterator[bytes]:
        """Yield the rest of the block; raise DamagedWarc if it is damaged or shorter than its head states."""
        try:
            for piece in self._feed.take(self._left):
                self._left -= len(piece)
                yield piece
        except BadBytes as bad:
            if not self.is_cut:
                raise DamagedWarc(self.offset, bad.kind, bad.detail) from bad
        # A complete gzip member can contain less than its record's head states.
        if self._left > 0 and not self.is_cut:
            raise DamagedWarc(self.offset, "content_length", f"the block ends {self._left} bytes too early")

    def read(self, limit: int = _MAX_WHOLE_BYTES) -> bytes:
        """Return the rest of the block; raise Invalid if it is longer than `limit` bytes."""
        # Reject by the head's stated length, before holding any byte.
        if self._left > limit:
            raise Invalid(f"the record at {self.offset} has {self._left} bytes, more than the {limit} that fit here")
        return b"".join(self.block())

    def http(self, on_framed: Callable[[bytes], None] | None = None) -> tuple[HttpHead, Iterator[bytes]]:
        """Return the HTTP head of a request, response or revisit, and its body with the transfer encoding removed.

        `on_framed` gets a chunked body's bytes as stored, framing included, while the body is read.
        """
        inner = RecordStream(self.block())
        try:
            head = parse_http_head(inner.head(MAX_HTTP_HEAD_BYTES))
        except BadBytes as bad:
            raise DamagedWarc(self.offset, "http_head", bad.detail) from bad
        rest = inner.rest()
        if on_framed is not None and head.is_chunked:
            rest = _overheard(rest, on_framed)
        return head, payload_chunks(head, rest)

    def drain(self) -> None:
        for _ in self.block():
            pass

    def check(self) -> None:
        """Skip to the end of the member and verify its checksums; raise DamagedWarc if they are wrong."""
        # Only the member's checksum detects a flipped bit in a head: digests cover the block.
        self.drain()
        if self.is_alone:
            try:
                self._feed.drain()
            except BadBytes as bad:
                raise DamagedWarc(self.offset, bad.kind, bad.detail) from bad


def read_records(
    file: AnyFile, on_damage: OnDamage | None = None, pulse: Pulse | None = None, *, with_cut: bool = False
) -> Iterator[Record]:
    """Yield every complete record of a file, in order; `with_cut` also the last one if the file ends inside its block.

    Damage is passed to `on_damage` and consumes one ordinal, as in a repaired file; without `on_damage` DamagedWarc
    is raised. `pulse` is called once per piece, even without a record. Raise NotFound or Unavailable if the file
    cannot be read.
    """
    with open_source(file) as source:
        walk = _Walk(source, on_damage, pulse, with_cut=with_cut)
        if source.size == 0:
            walk.damaged(0, BadBytes("empty_file", "there is nothing in it"))
        elif is_gzip(source, file.name):
            yield from walk.members()
        elif is_zstd(source):
            yield from walk.frames()
        else:
            yield from walk.plain()


@contextmanager
def open_record_at(file: AnyFile, offset: int, *, is_cut: bool = False) -> Iterator[Record]:
    """Open the record at this offset, with one seek.

    Raise DamagedWarc without a complete head there; reading a damaged block raises it too, unless `is_cut` is set.
    """
    with open_source(file) as source:
        try:
            feed = RecordStream(compressed_pieces(source, offset) or source.pieces(offset))
            length = own_length(source.at(offset, OWN_HEADER_BYTES)) or 0
            record = Record(parse_head(feed.head(MAX_HEAD_BYTES)), feed, offset=offset, length=length, ordinal=-1)
            record.is_cut = is_cut
            yield record
        except BadHead as exc:
            raise DamagedWarc(offset, "record_header", str(exc)) from exc
        except BadBytes as bad:
            raise DamagedWarc(offset, bad.kind, bad.detail) from bad


def read_record_at(file: AnyFile, offset: int, *, limit: int = _MAX_WHOLE_BYTES) -> tuple[RecordHead, bytes]:
    """Return the head and the whole block of a record; raise Invalid if it is longer than `limit` bytes."""
    with open_record_at(file, offset) as record:
        return record.head, record.read(limit)


_INFO_BYTES = 16_384


def read_warcinfo(file: AnyFile) -> dict[str, str]:
    """Return the first fields of a file's warcinfo, names in lower case; empty if the file does not start with one.

    Raise DamagedWarc, NotFound or Unavailable if the file cannot be read.
    """
    with open_record_at(file, 0) as record:
        text = b""
        # Many seeds make it long; the fields that identify the writer come first.
        for piece in record.block() if record.head.type == "warcinfo" else ():
            text += piece
            if len(text) >= _INFO_BYTES:
                break
    lines = (line.partition(":") for line in text.decode("utf-8", "replace").splitlines())
    return {name.strip().lower(): value.strip()[:1000] for name, colon, value in lines if colon}


def read_response_at(file: AnyFile, offset: int, *, limit: int = _MAX_WHOLE_BYTES) -> tuple[HttpHead, bytes]:
    """Return the HTTP head and the transfer-decoded body of a response; raise Invalid for other records."""
    with open_record_at(file, offset) as record:
        if record.head.type not in ("response", "revisit"):
            raise Invalid(f"the record at {offset} of {file.name} is no response but a {record.head.type}")
        if record.head.content_length > limit:
            raise Invalid(f"the response at {offset} of {file.name} has more than {limit} bytes")
        head, payload = record.http()
        return head, b"".join(payload)


class _Walk:
    def __init__(
        self, source: ByteSource, on_damage: OnDamage | None, pulse: Pulse | None, *, with_cut: bool = False
    ) -> None:
        self._source = source
        self._on_damage = on_damage
        self._pulse = pulse
        self._ordinal = 0
        self._with_cut = with_cut

    def damaged(self, offset: int, bad: BadBytes) -> None:
        """Report damage, and count the record that was there."""
        damage = DamagedWarc(offset, bad.kind, bad.detail)
        if self._on_damage is None:
            raise damage from bad
        self._on_damage(damage)
        self._ordinal += 1

    def _cut(self, pieces: Callable[[], Iterator[bytes]], at: int, bad: BadBytes) -> Iterator[Record]:
        """Yield the record in the frame that the file's end cuts off, if requested; report the damage."""
        if self._with_cut and bad.kind == "truncated":
            # Read it twice: whether a record is truncated must be known before its block is read.
            left = 0
            with suppress(BadBytes):
                for piece in pulsed(pieces(), self._pulse):
                    left += len(piece)
            with suppress(BadBytes, BadHead):
                feed = RecordStream(pulsed(pieces(), self._pulse))
                while (raw := feed.head(MAX_HEAD_BYTES)) and feed.position < left:
                    length = self._source.size - at
                    record = Record(parse_head(raw), feed, offset=at, length=length, ordinal=self._ordinal)
                    record.is_cut = feed.position + record.head.content_length > left
                    yield record
                    if record.is_cut:
                        break
                    self._ordinal += 1
                    record.drain()
                    feed.skip_breaks()
        self.damaged(at, bad)

    def members(self) -> Iterator[Record]:
        resync = Resync(self._source)
        at = 0
        while at < self._source.size:
            if self._pulse is not None:
                self._pulse()
            # Other writers' members do not state their length: a large one is decompressed once to find its end, and
            # again for its reader, instead of being held.
            member, twin = GzipMember(self._source, at), GzipMember(self._source, at)
            try:
                length = self._stated_length(at, resync)
                if length is not None and at + length <= self._source.size:
                    feed, end, inflated = RecordStream(pulsed(member.pieces(), self._pulse)), at + length, None
                else:
                    feed, end, inflated = self._settled(member, twin)
            except BadBytes as bad:
                resync.spend(member.inflated + twin.inflated)
                behind = resync.after(at)
                if behind is None:
                    yield from self._cut(GzipMember(self._source, at).pieces, at, bad)
                else:
                    self.damaged(at, bad)
                at = behind or self._source.size
                continue
            yield from self._inside(feed, at, end, inflated)
            at = end

    def _stated_length(self, at: int, resync: Resync) -> int | None:
        """Return the length in one of our members, None for others'; raise BadBytes if the stated length is
        damaged.
        """
        # A wrong one would point into a member: one record would count as two, and all later ids would shift.
        length = own_length(self._source.at(at, OWN_HEADER_BYTES))
        if length is None or at + length >= self._source.size or self._source.at(at + length, len(MAGIC)) == MAGIC:
            return length
        if whole_own_length(self._source, at) is None:
            # Headers can be close together, each with a length that reaches far: every one costs a checksum.
            resync.spend(0, summed_bytes=length)
            raise BadBytes("member_checksum", f"its header says {length} bytes, and no member begins behind them")
        return length

    def frames(self) -> Iterator[Record]:
        """Walk zstd frames; damage ends the walk, because the start of the next frame is unknown."""
        dictionary = load_dictionary(self._source)
        at = skip_frames(self._source, 0)
        while at < self._source.size:
            try:
                feed, end, inflated = self._settled(
                    ZstdFrame(self._source, at, dictionary), ZstdFrame(self._source, at, dictionary)
                )
            except BadBytes as bad:
                yield from self._cut(ZstdFrame(self._source, at, dictionary).pieces, at, bad)
                return
            yield from self._inside(feed, at, end, inflated)
            at = skip_frames(self._source, end)

    def plain(self) -> Iterator[Record]:
        at = 0
        while at < self._source.size:
            feed = RecordStream(pulsed(self._source.pieces(at), self._pulse))
            try:
                head = parse_head(feed.head(MAX_HEAD_BYTES))
                end = at + feed.position + head.content_length
                if end > self._source.size:
                    raise BadBytes("truncated", "the file ends inside a record")
            except (BadHead, BadBytes) as bad:
                # A plain file has no other mark to resume at; a body with this line counts as a record, and is reported
                # as damage.
                found = self._source.find(b"\nWARC/1.", at + 1)
                damage = bad if isinstance(bad, BadBytes) else BadBytes("record_header", str(bad))
                if found is None:
                    yield from self._cut(partial(self._source.pieces, at), at, damage)
                else:
                    self.damaged(at, damage)
                at = self._source.size if found is None else found + 1
                continue
            end = self._after_breaks(end)
            yield Record(head, feed, offset=at, length=end - at, ordinal=self._ordinal)
            self._ordinal += 1
            at = end

    def _after_breaks(self, at: int) -> int:
        """Return the end of the line breaks that start here, usually four bytes."""
        # Read a few bytes, then larger steps: a hostile file may have a gigabyte of them between two records.
        count = 16
        while breaks := self._source.at(at, count):
            rest = breaks.lstrip(b"\r\n")
            at += len(breaks) - len(rest)
            if rest:
                break
            count = _PIECE_BYTES
            if self._pulse is not None:
                self._pulse()
        return at

    def _settled(self, frame: GzipMember | ZstdFrame, twin: GzipMember | ZstdFrame) -> tuple[RecordStream, int, int]:
        """Return the content of a frame, its end and its size; a large one is decompressed twice to find out."""
        held: list[bytes] = []
        pieces = pulsed(frame.pieces(), self._pulse)
        # Hold up to a MiB, which covers nearly every record: nothing is then decompressed twice.
        for piece in pieces:
            held.append(piece)
            if frame.inflated > _HELD_BYTES:
                break
        if frame.end is None:
            for _ in pulsed(twin.pieces(), self._pulse):
                pass
        whole = frame if frame.end is not None else twin
        assert whole.end is not None
        return RecordStream(chain(held, pieces)), whole.end, whole.inflated

    def _inside(self, feed: RecordStream, at: int, end: int, inflated: int | None) -> Iterator[Record]:
        """Yield the record of a member; or its records, if the writer put many into one. Ours hold one each."""
        while True:
            try:
                raw = feed.head(MAX_HEAD_BYTES)
                if not raw:
                    return
                head = parse_head(raw)
                alone = inflated is None
                record = Record(head, feed, offset=at, length=end - at, ordinal=self._ordinal, is_alone=alone)
                # Known only if the whole member was read: a record that extends beyond it has a wrong length.
                if inflated is not None and feed.position + head.content_length > inflated:
                    raise BadBytes("content_length", f"{head.content_length} is more than there is")
            except (BadHead, BadBytes) as bad:
                self.damaged(at, bad if isinstance(bad, BadBytes) else BadBytes("record_header", str(bad)))
                return
            yield record
            self._ordinal += 1
            if inflated is None:
                return
            try:
                record.drain()
                feed.skip_breaks()
            except (DamagedWarc, BadBytes):
                # The member was complete when `_settled` read it: only a file changed since gets here.
                return


def _overheard(pieces: Iterator[bytes], listener: Callable[[bytes], None]) -> Iterator[bytes]:
    for piece in pieces:
        listener(piece)
        yield piece
