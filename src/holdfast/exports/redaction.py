"""What stands where a withdrawn record stood: bytes of exactly its length that say so, and nothing of what it held.

The offsets of all other records stay true, and every reader walks over it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from holdfast.exports.queries import HiddenRecord
from holdfast.exports.zipping import FileRange, Segment
from holdfast.warc.lost import lost_record
from holdfast.warc.reader import DamagedWarc, read_records
from holdfast.warc.record import bare_id, format_date, format_head, urn

NOTE = "a record stood here that was withdrawn from this archive"
_PIECE_BYTES = 64 * 1024
_LEAST_BYTES = 1024
_EMPTY_MEMBER = b"\x1f\x8b\x08\x10\0\0\0\0\0\xff%b\0\x03\0" + b"\0" * 8
_SKIPPABLE = 0x184D2A50
_ZERO_ID = "00000000-0000-0000-0000-000000000000"


class Gap(NamedTuple):
    """A stretch of a file that is not shown."""

    offset: int
    length: int


def find_gaps(path: Path, hidden: Iterable[HiddenRecord]) -> list[Gap]:
    """Return what to blank in a file: the withdrawn records, and the requests and notes that belong to them."""
    offsets = {record.offset for record in hidden}
    seen: list[tuple[Gap, str, set[str]]] = []

    def damaged(_damage: DamagedWarc) -> None:
        """Damage is skipped: no record of it is shown anyway."""

    for record in read_records(path, damaged):
        related = {bare_id(value) for value in record.head.every("WARC-Concurrent-To")}
        seen.append((Gap(record.offset, record.length), record.head.record_id, related))
    ids = {record_id for gap, record_id, _ in seen if gap.offset in offsets}
    linked = {other for gap, _, related in seen if gap.offset in offsets for other in related}
    wanted = {gap for gap, record_id, related in seen if record_id in ids | linked or related & ids}
    known = {gap.offset for gap in wanted}
    return sorted(wanted | {Gap(record.offset, record.length) for record in hidden if record.offset not in known})


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
