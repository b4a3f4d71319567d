"""The record that stands where a damaged one stood: a member of exactly the same length that says what was lost."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterator
from datetime import datetime

from holdfast.values import dataclass
from holdfast.warc.member import OWN_HEADER_BYTES, crc32, own_header
from holdfast.warc.record import LOST_TYPE, RecordType, format_date, format_head, urn

_TRAILER_BYTES = 8
_STORED_HEADER_BYTES = 5
_STORED_BYTES = 65_535
_LENGTH_DIGITS = 10
_END = b"\r\n\r\n"


def lost_record(length: int, note: str, at: datetime) -> bytes | None:
    """Return a whole metadata record that takes up exactly `length` bytes, or None if that is too short for one.

    For records that are held anyway; `lost_pieces` holds a piece of it at a time.
    """
    pieces = lost_pieces(length, note, at)
    return None if pieces is None else b"".join(pieces)


def lost_pieces(length: int, note: str, at: datetime) -> Iterator[bytes] | None:
    """Return the same record in pieces of at most 64 KiB: a damaged region may be as large as its file.

    The bytes are stored, not compressed, for only so can their length be chosen.
    """
    blocks = -(-(length - OWN_HEADER_BYTES - _TRAILER_BYTES) // (_STORED_BYTES + _STORED_HEADER_BYTES))
    data_bytes = length - OWN_HEADER_BYTES - _TRAILER_BYTES - blocks * _STORED_HEADER_BYTES
    # Leading zeros keep the head's length apart from the number in it (Content-Length is 1*DIGIT).
    digits = max(_LENGTH_DIGITS, len(str(length)))
    room = data_bytes - len(_head(note, at, "0" * digits)) - len(_END)
    if room < 0:
        return None
    head = _head(note, at, f"{room:0{digits}d}")
    return _member(length, _Content(head + note.encode()[:room], data_bytes, blocks))


def _head(note: str, at: datetime, content_length: str) -> bytes:
    return format_head(
        (
            ("WARC-Type", RecordType.METADATA.value),
            ("WARC-Record-ID", urn(str(uuid.uuid5(uuid.NAMESPACE_OID, note)))),
            ("WARC-Date", format_date(at)),
            ("Content-Type", LOST_TYPE),
            ("Content-Length", content_length),
        )
    )


@dataclass(frozen=True, slots=True)
class _Content:
    """A record whose block is a text and blanks behind it; made anew each time, so that it need not be held."""

    text: bytes
    """Its head, and what its block says."""
    size: int
    blocks: int

    def pieces(self) -> Iterator[bytes]:
        """Yield as much as goes into each stored block."""
        end_of_block = self.size - len(_END)
        for number in range(self.blocks):
            start, end = number * _STORED_BYTES, min((number + 1) * _STORED_BYTES, self.size)
            blanks = max(0, min(end, end_of_block) - max(start, len(self.text)))
            closing = _END[max(0, start - end_of_block) : max(0, end - end_of_block)]
            yield b"".join((self.text[start:end], b" " * blanks, closing))

    def stored(self) -> Iterator[bytes]:
        """Yield a deflate stream of stored blocks (RFC 1951, section 3.2.4)."""
        for number, piece in enumerate(self.pieces(), 1):
            yield struct.pack("<BHH", number == self.blocks, len(piece), len(piece) ^ 0xFFFF) + piece


def _member(length: int, content: _Content) -> Iterator[bytes]:
    # The header, which comes first, states a checksum of all that follows, and the trailer another: the content is made
    # three times rather than held once.
    checksum = 0
    for piece in content.pieces():
        checksum = crc32(piece, checksum)
    trailer = struct.pack("<II", checksum, content.size & 0xFFFFFFFF)
    own = 0
    for piece in content.stored():
        own = crc32(piece, own)
    yield own_header(length, crc32(trailer, own))
    yield from content.stored()
    yield trailer
