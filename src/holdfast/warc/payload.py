"""Extracts the content of an HTTP message: head, transfer coding, content codings.

Used wherever a message is opened (crawl, index, replay, import), on input of unknown servers and writers: it
never raises, never exceeds its limits. Decompression bombs stop at the limit, and a truncated body is used as
far as it goes.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import field
from enum import StrEnum
from io import BytesIO
from itertools import chain
from typing import Any

import brotli
import zstandard
from isal import isal_zlib

from holdfast.gzip_streams import (
    GZIP,
    GZIP_MAGIC,
    MAX_RATIO,
    RATIO_FROM_BYTES,
    RAW,
    ZLIB,
    DeflateStream,
    EndOfInput,
    InflateBudget,
    largest_honest,
    reader_of,
)
from holdfast.types import Body
from holdfast.values import dataclass


class PayloadProblem(StrEnum):
    """Problems with the framing or the codings of a message."""

    BAD_FRAMING = "bad_framing"
    CUT_SHORT = "cut_short"
    TRAILING_BYTES = "trailing_bytes"
    BAD_ENCODING = "bad_encoding"
    UNKNOWN_ENCODING = "unknown_encoding"
    TOO_MANY_ENCODINGS = "too_many_encodings"
    TOO_LARGE = "too_large"
    RATIO_EXCEEDED = "ratio_exceeded"


# A chunk's size line with its extensions, or a trailer line; honest servers stay far below.
_MAX_LINE_BYTES = 16 * 1024
_MAX_CHUNK_BYTES = 1 << 40
_MAX_TRAILER_BYTES = 64 * 1024
_PLAIN_SIZE_LINE = re.compile(rb"([0-9a-fA-F]{1,8})\r\n")
_SIZE = re.compile(rb"[0-9a-fA-F]{1,16}")
# One whole chunk of up to 15 bytes: a scan with it costs a third of parsing each size line.
_TINY = re.compile(b"|".join(b"[%x%X]\\r\\n(.{%d})\\r\\n" % (n, n, n) for n in range(1, 16)), re.DOTALL)
# Limit of chunks per piece: a step of the iterator takes less than a millisecond for any buffer.
_STEP_CHUNKS = 256
# Chunks up to this size are parsed as a run of equal ones, a column at a time: 100 MB in chunks of one byte then take
# half a second instead of half a minute.
_ALIKE_BYTES = 64
_ALIKE_PIECE_BYTES = 1024 * 1024


class Dechunked:
    """The payload of a chunked body, piece by piece; `problem` is known once the pieces are consumed.

    A body whose first line is not a chunk size was never chunked (many tools store bodies without their framing and
    keep the header): it is passed on unchanged, with the problem recorded. Later damage ends the payload there.
    """

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self.problem: PayloadProblem | None = None
        self._source = iter(chunks)
        self._buffer = b""
        self._at = 0
        self._pieces = self._read()

    def __iter__(self) -> Iterator[bytes]:
        return self._pieces

    def __next__(self) -> bytes:
        return next(self._pieces)

    def _more(self) -> bool:
        # Read enough at once: for a source of a few bytes at a time the rest of the buffer would be copied each time.
        taken, size = [self._buffer[self._at :]], 0
        for chunk in self._source:
            taken.append(chunk)
            size += len(chunk)
            if size >= _MAX_LINE_BYTES:
                break
        if size:
            self._buffer, self._at = b"".join(taken), 0
        return size > 0

    def _line(self) -> bytes | None:
        """Return the next line without its end; record a problem and return None if it is too long or incomplete."""
        scanned = self._at
        while (end := self._buffer.find(b"\n", scanned)) < 0:
            scanned = len(self._buffer) - self._at
            if scanned > _MAX_LINE_BYTES:
                self.problem = PayloadProblem.BAD_FRAMING
                return None
            if not self._more():
                self.problem = PayloadProblem.CUT_SHORT
                return None
        line = self._buffer[self._at : end]
        self._at = end + 1
        return line

    def _size(self) -> int | None:
        """Return the size of the next chunk; record a problem and return None if it is invalid."""
        line = self._line()
        if line is None:
            return None
        stated = line.partition(b";")[0].strip(b" \t\r") if len(line) <= _MAX_LINE_BYTES else b""
        size = int(stated, 16) if _SIZE.fullmatch(stated) else -1
        if 0 <= size <= _MAX_CHUNK_BYTES:
            return size
        self.problem = PayloadProblem.BAD_FRAMING
        return None

    def _read(self) -> Iterator[bytes]:
        if not self._more():
            return
        size = self._size()
        if size is None:
            self.problem = PayloadProblem.BAD_FRAMING
            yield self._buffer
            yield from self._source
            return
        while size:
            yield from self._large(size)
            if self.problem is not None:
                return
            yield from self._small()
            size = self._size()
        if size == 0:
            self._trailers()

    def _small(self) -> Iterator[bytes]:
        """Yield the chunks that are complete in the buffer, many together: a body may have millions of them."""
        while pieces := self._tiny() or self._plain():
            yield b"".join(pieces)
            size = len(pieces[0])
            if len(pieces) == _STEP_CHUNKS and size <= _ALIKE_BYTES and all(len(piece) == size for piece in pieces):
                yield from self._alike(size)

    def _tiny(self) -> list[bytes]:
        buffer, at = self._buffer, self._at
        gathered: list[bytes] = []
        while len(gathered) < _STEP_CHUNKS and (match := _TINY.match(buffer, at)):
            gathered.append(match[match.lastindex or 0])
            at = match.end()
        self._at = at
        return gathered

    def _plain(self) -> list[bytes]:
        buffer, at = self._buffer, self._at
        gathered: list[bytes] = []
        while len(gathered) < _STEP_CHUNKS and (match := _PLAIN_SIZE_LINE.match(buffer, at)):
            start = match.end()
            end = start + int(match[1], 16)
            if end == start or buffer[end : end + 2] != b"\r\n":
                break
            gathered.append(buffer[start:end])
            at = end + 2
        self._at = at
        return gathered

    def _alike(self, size: int) -> Iterator[bytes]:
        """Yield the content of consecutive chunks with the same size line, twice as many each time."""
        buffer = self._buffer
        match = _PLAIN_SIZE_LINE.match(buffer, self._at)
        if match is None or int(match[1], 16) != size:
            return
        header, count = match[0], _STEP_CHUNKS
        unit = len(header) + size + 2
        frame = [*enumerate(header), (len(header) + size, ord("\r")), (len(header) + size + 1, ord("\n"))]
        whole = count
        while whole == count:
            at = self._at
            whole = count = min(2 * count, (len(buffer) - at) // unit, _ALIKE_PIECE_BYTES // size)
            for place, byte in frame:
                column = buffer[at + place : at + count * unit : unit]
                whole = min(whole, len(column) - len(column.lstrip(bytes((byte,)))))
            if not whole:
                return
            data = bytearray(whole * size)
            for place in range(size):
                data[place::size] = buffer[at + len(header) + place : at + whole * unit : unit]
            self._at += whole * unit
            yield bytes(data)

    def _large(self, size: int) -> Iterator[bytes]:
        """Yield a chunk that extends beyond the buffer, and skip the line end after it."""
        left = size
        while left:
            piece = self._buffer[self._at : self._at + left]
            self._at += len(piece)
            left -= len(piece)
            if piece:
                yield piece
            if left and not self._more():
                self.problem = PayloadProblem.CUT_SHORT
                return
        if self._line() not in (b"\r", b"", None):
            self.problem = PayloadProblem.BAD_FRAMING

    def _trailers(self) -> None:
        """Skip the trailer section (RFC 9112, section 7.1.2); a message may end without its last empty line."""
        read = 0
        while (line := self._line()) is not None:
            if line in (b"\r", b""):
                if self._at < len(self._buffer) or self._more():
                    self.problem = PayloadProblem.TRAILING_BYTES
                return
            read += len(line)
            if read > _MAX_TRAILER_BYTES:
                self.problem = PayloadProblem.BAD_FRAMING
                return
        # The payload is complete if the body ends directly after its last size line.
        if self.problem is PayloadProblem.CUT_SHORT and not read and self._at == len(self._buffer):
            self.problem = None


_MAX_HEADERS = 10_000
# Limit of parsed head lines, including folded ones.
_MAX_LINES = 20_000

_EMPTY_LINE = re.compile(rb"\n\r?\n")
_STATUS_LINE = re.compile(r"HTTP/[0-9.]{1,8}[ \t]+([0-9]{3})(?:[ \t]+(.*))?")
_CHARSET = re.compile(r";[ \t]*charset[ \t]*=[ \t]*(?:\"([^\"]*)\"|'([^']*)'|([^;, \t]*))", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class HttpHead:
    """A response's status line and headers, latin-1 decoded, in their original order."""

    status: int
    """0 without a status line."""
    reason: str
    headers: tuple[tuple[str, str], ...]
    _values: dict[str, list[str]] = field(init=False, repr=False, compare=False, default_factory=dict)
    """By lower-case name: a page's head is read nine times, and lowering all names each time took 15 us."""

    def __post_init__(self) -> None:
        for name, value in self.headers:
            self._values.setdefault(name.lower(), []).append(value)

    def get(self, name: str) -> str | None:
        """Return the first value of this header, ignoring case; None if it is missing."""
        values = self._values.get(name.lower())
        return values[0] if values else None

    def get_all(self, name: str) -> tuple[str, ...]:
        """Return every value of this header in order."""
        return tuple(self._values.get(name.lower(), ()))

    @property
    def media_type(self) -> str | None:
        """The declared type without its parameters, lower case; None if it is missing."""
        declared = self.get("content-type")
        return (declared.partition(";")[0].partition(",")[0].strip().lower() or None) if declared else None

    @property
    def charset(self) -> str | None:
        """The declared charset as spelled; None if it is missing."""
        match = _CHARSET.search(self.get("content-type") or "")
        return (next((found for found in match.groups() if found), "").strip() or None) if match else None

    @property
    def is_chunked(self) -> bool:
        """Whether the body is chunked (RFC 9112, section 6.1: the last transfer coding)."""
        codings = ",".join(self.get_all("transfer-encoding"))
        return codings.rpartition(",")[2].strip().lower() == "chunked"


def split_head(block: bytes) -> tuple[bytes, bytes]:
    """Split a message after the empty line that ends its head; without one, the whole message is the head."""
    match = _EMPTY_LINE.search(block)
    return (block, b"") if match is None else (block[: match.end()], block[match.end() :])


def parse_head(head: bytes) -> HttpHead:
    """Parse a head in time linear to its size. Folded lines are joined; lines without a colon are ignored."""
    lines = _unfolded(head.decode("latin-1"))
    match = _STATUS_LINE.match(next(lines, ""))
    headers = []
    for line in lines:
        name, colon, value = line.partition(":")
        if colon:
            headers.append((name.strip(), value.strip()))
            if len(headers) == _MAX_HEADERS:
                break
        elif not line:
            break
    return HttpHead(int(match[1]) if match else 0, (match[2] or "") if match else "", tuple(headers))


def _unfolded(text: str) -> Iterator[str]:
    """Yield the lines of a head, each joined with its continuation lines (RFC 9112, section 5.2) by one blank each."""
    # Match per line: a pattern for spaces before a line break retries every space of a run, and a head of a few
    # kilobytes takes minutes.
    lines = text.split("\n", _MAX_LINES)[:_MAX_LINES]
    if "\n " not in text and "\n\t" not in text:
        yield from (line.removesuffix("\r") for line in lines)
        return
    parts = [lines[0].removesuffix("\r")]
    for line in lines[1:]:
        if line.startswith((" ", "\t")):
            parts.append(line.strip(" \t\r"))
            continue
        yield parts[0] if len(parts) == 1 else " ".join((parts[0].rstrip(" \t"), *parts[1:]))
        parts = [line.removesuffix("\r")]
    yield parts[0] if len(parts) == 1 else " ".join((parts[0].rstrip(" \t"), *parts[1:]))


def payload_chunks(head: HttpHead, body: Body | Iterable[bytes]) -> Iterator[bytes]:
    """Return the payload of a message: its body, without chunk framing."""
    chunks = body if isinstance(body, Iterable) else body.chunks()
    return Dechunked(chunks) if head.is_chunked else iter(chunks)


_ERRORS: tuple[Any, ...] = (zlib.error, isal_zlib.error, brotli.error, zstandard.ZstdError)
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
# RFC 9659: the largest window that a content coding may require.
ZSTD_MAX_WINDOW = 8 * 1024 * 1024
_MAX_MEMBERS = 1000
# Raw deflate and brotli have no magic number: decoding plain text often yields a few bytes before it fails. Shorter
# output counts as such an accident.
_CREDIBLE_BYTES = 256

# zstd does not limit a call's output; 256 bytes of input give at most 8 MiB (blocks of 128 KiB in 4 bytes).
_ZSTD_FEED_BYTES = 256
_FAST = InflateBudget(feed_bytes=64 * 1024, output_bytes=256 * 1024, inflater=isal_zlib.decompressobj)


def _careful(size: int) -> InflateBudget:
    """Return the budget for damaged input: byte by byte for a page, and never more than 65,536 calls."""
    # A failing call loses its output, so keep each call small.
    return InflateBudget(feed_bytes=max(1, size >> 16), output_bytes=512)


Reserve = Callable[[int], None]
"""Called with the current size of a body; an exception from it stops decoding."""


def no_reserve(_size: int) -> None:
    """Reserve nothing: only the caller's limits bound the memory."""


class _Stopped(Exception):
    """The input ended or did not follow the coding; earlier output is valid."""

    def __init__(self, problem: PayloadProblem) -> None:
        super().__init__(problem)
        self.problem = problem


def undo(
    coding: str, data: bytes, limit: int, excess: PayloadProblem, reserve: Reserve = no_reserve
) -> tuple[bytes, PayloadProblem | None]:
    """Return the decoded data and the problem, if any.

    More than `limit` bytes are cut there, with `excess` as the problem. Data of another or an unknown coding is
    returned unchanged. `reserve` is called with each size that the output reaches.
    """
    readers = _readers(coding, data)
    if not readers:
        return data, PayloadProblem.UNKNOWN_ENCODING
    for reader in readers:
        # Use large steps first; a failing call loses its output, so damaged data is read again in small steps up to the
        # damage.
        for budget in (_FAST, _careful(len(data))):
            out = _Output(limit)
            problem = PayloadProblem.BAD_ENCODING
            try:
                for piece in reader(data, budget):
                    if not out.take(piece):
                        return out.data(), excess
                    reserve(out.size)
                return out.data(), None
            except _Stopped as stopped:
                problem = stopped.problem
                break
            except EndOfInput:
                problem = PayloadProblem.CUT_SHORT
                break
            except _ERRORS:
                continue
        if out.size >= _CREDIBLE_BYTES or (problem is not PayloadProblem.BAD_ENCODING and reader in _WITH_MAGIC):
            return out.data(), problem
    return data, PayloadProblem.BAD_ENCODING


class _Output:
    """The output so far. One growing buffer, because a list and its join would hold everything twice."""

    __slots__ = ("_buffer", "_limit", "size")

    def __init__(self, limit: int) -> None:
        self._buffer = BytesIO()
        self._limit = limit
        self.size = 0

    def take(self, piece: bytes) -> bool:
        """Append a piece; return False once the limit is exceeded."""
        self.size += self._buffer.write(piece)
        return self.size <= self._limit

    def data(self) -> bytes:
        self._buffer.truncate(self._limit)
        return self._buffer.getvalue()


_Reader = Callable[[bytes, InflateBudget], Iterator[bytes]]


def _readers(coding: str, data: bytes) -> tuple[_Reader, ...]:
    """Return the decoders of a coding, likeliest first: servers use deflate for two different formats."""
    if coding in ("gzip", "x-gzip"):
        return (_gzip,)
    if coding == "deflate":
        # RFC 9110, section 8.4.1.2 calls a zlib stream `deflate`; many servers send a bare one. The header's check bits
        # (RFC 1950, section 2.2) distinguish them.
        looks_wrapped = len(data) > 1 and data[0] & 0x0F == 8 and int.from_bytes(data[:2], "big") % 31 == 0
        return (_zlib, _raw_deflate) if looks_wrapped else (_raw_deflate,)
    if coding == "br":
        return (_brotli,)
    return (_zstd,) if coding == "zstd" else ()


def _inflate(data: bytes, at: int, wbits: int, budget: InflateBudget) -> Generator[bytes, None, int]:
    stream = DeflateStream(reader_of(data), at, wbits, budget)
    yield from stream
    assert stream.end is not None
    return stream.end


def _gzip(data: bytes, budget: InflateBudget) -> Iterator[bytes]:
    if not data.startswith(GZIP_MAGIC):
        raise zlib.error("no gzip header")
    at = yield from _inflate(data, 0, GZIP, budget)
    for _ in range(_MAX_MEMBERS):
        if not data.startswith(GZIP_MAGIC, at):
            break
        at = yield from _inflate(data, at, GZIP, budget)
    _expect_end(data, at)


def _zlib(data: bytes, budget: InflateBudget) -> Iterator[bytes]:
    at = yield from _inflate(data, 0, ZLIB, budget)
    _expect_end(data, at)


def _raw_deflate(data: bytes, budget: InflateBudget) -> Iterator[bytes]:
    # isal consumes some bytes after the end of a raw stream, which would hide the data that follows.
    at = yield from _inflate(data, 0, RAW, budget._replace(inflater=zlib.decompressobj))
    _expect_end(data, at)


def _brotli(data: bytes, budget: InflateBudget) -> Iterator[bytes]:
    stream = brotli.Decompressor()
    at = 0
    while not stream.is_finished():
        feed = data[at : at + budget.feed_bytes]
        if not feed:
            raise _Stopped(PayloadProblem.CUT_SHORT)
        at += len(feed)
        yield stream.process(feed, output_buffer_limit=budget.output_bytes)
        while not stream.can_accept_more_data():
            yield stream.process(b"", output_buffer_limit=budget.output_bytes)
    _expect_end(data, at)


def _zstd(data: bytes, budget: InflateBudget) -> Iterator[bytes]:
    feed_bytes = min(budget.feed_bytes, _ZSTD_FEED_BYTES)
    tool = zstandard.ZstdDecompressor(max_window_size=ZSTD_MAX_WINDOW)
    stream = tool.decompressobj()
    at = frames = 0
    while not stream.eof:
        feed = data[at : at + feed_bytes]
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
    """Raise _Stopped if anything but zero padding follows the last stream."""
    # gzip itself ignores zeros after the last stream.
    if data[at:].strip(b"\0"):
        raise _Stopped(PayloadProblem.TRAILING_BYTES)


_WITH_MAGIC: tuple[_Reader, ...] = (_gzip, _zlib, _zstd)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeCaps:
    """Limits of decoding content codings."""

    max_output_bytes: int = 50 * 1024 * 1024
    max_ratio: int = MAX_RATIO
    ratio_from_bytes: int = RATIO_FROM_BYTES
    max_layers: int = 2
    reserve: Reserve = no_reserve


_CAPS = DecodeCaps()


def decode(
    head: HttpHead, payload: bytes | Iterable[bytes], caps: DecodeCaps = _CAPS
) -> tuple[bytes, tuple[PayloadProblem, ...]]:
    """Return a payload with its content codings undone, the last one of Content-Encoding first, and the problems.

    An undecodable part is returned unchanged, a truncated one as far as it goes, with the problem recorded. Bytes
    without a coding are returned themselves, not a copy.
    """
    data, is_whole = _gather(payload, caps.max_output_bytes, caps.reserve)
    problems = [] if is_whole else [PayloadProblem.TOO_LARGE]
    declared = head.get_all("content-encoding")
    codings = [coding for text in declared for part in text.split(",") if (coding := part.strip().lower())]
    codings = [coding for coding in codings if coding != "identity"]
    if not codings or not data:
        return data, tuple(problems)
    if len(codings) > caps.max_layers:
        return data, (*problems, PayloadProblem.TOO_MANY_ENCODINGS)
    limit, excess = caps.max_output_bytes, PayloadProblem.TOO_LARGE
    by_ratio = largest_honest(len(data), max_ratio=caps.max_ratio, ratio_from_bytes=caps.ratio_from_bytes)
    if by_ratio < limit:
        limit, excess = by_ratio, PayloadProblem.RATIO_EXCEEDED
    for coding in reversed(codings):
        data, problem = undo(coding, data, limit, excess, caps.reserve)
        if problem is not None and problem not in problems:
            problems.append(problem)
    return data, tuple(problems)


def _gather(payload: bytes | Iterable[bytes], limit: int, reserve: Reserve) -> tuple[bytes, bool]:
    if isinstance(payload, bytes):
        return (payload, True) if len(payload) <= limit else (payload[:limit], False)
    pieces = iter(payload)
    only = next(pieces, b"")
    second = next(pieces, None)
    if second is None:
        return _gather(only, limit, reserve)
    buffer = BytesIO()
    size = buffer.write(only)
    for piece in chain((second,), pieces):
        size += buffer.write(piece)
        if size > limit:
            buffer.truncate(limit)
            break
        reserve(size)
    return buffer.getvalue(), size <= limit
