"""Writing to the local disk so that it survives a power loss: synced files, atomic replacement, digests, errors."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from isal.isal_zlib import crc32

from holdfast.errors import READ_ONLY, NoSpace, Unavailable

_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class Digests(NamedTuple):
    """Size and digests of some bytes; the field names are those of SealedFile."""

    size: int
    sha256: str
    crc32: int


def digests_of(pieces: Iterable[bytes]) -> Digests:
    sha256, crc, size = hashlib.sha256(), 0, 0
    for piece in pieces:
        sha256.update(piece)
        crc = crc32(piece, crc)
        size += len(piece)
    return Digests(size, sha256.hexdigest(), crc)


def sha256_of_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def synced(path: Path, mode: str = "wb") -> Iterator[BinaryIO]:
    """Open a file for writing; its bytes are on disk when the block ends without an error."""
    with cast("BinaryIO", path.open(mode)) as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def write_whole(path: Path, data: bytes, *, mtime: float | None = None) -> None:
    """Write a file atomically and sync it first; readers see the old or the new content."""
    fresh = path.with_name(f"{path.name}.new")
    # Follow no link: a container can write to the directory of its run.
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    with os.fdopen(fd, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    if mtime is not None:
        os.utime(fresh, (mtime, mtime))
    fresh.replace(path)
    sync_directory(path.parent)


@contextmanager
def locked(path: Path, mode: int = 0o600) -> Iterator[None]:
    """Wait for the lock on a file, made if missing; the kernel releases it when the process ends.

    Raise NoSpace or Unavailable if the file cannot be made.
    """
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, mode)
    except OSError as exc:
        raise disk_error(exc, f"cannot write {path}: {exc.strerror}") from exc
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def append_lines(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    """Append objects to a file of JSON lines, creating it if necessary; return when they are on disk."""
    is_new = not path.exists()
    try:
        with synced(path, "ab") as file:
            # Start with a line break: a dead process may have left a partial line.
            file.write(b"".join(b"\n" + json.dumps(line).encode() for line in lines) + b"\n")
        if is_new:
            sync_directory(path.parent)
    except OSError as exc:
        raise disk_error(exc, f"cannot write {path}: {exc.strerror}") from exc


def read_lines(path: Path) -> list[bytes]:
    """Return the lines of a file; none if it does not exist."""
    try:
        return path.read_bytes().splitlines()
    except FileNotFoundError:
        return []
    except OSError as exc:
        raise disk_error(exc, f"cannot read {path}: {exc.strerror}") from exc


def sync_directory(directory: Path) -> None:
    """Make names in a directory, or the bytes of a file, survive a power loss."""
    fd = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def disk_error(exc: OSError, message: str) -> Unavailable:
    """Return NoSpace if the disk is full, Unavailable for other disk errors."""
    if exc.errno in READ_ONLY:
        return Unavailable(f"{message}; make it writable for this user, or choose another data directory with --home")
    return (NoSpace if exc.errno in _NO_SPACE else Unavailable)(message)
