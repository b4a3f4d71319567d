"""Work that one process of a machine does at a time: a lock on a file, which the kernel lets go if the process dies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.errors import HoldfastError


@contextmanager
def alone(path: Path, busy: HoldfastError) -> Iterator[None]:
    """Hold the lock of a file while the block runs; raise `busy` at once if somebody else has it, OSError as `open`."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            raise busy from exc
        yield
    finally:
        os.close(fd)
