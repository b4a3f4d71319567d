"""Takes a chunked body out of its framing, on input that nobody vouches for: it never raises, holds one line and one
piece at a time, and keeps what came before the damage.

Each step of the iterator does a bounded amount of work, so that a caller may count, stop or hand over between two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from holdfast.warc.problem import PayloadProblem

_MAX_LINE_BYTES = 16 * 1024
"""A chunk's size line with its extensions, or a trailer line; servers that mean well stay far below."""
_MAX_CHUNK_BYTES = 1 << 40
_MAX_TRAILER_BYTES = 64 * 1024
_PLAIN_SIZE_LINE = re.compile(rb"([0-9a-fA-F]{1,8})\r\n")
_SIZE = re.compile(rb"[0-9a-fA-F]{1,16}")
_TINY = re.compile(b"|".join(b"[%x%X]\\r\\n(.{%d})\\r\\n" % (n, n, n) for n in range(1, 16)), re.DOTALL)
"""One whole chunk of up to 15 bytes: a scan with it costs a third of parsing each size line."""
_STEP_CHUNKS = 256
"""Chunks in one piece at most: a step of the iterator stays below a millisecond, whatever stands in the buffer."""
_ALIKE_BYTES = 64
"""Chunks up to this size are looked at as a run of equal ones, a column at a time instead of one after the other:
100 MB in chunks of one byte take half a second that way instead of half a minute."""
_ALIKE_PIECE_BYTES = 1024 * 1024


class Dechunked:
    """The payload inside a chunked body, piece by piece; `problem` is known once the pieces are used up.

    A body whose first line is no chunk size was never chunked (many tools store bodies without their framing and keep
    the header): it comes out as it is, with the problem noted. Later damage ends the payload where it stands.
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
        """Put more bytes behind what is left of the buffer, enough at once that a source of crumbs costs no more."""
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
        """Return the next line without its end; None with the problem noted if it is too long or not all there."""
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
        """Return the size of the next chunk; None with the problem noted if it has none that makes sense."""
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
        """Yield the chunks that lie whole in the buffer, many together: a body may come in millions of them."""
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
        """Yield what the chunks of one size line and size hold that follow each other here, twice as many each time."""
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
        """Yield a chunk that reaches beyond the buffer, and step over the line end behind it."""
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
        """Step over the trailer section (RFC 9112, section 7.1.2); a message may end without its last empty line."""
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
        if self.problem is PayloadProblem.CUT_SHORT and not read and self._at == len(self._buffer):
            self.problem = None


def dechunk(chunks: Iterable[bytes]) -> Dechunked:
    """Return the payload of a chunked body as an iterator of pieces, with its `problem` once it is used up."""
    return Dechunked(chunks)
