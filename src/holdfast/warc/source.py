"""A file read by position through one window; nothing here depends on what the bytes mean."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.errors import NotFound, Unavailable

_WINDOW_BYTES = 256 * 1024


class ByteSource:
    """Random and sequential reads of one file, as large as it was when opened. Memory: one window."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.size = os.fstat(fd).st_size
        self._window = b""
        self._start = 0

    def at(self, offset: int, count: int) -> bytes:
        """Return up to `count` bytes from `offset`: fewer at the end of the file, none beyond it."""
        begin = offset - self._start
        if begin < 0 or begin + count > len(self._window):
            if count > _WINDOW_BYTES:
                return self._read(offset, count)
            self._window, self._start, begin = self._read(offset, _WINDOW_BYTES), offset, 0
        return self._window[begin : begin + count]

    def find(self, needle: bytes, start: int) -> int | None:
        """Return where `needle` next stands at or after `start`, or None."""
        at = start
        while at + len(needle) <= self.size:
            if not self._start <= at <= self._start + len(self._window) - len(needle):
                self._window, self._start = self._read(at, _WINDOW_BYTES), at
                if len(self._window) < len(needle):
                    return None
            found = self._window.find(needle, at - self._start)
            if found >= 0:
                return self._start + found
            at = self._start + len(self._window) - len(needle) + 1
        return None

    def _read(self, offset: int, count: int) -> bytes:
        count = min(count, self.size - offset)
        if count <= 0:
            return b""
        try:
            return os.pread(self._fd, count, offset)
        except OSError as exc:
            raise Unavailable(f"cannot read at {offset}: {exc.strerror}; check the disk") from exc


@contextmanager
def open_source(path: Path) -> Iterator[ByteSource]:
    """Open a file for reading; NotFound or Unavailable if that cannot be."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError as exc:
        raise NotFound(f"there is no file {path}") from exc
    except OSError as exc:
        raise Unavailable(f"cannot open {path}: {exc.strerror}") from exc
    try:
        yield ByteSource(fd)
    finally:
        os.close(fd)
