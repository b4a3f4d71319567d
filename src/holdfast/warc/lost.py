"""The record that stands where a damaged one stood: a member of exactly the same length that says what was lost."""

from __future__ import annotations

import struct
import uuid
from datetime import datetime

from holdfast.warc.member import OWN_HEADER_BYTES, crc32, own_header
from holdfast.warc.record import LOST_TYPE, RecordType, format_date, format_head, urn

_TRAILER_BYTES = 8
_STORED_HEADER_BYTES = 5
_STORED_BYTES = 65_535
_LENGTH_DIGITS = 10


def lost_record(length: int, note: str, at: datetime) -> bytes | None:
    """Return a whole metadata record that takes up exactly `length` bytes, or None if that is too short for one.

    The bytes are stored, not compressed, for only so can their length be chosen.
    """
    blocks = -(-(length - OWN_HEADER_BYTES - _TRAILER_BYTES) // (_STORED_BYTES + _STORED_HEADER_BYTES))
    data_bytes = length - OWN_HEADER_BYTES - _TRAILER_BYTES - blocks * _STORED_HEADER_BYTES
    text = note.encode()
    head = format_head((
        ("WARC-Type", RecordType.METADATA.value),
        ("WARC-Record-ID", urn(str(uuid.uuid5(uuid.NAMESPACE_OID, note)))),
        ("WARC-Date", format_date(at)),
        ("Content-Type", LOST_TYPE),
        # Leading zeros keep the head's length apart from the number in it (Content-Length is 1*DIGIT).
        ("Content-Length", "0" * _LENGTH_DIGITS),
    ))  # fmt: skip
    room = data_bytes - len(head) - 4
    if room < 0:
        return None
    head = head.replace(b"0" * _LENGTH_DIGITS + b"\r\n\r\n", b"%010d\r\n\r\n" % room)
    data = b"".join((head, text[:room].ljust(room), b"\r\n\r\n"))
    stored = _stored(data, blocks) + struct.pack("<II", crc32(data), len(data) & 0xFFFFFFFF)
    return own_header(length, crc32(stored)) + stored


def _stored(data: bytes, blocks: int) -> bytes:
    """Return a deflate stream of stored blocks (RFC 1951, section 3.2.4)."""
    out = []
    for number in range(blocks):
        piece = data[number * _STORED_BYTES : (number + 1) * _STORED_BYTES]
        out.append(struct.pack("<BHH", number == blocks - 1, len(piece), len(piece) ^ 0xFFFF) + piece)
    return b"".join(out)
