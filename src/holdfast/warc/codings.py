"""Undoes content codings (gzip, deflate, br, zstd) in bounded steps, on input that nobody vouches for: bombs stop at
the limit, and what breaks off is kept as far as it went.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Generator, Iterator
from enum import StrEnum
from io import BytesIO
from typing import Any, NamedTuple

import brotli
import zstandard
from isal import isal_zlib


class PayloadProblem(StrEnum):
    """What was wrong with the framing or the codings of a message."""

    BAD_FRAMING = "bad_framing"
    CUT_SHORT = "cut_short"
    TRAILING_BYTES = "trailing_bytes"
    BAD_ENCODING = "bad_encoding"
    UNKNOWN_ENCODING = "unknown_encoding"
    TOO_MANY_ENCODINGS = "too_many_encodings"
    TOO_LARGE = "too_large"
    RATIO_EXCEEDED = "ratio_exceeded"


_ERRORS: tuple[Any, ...] = (zlib.error, isal_zlib.error, brotli.error, zstandard.ZstdError)
_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
ZSTD_MAX_WINDOW = 8 * 1024 * 1024
"""RFC 9659: what a content coding may ask a client to keep."""
_MAX_MEMBERS = 1000
_CREDIBLE_BYTES = 256
"""Raw deflate and brotli have no magic number: plain text read as one of them often yields a few bytes before it fails.
Shorter beginnings than this are taken for such an accident."""


class _Pace(NamedTuple):
    """How much goes in and how much may come out of one call. A call that fails loses what it had put out already."""

    feed_bytes: int
    output_bytes: int
    zstd_feed_bytes: int
    """zstd has no bound on what a call puts out; 256 bytes in are at most 8 MiB out (blocks of 128 KiB in 4 bytes)."""
    inflate: Any


_FAST = _Pace(feed_bytes=64 * 1024, output_bytes=256 * 1024, zstd_feed_bytes=256, inflate=isal_zlib.decompressobj)


def _careful(size: int) -> _Pace:
    """Return the pace for damaged input: byte by byte for a page, and never more than 65,536 calls."""
    feed = max(1, size >> 16)
    return _Pace(feed_bytes=feed, output_bytes=512, zstd_feed_bytes=min(feed, 256), inflate=zlib.decompressobj)


class _Stopped(Exception):
    """The input ended or went on differently than the coding says; what came before stands."""

    def __init__(self, problem: PayloadProblem) -> None:
        super().__init__(problem)
        self.problem = problem


def undo(coding: str, data: bytes, limit: int, excess: PayloadProblem) -> tuple[bytes, PayloadProblem | None]:
    """Return the data without this coding and what was wrong, if anything.

    More than `limit` bytes are cut there, with `excess` as the problem. What is not of this coding at all, or of one
    that we do not know, comes back as it is.
    """
    readers = _readers(coding, data)
    if not readers:
        return data, PayloadProblem.UNKNOWN_ENCODING
    for reader in readers:
        for pace in (_FAST, _careful(len(data))):
            out = _Output(limit)
            problem = PayloadProblem.BAD_ENCODING
            try:
                for piece in reader(data, pace):
                    if not out.take(piece):
                        return out.data(), excess
                return out.data(), None
            except _Stopped as stopped:
                problem = stopped.problem
                break
            except _ERRORS:
                continue
        if out.size >= _CREDIBLE_BYTES or (problem is not PayloadProblem.BAD_ENCODING and reader in _WITH_MAGIC):
            return out.data(), problem
    return data, PayloadProblem.BAD_ENCODING


class _Output:
    """What came out so far. One growing buffer, because a list and its join would hold everything twice."""

    __slots__ = ("_buffer", "_limit", "size")

    def __init__(self, limit: int) -> None:
        self._buffer = BytesIO()
        self._limit = limit
        self.size = 0

    def take(self, piece: bytes) -> bool:
        """Keep a piece; return False once the limit is passed."""
        self.size += self._buffer.write(piece)
        return self.size <= self._limit

    def data(self) -> bytes:
        self._buffer.truncate(self._limit)
        return self._buffer.getvalue()


_Reader = Callable[[bytes, _Pace], Iterator[bytes]]


def _readers(coding: str, data: bytes) -> tuple[_Reader, ...]:
    """Return the ways to read a coding, likeliest first: servers mean two different things by deflate."""
    if coding in ("gzip", "x-gzip"):
        return (_gzip,)
    if coding == "deflate":
        looks_wrapped = len(data) > 1 and data[0] & 0x0F == 8 and int.from_bytes(data[:2], "big") % 31 == 0
        return (_zlib, _raw_deflate) if looks_wrapped else (_raw_deflate,)
    if coding == "br":
        return (_brotli,)
    return (_zstd,) if coding == "zstd" else ()


def _inflate(data: bytes, at: int, wbits: int, pace: _Pace) -> Generator[bytes, None, int]:
    """Yield what one deflate stream holds; return where it ended."""
    stream = pace.inflate(wbits)
    while not stream.eof:
        feed = data[at : at + pace.feed_bytes]
        if not feed:
            raise _Stopped(PayloadProblem.CUT_SHORT)
        at += len(feed)
        while True:
            piece = stream.decompress(feed, pace.output_bytes)
            yield piece
            feed = stream.unconsumed_tail
            if stream.eof or (not feed and len(piece) < pace.output_bytes):
                break
    return at - len(stream.unused_data)


def _gzip(data: bytes, pace: _Pace) -> Iterator[bytes]:
    if not data.startswith(_GZIP_MAGIC):
        raise zlib.error("no gzip header")
    at = yield from _inflate(data, 0, 31, pace)
    for _ in range(_MAX_MEMBERS):
        if not data.startswith(_GZIP_MAGIC, at):
            break
        at = yield from _inflate(data, at, 31, pace)
    _expect_end(data, at)


def _zlib(data: bytes, pace: _Pace) -> Iterator[bytes]:
    at = yield from _inflate(data, 0, 15, pace)
    _expect_end(data, at)


def _raw_deflate(data: bytes, pace: _Pace) -> Iterator[bytes]:
    # isal takes some bytes behind the end of a raw stream for its own, so that what follows would go unseen.
    at = yield from _inflate(data, 0, -15, pace._replace(inflate=zlib.decompressobj))
    _expect_end(data, at)


def _brotli(data: bytes, pace: _Pace) -> Iterator[bytes]:
    stream = brotli.Decompressor()
    at = 0
    while not stream.is_finished():
        feed = data[at : at + pace.feed_bytes]
        if not feed:
            raise _Stopped(PayloadProblem.CUT_SHORT)
        at += len(feed)
        yield stream.process(feed, output_buffer_limit=pace.output_bytes)
        while not stream.can_accept_more_data():
            yield stream.process(b"", output_buffer_limit=pace.output_bytes)
    _expect_end(data, at)


def _zstd(data: bytes, pace: _Pace) -> Iterator[bytes]:
    tool = zstandard.ZstdDecompressor(max_window_size=ZSTD_MAX_WINDOW)
    stream = tool.decompressobj()
    at = frames = 0
    while not stream.eof:
        feed = data[at : at + pace.zstd_feed_bytes]
        if not feed:
            raise _Stopped(PayloadProblem.CUT_SHORT)
        at += len(feed)
        yield stream.decompress(feed)
        if stream.eof:
            at -= len(stream.unused_data)
            frames += 1
            if frames < _MAX_MEMBERS and data.startswith(_ZSTD_MAGIC, at):
                stream = tool.decompressobj()
    _expect_end(data, at)


def _expect_end(data: bytes, at: int) -> None:
    """Note what follows the last stream, except for padding with zeros."""
    if data[at:].strip(b"\0"):
        raise _Stopped(PayloadProblem.TRAILING_BYTES)


_WITH_MAGIC: tuple[_Reader, ...] = (_gzip, _zlib, _zstd)
