"""Which bytes of a file are whole records and which are not, down to the last one. It changes nothing."""

from __future__ import annotations

import contextlib
import re
from typing import NamedTuple

from holdfast.values import dataclass
from holdfast.warc.feed import Feed
from holdfast.warc.member import (
    OWN_HEADER_BYTES,
    OWN_PREFIX,
    BadBytes,
    Member,
    own_length,
    true_header,
    whole_own_length,
)
from holdfast.warc.record import MAX_HEAD_BYTES, BadHead, parse_head
from holdfast.warc.source import ByteSource
from holdfast.warc.walk import Resync, explain_rest, glimpse

_TYPE = re.compile(rb"\nWARC-Type: *([a-z]+)", re.IGNORECASE)
_OWN_WITHIN_BYTES = 256 * 1024
_ENDS = (b"\r\n\r\n", b"\n\n", b"\r\n", b"\n", b"")


class Kept(NamedTuple):
    """A whole record, and where it stands."""

    offset: int
    length: int


class Region(NamedTuple):
    """Bytes that are no whole record; at most one record began there."""

    offset: int
    length: int
    kind: str
    detail: str


class Mend(NamedTuple):
    """A member of ours whose content is whole and whose header is not, or no longer fits: it gets the right one."""

    offset: int
    header: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """Every byte of a file, as one or the other."""

    kept: tuple[Kept, ...]
    damaged: tuple[Region, ...]
    mended: tuple[Mend, ...]
    size: int

    @property
    def is_whole(self) -> bool:
        """Whether nothing is wrong."""
        return not self.damaged and not self.mended

    @property
    def tail(self) -> int:
        """Where the end that holds no whole record begins; the file's size if there is none."""
        return self.kept[-1].offset + self.kept[-1].length if self.kept else 0

    @property
    def holes(self) -> tuple[Region, ...]:
        """The damaged regions that whole records follow."""
        return tuple(region for region in self.damaged if region.offset < self.tail)


def scan(source: ByteSource) -> Scan:
    """Return what is whole in a file of gzip members. Members of ours are not inflated: their own checksum says it."""
    kept: list[Kept] = []
    damaged: list[Region] = []
    mended: list[Mend] = []
    resync = Resync(source)
    is_own = OWN_PREFIX in source.at(0, _OWN_WITHIN_BYTES)
    at = 0
    while at < source.size:
        length, is_mended = whole_own_length(source, at), False
        if length is None:
            try:
                length, is_mended = _recovered(source, at, resync, is_own)
            except BadBytes as bad:
                resync.spend(0, summed_bytes=own_length(source.at(at, OWN_HEADER_BYTES)) or 0)
                found = resync.after(at)
                if found is None:
                    bad = explain_rest(source, at, bad)
                end = source.size if found is None else found
                damaged.append(Region(at, end - at, bad.kind, bad.detail))
                at = end
                continue
            if is_mended:
                mended.append(Mend(at, true_header(source, at, length)))
        kept.append(Kept(at, length))
        at += length
    return Scan(kept=tuple(kept), damaged=tuple(damaged), mended=tuple(mended), size=source.size)


def _recovered(source: ByteSource, offset: int, resync: Resync, is_own: bool) -> tuple[int, bool]:
    """Return the length of the member here, and whether it is one of ours that needs another header.

    BadBytes if no whole record comes out of it, either way.
    """
    if is_own:
        with contextlib.suppress(BadBytes):
            return _inflated(source, offset, resync, own_form=True), True
    return _inflated(source, offset, resync, own_form=False), False


def _inflated(source: ByteSource, offset: int, resync: Resync, *, own_form: bool) -> int:
    member = Member(source, offset, own_form=own_form)
    feed = Feed(member.pieces())
    try:
        stated = parse_head(feed.head(MAX_HEAD_BYTES)).content_length
        block = sum(map(len, feed.take(stated)))
        if block < stated:
            raise BadBytes("content_length", f"the block has {block} bytes, Content-Length says {stated}")
        if feed.peek(5) not in _ENDS and b"WARC/" not in feed.peek(9).upper():
            raise BadBytes("record_end", "the block is longer than Content-Length says")
        feed.drain()
    except (BadBytes, BadHead) as bad:
        # Only what came to nothing: whole members follow each other, and cost no byte of the file twice.
        resync.spend(member.inflated)
        raise bad if isinstance(bad, BadBytes) else BadBytes("record_header", str(bad)) from bad
    assert member.end is not None
    return member.end - offset


def record_type(source: ByteSource, offset: int) -> str:
    """Return the type of the record that begins here, as far as a glimpse tells; empty if it does not."""
    match = _TYPE.search(glimpse(source, offset))
    return match[1].decode().lower() if match else ""
