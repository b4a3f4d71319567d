"""ARC, the format before WARC: read only, each record as the WARC 1.1 record that says the same.

Every field of an ARC header is carried over; what WARC has no field for keeps its name with `ARC-` in front.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from holdfast.warc.feed import Feed
from holdfast.warc.member import MAGIC, BadBytes, Member
from holdfast.warc.reader import DamagedWarc
from holdfast.warc.record import format_head
from holdfast.warc.source import ByteSource, open_source
from holdfast.warc.walk import Resync

_LINE_BYTES = 64 * 1024
_FIRST = re.compile(rb"filedesc://")
_DEFAULT = ("url", "ip-address", "archive-date", "content-type", "archive-length")
_V2 = (
    "url", "ip-address", "archive-date", "content-type", "result-code", "checksum", "location", "offset", "filename",
    "archive-length",
)  # fmt: skip
_DATE = re.compile(r"\d{12,17}")
_CARRIED = {"url": "WARC-Target-URI", "ip-address": "WARC-IP-Address"}


class Converted(NamedTuple):
    """One record, ready to be written as WARC."""

    offset: int
    """Of its gzip member, or of itself in a plain file."""
    head: bytes
    """With its closing empty line."""
    size: int
    block: Iterator[bytes]
    """Can be read once, and before the next record."""


def is_arc(path: Path) -> bool:
    """Return whether a file begins as an ARC file does."""
    with open_source(path) as source:
        try:
            first = Member(source, 0).pieces() if source.at(0, 3) == MAGIC else _pieces(source, 0)
            return _FIRST.match(next(first, b"")) is not None
        except BadBytes:
            return False


def read_arc(path: Path, seed: str, on_damage: Callable[[DamagedWarc], None]) -> Iterator[Converted]:
    """Yield every whole record of an ARC file as WARC; what is damaged is reported and passed over.

    `seed` makes the records' ids: the same file gives the same ones again.
    """
    with open_source(path) as source:
        reader = _ArcReader(seed, on_damage)
        if source.at(0, 3) != MAGIC:
            yield from reader.records(Feed(_pieces(source, 0)), 0)
            return
        resync, at = Resync(source), 0
        while at < source.size:
            member = Member(source, at)
            yield from reader.records(Feed(member.pieces()), at)
            if member.end is None:
                at = _next_member(source, at) or source.size
                resync.spend(member.inflated)
            else:
                at = member.end


def _next_member(source: ByteSource, at: int) -> int | None:
    """Return where the next member begins after one that was not read to its end: damaged, or left by its reader."""
    member = Member(source, at)
    try:
        for _ in member.pieces():
            pass
    except BadBytes:
        return source.find(MAGIC, at + 1)
    return member.end


class _ArcReader:
    def __init__(self, seed: str, on_damage: Callable[[DamagedWarc], None]) -> None:
        self._seed, self._on_damage = seed, on_damage
        self._names: tuple[str, ...] = _DEFAULT
        self._count = 0

    def records(self, feed: Feed, at: int) -> Iterator[Converted]:
        """Yield what stands in one stream: one record in a gzip member, all of them in a plain file."""
        start = at
        try:
            while True:
                while feed.peek(1) in (b"\n", b"\r"):
                    feed.drop(1)
                offset = start + feed.position if start == 0 else start
                line = self._line(feed)
                if not line:
                    return
                fields = self._fields(line)
                size = int(fields["archive-length"])
                is_first = fields["url"].startswith("filedesc://")
                if is_first:
                    feed = self._described(feed, size)
                taken = Feed(self._block(feed, size))
                yield Converted(offset, self._head(fields, size, offset), size, taken.take(size))
                taken.drain()
        except (BadBytes, ValueError, KeyError) as bad:
            kind = bad.kind if isinstance(bad, BadBytes) else "arc_header"
            self._on_damage(DamagedWarc(at, kind, str(bad)))

    def _line(self, feed: Feed) -> str:
        ahead = feed.peek(_LINE_BYTES if self._count else 4096)
        end = ahead.find(b"\n")
        if end < 0:
            if ahead:
                raise BadBytes("arc_header", f"no header line but {ahead[:40]!r}")
            return ""
        feed.drop(end + 1)
        self._count += 1
        return ahead[:end].decode("utf-8", "replace").rstrip("\r")

    def _fields(self, line: str) -> dict[str, str]:
        parts = line.split(" ")
        names = self._names
        if len(parts) < len(names):
            names = _DEFAULT
        # Addresses with blanks in them were written as they were: what is too much belongs to the first field.
        extra = len(parts) - len(names)
        if extra < 0:
            raise BadBytes("arc_header", f"a header of {len(parts)} fields: {line[:60]!r}")
        values = [" ".join(parts[: extra + 1]), *parts[extra + 1 :]]
        return dict(zip(names, values, strict=True))

    def _described(self, feed: Feed, size: int) -> Feed:
        """Learn from the first record how the fields of all others are called; give its block back unread."""
        text = feed.peek(min(size, 4096))
        lines = text.decode("utf-8", "replace").splitlines()
        named = tuple(lines[1].lower().split()) if len(lines) > 1 else ()
        if named and named[0] == "url" and named[-1] in ("archive-length", "length"):
            self._names = (*named[:-1], "archive-length")
        elif lines and lines[0].startswith("2"):
            self._names = _V2
        return feed

    def _block(self, feed: Feed, size: int) -> Iterator[bytes]:
        left = size
        for piece in feed.take(size):
            left -= len(piece)
            yield piece
        if left:
            raise BadBytes("truncated", f"the block ends {left} bytes too early")

    def _head(self, fields: dict[str, str], size: int, offset: int) -> bytes:
        url, kind = fields["url"], fields.get("content-type", "")
        record_id = uuid.uuid5(uuid.NAMESPACE_URL, f"{self._seed}:{offset}:{self._count}")
        is_first, is_http = url.startswith("filedesc://"), url.lower().startswith(("http://", "https://"))
        warc = [("WARC-Type", "warcinfo" if is_first else "response"), ("WARC-Record-ID", f"<urn:uuid:{record_id}>"),
                ("WARC-Date", _date(fields.get("archive-date", "")))]  # fmt: skip
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


def _date(text: str) -> str:
    """Return an ARC date (14 digits; 12 and 17 were written too) as WARC-Date; what is none stays as it is."""
    if not _DATE.fullmatch(text):
        return text
    digits = text[:14].ljust(14, "0")
    return f"{digits[:4]}-{digits[4:6]}-{digits[6:8]}T{digits[8:10]}:{digits[10:12]}:{digits[12:14]}Z"


def _pieces(source: ByteSource, offset: int) -> Iterator[bytes]:
    while piece := source.at(offset, 65536):
        offset += len(piece)
        yield piece
