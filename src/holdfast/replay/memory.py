"""How much memory bodies may take that have to be held whole, over all requests of this process."""

from __future__ import annotations

from collections.abc import Iterator
from threading import RLock

from holdfast.errors import Unavailable

_PIECE_BYTES = 256 * 1024


class ReplayBusy(Unavailable):
    """Too many large captures are being decoded at once."""

    code = "replay_busy"

    def __init__(self) -> None:
        super().__init__("several large captures are being decoded; try again in a moment")


class MemoryBudget:
    """Bytes that may be in use; what wants more than is left is refused at once.

    Requests share their threads: one that waited here for a slow reader would keep all others waiting.
    """

    def __init__(self, total: int) -> None:
        self._left = self.total = total
        self._lock = RLock()

    def take(self, size: int) -> Share:
        """Return a share of this size, at most the whole; ReplayBusy if less is free."""
        size = min(size, self.total)
        with self._lock:
            if self._left < size:
                raise ReplayBusy
            self._left -= size
        return Share(self, size)

    @property
    def left(self) -> int:
        """How many bytes are free."""
        return self._left

    def _give_back(self, size: int) -> None:
        with self._lock:  # reentrant: a share may be forgotten, and given back, wherever memory is collected
            self._left += size


class Share:
    """Bytes of a budget that are in use until they are given back, at the latest when this is forgotten."""

    __slots__ = ("_budget", "_size")

    def __init__(self, budget: MemoryBudget, size: int) -> None:
        self._budget, self._size = budget, size

    def shrink(self, size: int) -> None:
        """Keep no more than this."""
        if size < self._size:
            freed, self._size = self._size - size, size
            self._budget._give_back(freed)

    def __del__(self) -> None:
        self.shrink(0)


class HeldBody:
    """A body in memory that is sent piece by piece, and gives its share back when it is sent or given up."""

    __slots__ = ("_at", "_content", "_share", "size")

    def __init__(self, content: bytes, share: Share) -> None:
        share.shrink(len(content))
        self._content, self._share, self._at = content, share, 0
        self.size = len(content)

    @property
    def start(self) -> bytes:
        """The first bytes, to judge by."""
        return self._content[:512]

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        piece = self._content[self._at : self._at + _PIECE_BYTES]
        self._at += len(piece)
        if not piece:
            self.close()
            raise StopIteration
        return piece

    def close(self) -> None:
        """Give the share back."""
        self._content = b""
        self._share.shrink(0)
