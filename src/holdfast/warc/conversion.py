"""Rewrites records of other writers so that each can be read directly: one gzip member each, WARC 1.1 from ARC.

Fields stay the same. Of ARC, the format before WARC, every field of a header is preserved; those without a WARC
field keep their name with the prefix `ARC-`.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from holdfast.errors import Invalid
from holdfast.gzip_streams import gzipped
from holdfast.storage.folder import AnyFile
from holdfast.warc import outfile
from holdfast.warc.member import (
    MAGIC,
    BadBytes,
    ByteSource,
    GzipMember,
    Packer,
    Pulse,
    Resync,
    compressed_pieces,
    open_source,
    pulsed,
)
from holdfast.warc.outfile import OutFile, SealedFile
from holdfast.warc.reader import DamagedWarc, OnDamage, RecordStream, open_record_at, read_records
from holdfast.warc.record import BadHead, RecordHead, format_head, parse_date, percent_encoded

_LINE_BYTES = 64 * 1024
_FIRST = b"filedesc://"
_DEFAULT = ("url", "ip-address", "archive-date", "content-type", "archive-length")
_V2 = (
    *("url", "ip-address", "archive-date", "content-type", "result-code"),
    *("checksum", "location", "offset", "filename", "archive-length"),
)
_DATE = re.compile(r"[0-9]{12,17}")
_LENGTH = re.compile(r"[0-9]{1,18}")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]{0,31}:", re.IGNORECASE)
# Limit of a kept block that the file's end truncates: it is held in memory, because its length is unknown before.
_CUT_BYTES = 16 << 20
_CUT = ("WARC-Truncated", "unspecified")
# Fields that describe the whole block.
_OF_THE_WHOLE = frozenset({"content-length", "warc-block-digest", "warc-payload-digest", "warc-truncated"})
_CARRIED = {"url": "WARC-Target-URI", "ip-address": "WARC-IP-Address"}


class PlainRecord(NamedTuple):
    """One record, uncompressed, ready to be written as WARC."""

    offset: int
    """Offset of its gzip member, or of the record itself in a plain file."""
    head: bytes
    """With its closing empty line."""
    size: int
    block: Iterator[bytes]
    """Can be read once, and before the next record."""


def is_arc(path: Path) -> bool:
    """Return whether a file starts like an ARC file: with its description, or with the header line of a record."""
    with open_source(path) as source:
        try:
            first = GzipMember(source, 0).pieces() if source.at(0, 3) == MAGIC else source.pieces(0)
            start = next(first, b"").lstrip(b"\r\n")
        except BadBytes:
            return False
        if start.startswith(_FIRST):
            return True
        line, end, _ = start.partition(b"\n")
        return bool(end) and _is_header(line, _DEFAULT)


def _is_header(line: bytes, names: tuple[str, ...]) -> bool:
    parts = line.rstrip(b"\r").decode("latin-1").split(" ")
    if len(parts) < len(names):
        return False
    date = parts[names.index("archive-date") - len(names)] if "archive-date" in names else "000000000000"
    return bool(_LENGTH.fullmatch(parts[-1]) and _DATE.fullmatch(date) and _SCHEME.match(parts[0]))


def read_arc(path: Path, seed: str, on_damage: OnDamage, pulse: Pulse | None = None) -> Iterator[PlainRecord]:
    """Yield every complete record of an ARC file as WARC; report and skip damaged ones.

    `seed` determines the records' ids: the same file gives the same ones again. `pulse` is called once per piece,
    and may raise to stop.
    """
    with open_source(path) as source:
        reader = _ArcReader(seed, on_damage)
        if source.at(0, 3) != MAGIC:
            yield from reader.records(RecordStream(pulsed(source.pieces(0), pulse)), None)
            return
        resync, at = Resync(source), 0
        while at < source.size:
            if pulse is not None:
                pulse()
            member = GzipMember(source, at)
            yield from reader.records(RecordStream(pulsed(member.pieces(), pulse)), at)
            if member.end is None:
                left, at = at, _next_member(source, at, resync, pulse) or source.size
                if resync.is_spent:
                    on_damage(DamagedWarc(left, "garbage", "the rest costs more to read than that of an honest file"))
                    return
            else:
                at = member.end


def _next_member(source: ByteSource, at: int, resync: Resync, pulse: Pulse | None) -> int | None:
    """Return the start of the next member after one that is damaged, or that its reader abandoned."""
    member = GzipMember(source, at)
    try:
        for _ in pulsed(member.pieces(), pulse):
            pass
    except BadBytes:
        # Its reader and this code both decompress it. A complete one may be abandoned by its reader at any time.
        resync.spend(2 * member.inflated)
        return source.find(MAGIC, at + 1)
    return member.end


class _ArcReader:
    def __init__(self, seed: str, on_damage: OnDamage) -> None:
        self._seed, self._on_damage = seed, on_damage
        self._names: tuple[str, ...] = _DEFAULT
        self._count = 0
        self._described_at: str | None = None
        """Creation time of the file, from its first record; used for records without a valid date."""

    def records(self, feed: RecordStream, at: int | None) -> Iterator[PlainRecord]:
        """Yield the records of one stream: one record in the gzip member `at`, all of them in a plain file (None)."""
        while True:
            offset = at or 0
            try:
                feed.skip_breaks()
                offset = feed.position if at is None else at
                line = self._line(feed)
                if not line:
                    return
                fields = self._fields(line)
                size = int(fields["archive-length"])
                if fields["url"].startswith("filedesc://"):
                    self._describe(feed, fields, size)
            except BadBytes as bad:
                self._on_damage(DamagedWarc(offset, bad.kind, bad.detail))
                if bad.kind != "arc_header" or not self._resynchronise(feed):
                    return
                continue
            cut = self._cut(feed, size)
            size = len(cut) if cut else size
            taken = RecordStream(self._block(feed, size))
            try:
                head = self._head(fields, size, offset, is_cut=bool(cut))
            except Invalid as bad:
                # A URL that no field can hold loses only its own record: the next one starts after its block.
                self._on_damage(DamagedWarc(offset, "arc_header", str(bad)))
                head = None
            try:
                if head is not None:
                    yield PlainRecord(offset, head, size, taken.take(size))
                taken.drain()
                if cut:
                    raise BadBytes("truncated", "the file ends inside a record")
            except BadBytes as bad:
                self._on_damage(DamagedWarc(offset, bad.kind, bad.detail))
                return

    def _resynchronise(self, feed: RecordStream) -> bool:
        """Skip to the next line that looks like a header; return False at the end. A plain file has no other marks."""
        try:
            while ahead := feed.peek(_LINE_BYTES):
                # Scan all peeked lines, then drop them at once: lines can be as short as one byte.
                start = 0
                while (end := ahead.find(b"\n", start)) >= 0:
                    if _is_header(ahead[start:end], self._names):
                        feed.drop(start)
                        return True
                    start = end + 1
                feed.drop(start or len(ahead))
        except BadBytes as bad:
            self._on_damage(DamagedWarc(feed.position, bad.kind, bad.detail))
        return False

    def _line(self, feed: RecordStream) -> str:
        ahead = _ahead(feed, _LINE_BYTES if self._count else 4096)
        end = ahead.find(b"\n")
        if end < 0:
            if ahead:
                raise BadBytes("arc_header", f"no header line but {ahead[:40]!r}")
            return ""
        feed.drop(end + 1)
        self._count += 1
        # Percent-encode bytes that are not UTF-8, as a browser would: replacing them could merge two addresses.
        return percent_encoded(ahead[:end].decode("utf-8", "surrogateescape").removesuffix("\r"))

    def _fields(self, line: str) -> dict[str, str]:
        parts = line.split(" ")
        names = self._names
        if len(parts) < len(names):
            names = _DEFAULT
        # URLs with spaces were written unescaped: extra parts belong to the first field.
        extra = len(parts) - len(names)
        if extra < 0:
            raise BadBytes("arc_header", f"a header of {len(parts)} fields: {line[:60]!r}")
        values = [" ".join(parts[: extra + 1]), *parts[extra + 1 :]]
        fields = dict(zip(names, values, strict=True))
        # The file itself defines the field names and may lack required ones.
        if not _LENGTH.fullmatch(fields.get("archive-length", "")) or "url" not in fields:
            raise BadBytes("arc_header", f"no length at the end of {line[:60]!r}")
        return fields

    def _describe(self, feed: RecordStream, fields: dict[str, str], size: int) -> None:
        """Read the field names for all records from the first one; its block stays unread."""
        self._described_at = _date(fields.get("archive-date", ""))
        text = feed.peek(min(size, 4096))
        lines = text.decode("utf-8", "replace").splitlines()
        named = tuple(lines[1].lower().split()) if len(lines) > 1 else ()
        if named and named[0] == "url" and named[-1] in ("archive-length", "length") and len(set(named)) == len(named):
            self._names = (*named[:-1], "archive-length")
        elif lines and lines[0].startswith("2"):
            self._names = _V2

    def _cut(self, feed: RecordStream, size: int) -> bytes:
        """Return the available part of a block that the stream cuts off; empty if it is complete, or large."""
        if size > _CUT_BYTES:
            return b""
        block = _ahead(feed, size)
        return block if len(block) < size else b""

    def _block(self, feed: RecordStream, size: int) -> Iterator[bytes]:
        left = size
        for piece in feed.take(size):
            left -= len(piece)
            yield piece
        if left:
            raise BadBytes("truncated", f"the block ends {left} bytes too early")

    def _head(self, fields: dict[str, str], size: int, offset: int, *, is_cut: bool) -> bytes:
        url, kind = fields["url"], fields.get("content-type", "")
        # ARC has no record ids. Derive them from the seed (an import's is the file's digest) and the position: a
        # repeated import gives the same ones.
        record_id = uuid.uuid5(uuid.NAMESPACE_URL, f"{self._seed}:{offset}:{self._count}")
        is_first, is_http = url.startswith("filedesc://"), url.lower().startswith(("http://", "https://"))
        # Some tools wrote zeros; the creation time of the file is closer to the truth than the current time.
        date = _date(fields.get("archive-date", "")) or self._described_at
        if date is None:
            raise Invalid(f"its date is {fields.get('archive-date', '')[:40]!r}, and the file states no other")
        warc = [
            ("WARC-Type", "warcinfo" if is_first else "response"),
            ("WARC-Record-ID", f"<urn:uuid:{record_id}>"),
            ("WARC-Date", date),
            *([_CUT] if is_cut else []),
        ]
        if is_first:
            warc.append(("WARC-Filename", url.removeprefix("filedesc://")))
        for name, value in fields.items():
            if name == "url" and is_first:
                continue
            if name in _CARRIED and value not in ("", "-"):
                warc.append((_CARRIED[name], value))
            elif name not in _CARRIED and name != "archive-length":
                warc.append((f"ARC-{name.title()}", value))
        declared = "application/http; msgtype=response" if is_http else "text/plain" if is_first else kind
        warc += [("Content-Type", declared or "application/octet-stream"), ("Content-Length", str(size))]
        return format_head(warc)


def _ahead(feed: RecordStream, count: int) -> bytes:
    """Return the next bytes; fewer at the end of the file. Raise BadBytes if the stream yields none at all."""
    try:
        return feed.peek(count)
    except BadBytes as bad:
        # A stream that raised has ended: keep the data before.
        held = feed.peek(count)
        if bad.kind != "truncated" or not held:
            raise
        return held


def _date(text: str) -> str | None:
    """Convert an ARC date (14 digits; also 12 and 17) to a WARC-Date; None if it is invalid."""
    if not _DATE.fullmatch(text):
        return None
    digits = text[:14].ljust(14, "0")
    spelt = f"{digits[:4]}-{digits[4:6]}-{digits[6:8]}T{digits[8:10]}:{digits[10:12]}:{digits[12:14]}Z"
    try:
        parse_date(spelt)
    except BadHead:
        return None
    return spelt


_END = b"\r\n\r\n"
_WHOLE_BYTES = 1 << 20
_HEADER_BYTES = 10


def rewrite_warc(path: Path, folder: Path, name: str, on_damage: OnDamage, pulse: Pulse | None = None) -> SealedFile:
    """Write the complete records of a WARC file to `folder/NAME.warc.gz`, synced and sealed."""
    return _write(_raw_records(path, on_damage, pulse), folder, name, on_damage)


def convert_arc(
    path: Path, folder: Path, name: str, *, seed: str, on_damage: OnDamage, pulse: Pulse | None = None
) -> SealedFile:
    """Write the records of an ARC file as WARC 1.1 to `folder/NAME.warc.gz`, synced and sealed."""
    return _write(read_arc(path, seed, on_damage, pulse), folder, name, on_damage)


def _raw_records(path: Path, on_damage: OnDamage, pulse: Pulse | None) -> Iterator[PlainRecord]:
    for record in read_records(path, on_damage, pulse, with_cut=True):
        fields, size, block = record.head.fields, record.head.content_length, record.block()
        if record.is_cut:
            held = RecordStream(block).peek(_CUT_BYTES)
            kept = tuple(field for field in fields if field[0].lower() not in _OF_THE_WHOLE)
            fields, size, block = (*kept, _CUT, ("Content-Length", str(len(held)))), len(held), iter((held,))
        yield PlainRecord(record.offset, _head(record.head, fields), size, block)


def _head(head: RecordHead, fields: Iterable[tuple[str, str]]) -> bytes:
    lines = [head.version, *(f"{name}: {value}" for name, value in fields), "", ""]
    return "\r\n".join(lines).encode("utf-8", "surrogateescape")


def _write(records: Iterable[PlainRecord], folder: Path, name: str, on_damage: OnDamage) -> SealedFile:
    folder.mkdir(parents=True, exist_ok=True)
    # Add no warcinfo: the records stay as their writer wrote them.
    out = outfile.create(folder, name, b"")
    count = 0
    try:
        for raw in records:
            try:
                _append(out, raw)
                count += 1
            except (DamagedWarc, BadBytes) as bad:
                out.rollback()
                kind = bad.kind
                on_damage(bad if isinstance(bad, DamagedWarc) else DamagedWarc(raw.offset, kind, bad.detail))
        return out.seal(count)
    except BaseException:
        out.discard()
        raise


def _append(out: OutFile, raw: PlainRecord) -> None:
    # Do not mark these as ours: `verify` would require fields that only our writer adds.
    packed = gzipped(chain((raw.head,), raw.block, (_END,)))
    if raw.size <= _WHOLE_BYTES:
        out.append(b"".join(packed))
        return
    out.begin()
    start, length = b"", 0
    for ready in packed:
        start = (start + ready)[:_HEADER_BYTES]
        length += len(ready)
        out.piece(ready)
    out.commit(start, length)


_PIECE_BYTES = 1 << 16


def record_pieces(file: AnyFile, offset: int) -> Iterator[bytes]:
    """Yield the record at an offset, uncompressed with its closing line breaks: a valid WARC file.

    Raise DamagedWarc without a complete record there. If a member holds several records, yield all of them.
    """
    with open_record_at(file, offset) as record:
        content_length = record.head.content_length
    with open_source(file) as source:
        try:
            yield from compressed_pieces(source, offset) or _plain(source, offset, content_length)
        except BadBytes as bad:
            raise DamagedWarc(offset, bad.kind, bad.detail) from bad


def packed_record(file: AnyFile, offset: int) -> bytes:
    """Return the record as one gzip member; raise Invalid if it is larger than 256 MB."""
    packer, ready, size = Packer(), list[bytes](), 0
    for piece in record_pieces(file, offset):
        size += len(piece)
        if size > 256 << 20:
            raise Invalid("the record is too large for one piece; write it uncompressed, to a name ending in .warc")
        ready.append(packer.feed(piece))
    ready.append(packer.finish())
    return b"".join((packer.header(), *ready))


def _plain(source: ByteSource, offset: int, content_length: int) -> Iterator[bytes]:
    head = source.at(offset, 1 << 17)
    start = min((at + len(end) for end in (b"\r\n\r\n", b"\n\n") if (at := head.find(end)) >= 0), default=0)
    at, end = offset, offset + start + content_length
    while at < end:
        piece = source.at(at, min(_PIECE_BYTES, end - at))
        if not piece:
            raise BadBytes("truncated", "the file ends inside a record")
        at += len(piece)
        yield piece
    yield _END
