"""Bytes that come in pieces, read as heads and blocks. It holds one head or one piece at most."""

from __future__ import annotations

import re
from collections.abc import Iterator

from holdfast.warc.member import BadBytes

_EMPTY_LINE = re.compile(rb"\n\r{0,2}\n")
_BREAKS = re.compile(rb"[\r\n]*")


class Feed:
    """A stream that is read forward: a head up to its empty line, then so many bytes, then the next head."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._held = b""
        # What is taken is not cut off: a piece that holds thousands of records would be copied for each of them.
        self._start = 0
        self.position = 0
        """How many bytes have been taken."""

    def head(self, limit: int) -> bytes:
        """Return everything up to and including the next empty line, or what is left if there is none.

        Empty at the end. BadBytes if `limit` bytes hold no empty line.
        """
        searched = 0
        while True:
            # No further than the limit: a piece may hold much more, and its caller may come back for each byte of it.
            match = _EMPTY_LINE.search(self._held, self._start + max(searched - 3, 0), self._start + limit)
            if match:
                return self._cut(match.end() - self._start)
            searched = self._left
            if searched > limit:
                raise BadBytes("record_header", f"no empty line within {limit} bytes")
            if not self._more():
                return self._cut(searched)

    def take(self, count: int) -> Iterator[bytes]:
        """Yield the next `count` bytes, fewer if the stream ends."""
        while count > 0:
            if not self._left and not self._more():
                return
            piece = self._cut(min(count, self._left))
            count -= len(piece)
            yield piece

    def peek(self, count: int) -> bytes:
        """Return the next `count` bytes without taking them, fewer if the stream ends."""
        while self._left < count and self._more():
            pass
        return self._held[self._start : self._start + count]

    def drop(self, count: int) -> None:
        """Take this many of the bytes that were just peeked at."""
        count = min(count, self._left)
        self._start += count
        self.position += count

    def skip_breaks(self) -> None:
        """Take the line breaks that come next, however many there are; a piece of nothing else is looked at once."""
        while self._left or self._more():
            breaks = _BREAKS.match(self._held, self._start)
            self.drop(breaks.end() - self._start if breaks else 0)
            if self._left:
                return

    def rest(self) -> Iterator[bytes]:
        """Yield everything that is left."""
        while self._left or self._more():
            yield self._cut(self._left)

    def drain(self) -> int:
        """Read to the end; return how many bytes there were."""
        count = self._left
        self._held, self._start = b"", 0
        for piece in self._pieces:
            count += len(piece)
        self.position += count
        return count

    @property
    def _left(self) -> int:
        """How many bytes are held and not taken."""
        return len(self._held) - self._start

    def _more(self) -> bool:
        """Hold one more piece; return whether there was one."""
        for piece in self._pieces:
            if piece:
                self._held = self._held[self._start :] + piece if self._left else piece
                self._start = 0
                return True
        return False

    def _cut(self, count: int) -> bytes:
        cut = self._held if count == len(self._held) else self._held[self._start : self._start + count]
        self.drop(count)
        if not self._left:
            self._held, self._start = b"", 0
        return cut
