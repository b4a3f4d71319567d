"""Finding one's way in a file of gzip members: what stands where, and where to go on after damage."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator

from holdfast.warc.member import MAGIC, OWN_HEADER_BYTES, BadBytes, own_length
from holdfast.warc.source import ByteSource

_GLIMPSE_BYTES = 256
_GLIMPSE_SOURCE_BYTES = 1024
_SUMMED_FOR_ONE = 8

Pulse = Callable[[], None]
"""Called while a file is read, once a piece of it; may raise to end the reading."""


def pulsed(pieces: Iterator[bytes], pulse: Pulse | None) -> Iterator[bytes]:
    """Return the pieces as they are, with a pulse before each: a member can go on for hours and yield no record."""
    return pieces if pulse is None else _pulsed(pieces, pulse)


def _pulsed(pieces: Iterator[bytes], pulse: Pulse) -> Iterator[bytes]:
    for piece in pieces:
        pulse()
        yield piece


def glimpse(source: ByteSource, offset: int) -> bytes:
    """Return the first bytes inside the member that begins here, or none if nothing can be inflated."""
    raw = source.at(offset, _GLIMPSE_SOURCE_BYTES)
    if not raw.startswith(MAGIC):
        return b""
    try:
        if own_length(raw) is not None:
            return zlib.decompressobj(-15).decompress(raw[OWN_HEADER_BYTES:], _GLIMPSE_BYTES)
        return zlib.decompressobj(31).decompress(raw, _GLIMPSE_BYTES)
    except zlib.error:
        return b""


class Resync:
    """Finds the next member after damage, until a file has cost more than an honest one can."""

    def __init__(self, source: ByteSource) -> None:
        self._source = source
        self._tries = 100_000
        self._spare_bytes = 16 * source.size + (64 << 20)

    def spend(self, inflated_bytes: int, *, summed_bytes: int = 0) -> None:
        """Count what looking at a member cost: they can be nested so that each costs the whole file.

        A checksum costs a small part of what inflating as many bytes does.
        """
        self._spare_bytes -= inflated_bytes + summed_bytes // _SUMMED_FOR_ONE

    @property
    def is_spent(self) -> bool:
        """Whether this file has cost more than an honest one can."""
        return self._spare_bytes <= 0

    def after(self, offset: int) -> int | None:
        """Return where the first member after this offset begins that looks like a record; None if there is none.

        A member of ours is known by its header alone, so that damage after damage is still counted record by record.
        """
        at = self._source.find(MAGIC, offset + 1)
        while at is not None and self._tries > 0 and self._spare_bytes > 0:
            is_own = own_length(self._source.at(at, OWN_HEADER_BYTES)) is not None
            if is_own or glimpse(self._source, at)[:5].upper() == b"WARC/":
                return at
            self._tries -= 1
            at = self._source.find(MAGIC, at + 1)
        return None


def explain_rest(source: ByteSource, offset: int, bad: BadBytes) -> BadBytes:
    """Return what to call damage that reaches to the end of the file: a cut, a tail of zeros, or what it was."""
    if bad.kind == "truncated":
        return bad
    at = offset
    while at < source.size:
        piece = source.at(at, 1 << 16)
        if piece.strip(b"\0"):
            return bad
        at += len(piece) or source.size
    return BadBytes("zero_tail", f"{source.size - offset} zero bytes at the end")
