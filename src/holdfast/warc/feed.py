"""Bytes that come in pieces, read as heads and blocks. It holds one head or one piece at most."""

from __future__ import annotations

import re
from collections.abc import Iterator

from holdfast.warc.member import BadBytes

_EMPTY_LINE = re.compile(rb"\n\r{0,2}\n")


class Feed:
    """A stream that is read forward: a head up to its empty line, then so many bytes, then the next head."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._held = b""
        self.position = 0
        """How many bytes have been taken."""

    def head(self, limit: int) -> bytes:
        """Return everything up to and including the next empty line, or what is left if there is none.

        Empty at the end. BadBytes if `limit` bytes hold no empty line.
        """
        held, searched = self._held, 0
        while True:
            match = _EMPTY_LINE.search(held, max(searched - 3, 0))
            if match and match.end() <= limit:
                return self._cut(held, match.end())
            if len(held) > limit:
                self._held = held
                raise BadBytes("record_header", f"no empty line within {limit} bytes")
            searched = len(held)
            piece = next(self._pieces, None)
            if piece is None:
                return self._cut(held, len(held))
            held = held + piece if held else piece

    def take(self, count: int) -> Iterator[bytes]:
        """Yield the next `count` bytes, fewer if the stream ends."""
        while count > 0:
            if not self._held:
                piece = next(self._pieces, None)
                if piece is None:
                    return
                self._held = piece
            piece = self._held
            if len(piece) > count:
                piece = self._cut(piece, count)
            else:
                self._held = b""
                self.position += len(piece)
            count -= len(piece)
            yield piece

    def peek(self, count: int) -> bytes:
        """Return the next `count` bytes without taking them, fewer if the stream ends."""
        while len(self._held) < count:
            piece = next(self._pieces, None)
            if piece is None:
                break
            self._held += piece
        return self._held[:count]

    def drop(self, count: int) -> None:
        """Take this many of the bytes that were just peeked at."""
        self._cut(self._held, min(count, len(self._held)))

    def rest(self) -> Iterator[bytes]:
        """Yield everything that is left."""
        while self.peek(1):
            held, self._held = self._held, b""
            self.position += len(held)
            yield held

    def drain(self) -> int:
        """Read to the end; return how many bytes there were."""
        count = len(self._held)
        self._held = b""
        for piece in self._pieces:
            count += len(piece)
        self.position += count
        return count

    def _cut(self, held: bytes, count: int) -> bytes:
        self._held = held[count:]
        self.position += count
        return held[:count]
