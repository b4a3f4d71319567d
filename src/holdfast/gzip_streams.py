"""Deflate and gzip streams, read and written piece by piece; untrusted bodies and files are decompressed here.

No call outputs more than its budget, whatever the input, and no stream is held in memory as a whole. Members of
WARC files have their own loop (`warc.member`), with the same budget.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

GZIP_MAGIC = b"\x1f\x8b"
RAW, ZLIB, GZIP = -15, 15, 31
"""The wrapper of a stream by zlib's numbers: none, a zlib header, a gzip header with checksum."""

# What repeats itself honestly stays below 200 to 1 (deflate itself could reach 1,032 to 1). Up to one MiB of output no
# ratio is asked for: short bodies of one repeated word are innocent.
MAX_RATIO = 200
RATIO_FROM_BYTES = 1024 * 1024

Read = Callable[[int, int], bytes]
"""Takes an offset and a number of bytes; returns at most that many bytes, none at the end."""


def largest_honest(
    compressed_bytes: int, *, max_ratio: int = MAX_RATIO, ratio_from_bytes: int = RATIO_FROM_BYTES
) -> int:
    """Return the plausible output size for compressed input; more is a decompression bomb."""
    return max(ratio_from_bytes, max_ratio * compressed_bytes)


class EndOfInput(Exception):
    """The input ended before the stream did."""


class InflateBudget(NamedTuple):
    """Limits of input and output bytes for one call of the library."""

    feed_bytes: int = 32 * 1024
    output_bytes: int = 256 * 1024
    first_bytes: int = 0
    """Output limit of the first call, if it differs from `output_bytes`."""
    inflater: Any = zlib.decompressobj
    """zlib's, or one with the same interface; the caller handles its exceptions."""


_BUDGET = InflateBudget()


def reader_of(data: bytes) -> Read:
    return lambda at, count: data[at : at + count]


class DeflateStream:
    """Decompresses one stream piece by piece; `end` is the offset after it, known once it is read completely.

    Raises EndOfInput, or the library's error, in the middle of it: earlier output is valid.
    """

    __slots__ = ("_at", "_budget", "_read", "_wbits", "end")

    def __init__(self, read: Read, at: int, wbits: int, budget: InflateBudget = _BUDGET) -> None:
        self._read, self._at, self._wbits, self._budget = read, at, wbits, budget
        self.end: int | None = None

    def __iter__(self) -> Iterator[bytes]:
        budget, at = self._budget, self._at
        stream = budget.inflater(self._wbits)
        output_bytes = budget.first_bytes or budget.output_bytes
        while not stream.eof:
            # Fed in slices: what the library hands back as not yet used is a copy, and copying the rest of a body for
            # each piece would make the time grow with the square of its size.
            feed = self._read(at, budget.feed_bytes)
            if not feed:
                raise EndOfInput
            at += len(feed)
            while True:
                piece = stream.decompress(feed, output_bytes)
                # A call that was filled may have more to give without any input: the last bytes of a stream come so.
                is_filled = len(piece) == output_bytes
                if piece:
                    yield piece
                    output_bytes = budget.output_bytes
                feed = stream.unconsumed_tail
                if stream.eof or not (feed or is_filled):
                    break
        self.end = at - len(stream.unused_data)


def gzipped(pieces: Iterable[bytes], *, level: int = 6) -> Iterator[bytes]:
    """Yield one gzip stream without time and name in its header: the same input gives the same bytes."""
    packer = zlib.compressobj(level, zlib.DEFLATED, GZIP)
    for piece in pieces:
        if packed := packer.compress(piece):
            yield packed
    yield packer.flush()
