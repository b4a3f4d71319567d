"""What stands where a withdrawn record stood: bytes of exactly its length that say so, and nothing of what it held.

The offsets of all other records stay true, and every reader walks over it.
"""

from __future__ import annotations

import re
import struct
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from holdfast import cancellation
from holdfast.exports.queries import HiddenRecord
from holdfast.exports.zipping import FileRange, Segment
from holdfast.urls import page_key
from holdfast.warc.lost import lost_record
from holdfast.warc.reader import DamagedWarc, read_records
from holdfast.warc.record import bare_id, format_date, format_head, urn

NOTE = "a record stood here that was withdrawn from this archive"
_PIECE_BYTES = 64 * 1024
_LEAST_BYTES = 1024
_EMPTY_MEMBER = b"\x1f\x8b\x08\x10\0\0\0\0\0\xff%b\0\x03\0" + b"\0" * 8
_SKIPPABLE = 0x184D2A50
_CAPTURES = ("response", "revisit", "resource")
# Browser crawlers name the text, the picture and the like of a page so: urn:text:https://…, screenshot:https://…
_PREFIX = re.compile(r"(?:urn:)?[a-z-]{1,32}:(?=https?://)", re.IGNORECASE)
_ZERO_ID = "00000000-0000-0000-0000-000000000000"


class Gap(NamedTuple):
    """A stretch of a file that is not shown."""

    offset: int
    length: int


class _Seen(NamedTuple):
    """What blanking has to know of a record."""

    gap: Gap
    record_id: str
    is_capture: bool
    """Whether it is a capture of its own; all else only accompanies one."""
    key: str
    """Of the page that it is about; empty if it is about none."""
    moment: str
    together: frozenset[str]
    """The records that it was made with."""
    about: str
    """The record that it refers to; empty for a revisit, whose original may be another page's."""


def find_gaps(
    path: Path, hidden: Iterable[HiddenRecord], withdrawn: Callable[[set[str]], Iterable[str]] = lambda _keys: ()
) -> list[Gap]:
    """Return what to blank in a file: withdrawn records, all records about a withdrawn page, and what goes with them.

    `withdrawn` tells which of these keys are of pages that are withdrawn. What other writers left beside a capture
    (requests, notes, texts and pictures of a page) names it in many ways, by ids, by its address, or by both.
    """
    hidden = list(hidden)
    offsets = {record.offset for record in hidden}
    seen = _read(path)
    keys = set(withdrawn({record.key for record in seen if record.key}))
    chosen = [record for record in seen if record.gap.offset in offsets]
    linked = {other for record in chosen for other in record.together}
    moments = {(record.key, record.moment) for record in chosen if record.key}
    wanted = {
        record
        for record in seen
        if record.gap.offset in offsets
        or record.record_id in linked
        or record.key in keys
        or (not record.is_capture and (record.key, record.moment) in moments)
    }
    wanted |= _followers(seen, wanted)
    gaps = {record.gap for record in wanted}
    known = {gap.offset for gap in gaps}
    return sorted(gaps | {Gap(record.offset, record.length) for record in hidden if record.offset not in known})


def _read(path: Path) -> list[_Seen]:
    def damaged(_damage: DamagedWarc) -> None:
        """Damage is skipped: no record of it is shown anyway."""

    found: list[_Seen] = []
    for record in read_records(path, damaged):
        cancellation.check()
        head = record.head
        found.append(
            _Seen(
                gap=Gap(record.offset, record.length),
                record_id=head.record_id,
                is_capture=head.type in _CAPTURES,
                key=page_key(_PREFIX.sub("", head.url)) if head.url else "",
                moment=head.get("WARC-Date") or "",
                together=frozenset(bare_id(value) for value in head.every("WARC-Concurrent-To")),
                about="" if head.type == "revisit" else bare_id(head.get("WARC-Refers-To") or ""),
            )
        )
    return found


def _followers(seen: list[_Seen], wanted: set[_Seen]) -> set[_Seen]:
    """Return the records that were made with one of the wanted, or refer to it, or to one that does."""
    by_target: dict[str, list[_Seen]] = defaultdict(list)
    for record in seen:
        for target in {*record.together, record.about} - {""}:
            by_target[target].append(record)
    found: set[_Seen] = set()
    waiting = list(wanted)
    while waiting:
        for follower in by_target.pop(waiting.pop().record_id, ()):
            if follower not in found and follower not in wanted:
                found.add(follower)
                waiting.append(follower)
    return found


def blanked(path: Path, size: int, gaps: Iterable[Gap], at: datetime) -> list[Segment]:
    """Return a file as segments with its gaps filled."""
    segments: list[Segment] = []
    done = 0
    for gap in gaps:
        if gap.offset > done:
            segments.append(FileRange(path, done, gap.offset - done))
        segments += filling(path.name, gap.length, at)
        done = gap.offset + gap.length
    segments.append(FileRange(path, done, size - done))
    return segments


def filling(name: str, length: int, at: datetime) -> list[bytes]:
    """Return pieces of exactly `length` bytes in all, in the form that a file of this name has."""
    if name.endswith(".zst"):
        return [struct.pack("<II", _SKIPPABLE, length - 8), b"\0" * (length - 8)]
    one = _gzip_piece if name.endswith(".gz") else _plain_piece
    pieces: list[bytes] = []
    whole = one(_PIECE_BYTES, at)
    while length >= _PIECE_BYTES + _LEAST_BYTES:
        pieces.append(whole)
        length -= _PIECE_BYTES
    return [*pieces, one(length, at)]


def _gzip_piece(length: int, at: datetime) -> bytes:
    whole = lost_record(length, NOTE, at)
    return whole if whole is not None else _EMPTY_MEMBER % (b" " * (length - len(_EMPTY_MEMBER) + 2))


def _plain_piece(length: int, at: datetime) -> bytes:
    fields = [("WARC-Type", "metadata"), ("WARC-Record-ID", urn(_ZERO_ID)), ("WARC-Date", format_date(at)),
              ("Content-Type", "text/plain"), ("Content-Length", "0" * 10)]  # fmt: skip
    head = format_head(fields)
    room = length - len(head) - 4
    if room < 0:
        return b"\r\n" * (length // 2) + b"\n" * (length % 2)
    head = format_head([*fields[:-1], ("Content-Length", f"{room:010d}")])
    return head + NOTE.encode()[:room].ljust(room) + b"\r\n\r\n"
