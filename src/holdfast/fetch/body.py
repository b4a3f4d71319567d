"""Collects the bytes of a response: small bodies in memory, large ones in an unnamed file. Stops at the given
limit and never decodes.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from holdfast.errors import HoldfastError, NoSpace, Unavailable
from holdfast.types import Body

# Smaller pieces are joined: a server that sends single bytes would otherwise cost an object each.
_SMALL_PIECE = 4096
_PIECE_BYTES = 256 * 1024
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class MemoryBody:
    """Bytes held in memory, in the pieces received; `released` is called with their number at `close`."""

    __slots__ = ("_pieces", "_released", "_size")

    def __init__(
        self, pieces: Sequence[bytes] = (), size: int | None = None, released: Callable[[int], None] | None = None
    ) -> None:
        self._pieces = pieces
        self._size = sum(map(len, pieces)) if size is None else size
        self._released = released

    @property
    def size(self) -> int:
        return self._size

    def chunks(self) -> Iterator[bytes]:
        """Yield the bytes from the start; repeatable until `close`."""
        return iter(self._pieces)

    def close(self) -> None:
        self._pieces = ()
        released, self._released = self._released, None
        if released is not None:
            released(self._size)


# The file is unlinked: the bytes vanish with the process, whatever happens to it.
class SpooledBody:
    __slots__ = ("_file", "_size")

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._size = size

    @property
    def size(self) -> int:
        return self._size

    def chunks(self) -> Iterator[bytes]:
        """Yield the bytes from the start; readers are independent. Raise OSError if the disk fails."""
        # `pread` has no file position: the digesting and the writing thread may read at the same time.
        fd, at = self._file.fileno(), 0
        while at < self._size:
            piece = os.pread(fd, min(_PIECE_BYTES, self._size - at), at)
            if not piece:
                raise OSError(errno.EIO, "a spooled body is shorter than the bytes written")
            yield piece
            at += len(piece)

    def close(self) -> None:
        self._file.close()


class Spool:
    """Decides between memory and disk, for each body and for all bodies arriving together."""

    __slots__ = ("_directory", "_room_bytes", "_threshold_bytes", "held_bytes")

    def __init__(self, directory: Path | None, threshold_bytes: int, room_bytes: int) -> None:
        self._directory = directory
        self._threshold_bytes = threshold_bytes
        self._room_bytes = room_bytes
        self.held_bytes = 0
        """What bodies hold in memory now: those that arrive, and those that were handed out and are not closed."""

    @property
    def in_memory_bytes(self) -> int:
        """Up to this size a body always stays in memory."""
        return min(self._threshold_bytes, _PIECE_BYTES)

    def is_full(self, body_bytes: int) -> bool:
        """Return whether a body of this size must go to disk: it is large, or all bodies together are."""
        return body_bytes > self._threshold_bytes or (self.held_bytes > self._room_bytes and body_bytes > _PIECE_BYTES)

    def let_go(self, size: int) -> None:
        """Stop counting a body of this size; call on the event loop, like everything here."""
        self.held_bytes -= size

    def open(self) -> BinaryIO:
        """Return a new unnamed, unbuffered file."""
        # The calling sink owns and closes it.
        return tempfile.TemporaryFile(dir=self._directory, prefix="body-", buffering=0)


class BodySink:
    """Receives a body, at most `limit` bytes of it; reused for the next one with `begin`."""

    __slots__ = (
        "_file",
        "_held",
        "_limit",
        "_memory_bytes",
        "_pieces",
        "_size",
        "_spool",
        "_tail",
        "error",
        "overflowed",
    )

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._file: BinaryIO | None = None
        self._held = 0
        self.begin(0)

    def begin(self, limit: int) -> None:
        """Prepare for a body of at most `limit` bytes, and discard anything not returned by `finish`."""
        if self._file is not None:
            self._file.close()
            self._file = None
        self._spool.held_bytes -= self._held
        self._held = self._size = 0
        self._limit = limit
        self._memory_bytes = min(limit, self._spool.in_memory_bytes)
        self._pieces: list[bytes] = []
        self._tail: bytearray | None = None
        self.overflowed = False
        """True once bytes were refused because of the limit."""
        self.error: HoldfastError | None = None
        """Why the disk would not take it, if it would not."""

    def write(self, data: bytes) -> int:
        """Write bytes and return how many were accepted; fewer than given means that the transfer must end here."""
        count = len(data)
        size = self._size + count
        if size > self._memory_bytes or count < _SMALL_PIECE or self._tail is not None:
            return count if self._write_bounded(data) else 0
        self._size = size
        self._held += count
        self._spool.held_bytes += count
        self._pieces.append(data)
        return count

    def _write_bounded(self, data: bytes) -> bool:
        room = self._limit - self._size
        if len(data) > room:
            self.overflowed = True
            data = data[:room]
        self._size += len(data)
        if self._file is not None or self._spool.is_full(self._size):
            return self._store(data) and not self.overflowed
        self._held += len(data)
        self._spool.held_bytes += len(data)
        if self._tail is None:
            self._tail = bytearray()
        self._tail += data
        if len(self._tail) >= _PIECE_BYTES:
            self._flush_tail()
        return not self.overflowed

    def _flush_tail(self) -> None:
        if self._tail is not None:
            self._pieces.append(bytes(self._tail))
            self._tail = None

    def _store(self, data: bytes) -> bool:
        try:
            if self._file is None:
                self._file = self._spool.open()
                self._flush_tail()
                for piece in self._pieces:
                    _write_all(self._file, piece)
                self._spool.held_bytes -= self._held
                self._held = 0
                self._pieces = []
            _write_all(self._file, data)
        except OSError as exc:
            kind = NoSpace if exc.errno in _NO_SPACE else Unavailable
            self.error = kind(f"cannot spool a response body: {exc.strerror}; make room or point the spool elsewhere")
            self.error.__cause__ = exc
            return False
        return True

    def finish(self) -> Body:
        """Return the body received so far; the sink accepts nothing more until `begin`."""
        size, self._size = self._size, 0
        if self._file is not None:
            self._spool.held_bytes -= self._held
            self._held = 0
            file, self._file = self._file, None
            return SpooledBody(file, size)
        self._flush_tail()
        pieces, self._pieces = self._pieces, []
        self._held = 0  # it stays in the account until the body is closed
        return MemoryBody(pieces, size, self._spool.let_go)

    def drop(self) -> None:
        """Discard anything not returned by `finish`."""
        if self._size:
            self.begin(0)


def _write_all(file: BinaryIO, data: bytes) -> None:
    """Write all bytes: an unbuffered write may stop short just before the disk is full."""
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]
