"""The open WARC file: an append is complete or undone, digests grow with it, a lock shows that its owner lives.

Names: `NAME.warc.gz.open` while it is written, `NAME.warc.gz` afterwards. A file is never overwritten.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import io
import os
from pathlib import Path

from isal.isal_zlib import crc32

from holdfast.errors import Conflict, Unavailable
from holdfast.failpoints import reach
from holdfast.storage.disk import disk_error, sync_directory
from holdfast.values import dataclass

OPEN_SUFFIX = ".open"
_PIECE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedFile:
    """A complete file that will not change; the source of its manifest line and its row."""

    path: Path
    """Its path; in rows and when reading them, relative to the data directory if it is inside."""
    size: int
    sha256: str
    """Hexadecimal."""
    crc32: int
    record_count: int


class OutFile:
    """Appends to one file. NoSpace or Unavailable from an append leave the file unchanged, so it can be retried.

    Appending belongs to one thread; `sync` may run concurrently in another.
    """

    def __init__(self, raw: io.FileIO, path: Path) -> None:
        self._raw = raw
        self.path = path
        """Its name while open."""
        self.size = 0
        self._sha256 = hashlib.sha256()
        self._crc = 0
        self._torn = False
        self._lost: Unavailable | None = None

    @property
    def sealed_path(self) -> Path:
        return self.path.with_name(self.path.name.removesuffix(OPEN_SUFFIX))

    def append(self, data: bytes) -> None:
        """Write all of these bytes at the end, or none of them."""
        self._ready()
        try:
            self._write(data)
        except OSError as exc:
            raise self._rolled_back(exc) from exc
        self._sha256.update(data)
        self._crc = crc32(data, self._crc)
        self.size += len(data)
        self._torn = False

    def begin(self) -> None:
        """Start an append in pieces. They count from `commit` on."""
        self._ready()
        self._torn = True

    def piece(self, data: bytes) -> None:
        """Write one piece; on failure everything since `begin` is removed."""
        try:
            self._write(data)
        except OSError as exc:
            raise self._rolled_back(exc) from exc

    def commit(self, header: bytes, length: int) -> None:
        """Overwrite the start of the pieces, `length` bytes in total, with the final header, and make them count."""
        start, end = self.size, self.size + length
        # Use copies: if reading back fails, the digests still fit the file without these pieces.
        sha256, crc = self._sha256.copy(), self._crc
        try:
            self._raw.seek(start)
            self._write(header)
            self._raw.seek(end)
            # Read the pieces back: the header at the front is known only now, and digests run from front to back.
            for at in range(start, end, _PIECE_BYTES):
                piece = os.pread(self._raw.fileno(), min(_PIECE_BYTES, end - at), at)
                sha256.update(piece)
                crc = crc32(piece, crc)
        except OSError as exc:
            raise self._rolled_back(exc) from exc
        self._sha256, self._crc, self.size, self._torn = sha256, crc, end, False

    def rollback(self) -> None:
        """Remove the pieces since `begin`."""
        with contextlib.suppress(OSError):
            self._cut_back()

    def sync(self) -> None:
        """Return when everything appended before is on disk.

        If the disk fails, the file accepts no more data and must be abandoned.
        """
        if self._lost is not None:
            raise self._lost
        try:
            os.fdatasync(self._raw.fileno())
        except OSError as exc:
            # After a failed sync the kernel may drop the pages and report the next sync as a success: the disk's
            # content is unknown, so no later append may rely on it.
            self._lost = disk_error(exc, f"cannot sync {self.path.name}: {exc.strerror}; begin another file")
            raise self._lost from exc

    def seal(self, record_count: int) -> SealedFile:
        """Give the file its final name, on disk; the result is known without reading it again."""
        self._ready()
        target = self.sealed_path
        try:
            # Sync before renaming: after a power loss a sealed name must never have half a file.
            os.fsync(self._raw.fileno())
            reach("seal_synced")
            # rename() would silently replace an existing file.
            if target.exists():
                raise Conflict(f"{target} exists already; a sealed file is never overwritten")
            self.path.rename(target)
            sync_directory(target.parent)
        except OSError as exc:
            raise disk_error(exc, f"cannot seal {self.path.name}: {exc.strerror}") from exc
        self._raw.close()
        return SealedFile(
            path=target, size=self.size, sha256=self._sha256.hexdigest(), crc32=self._crc, record_count=record_count
        )

    def close(self) -> None:
        """Close the unsealed file; the process that adopts it repairs and seals it."""
        self._raw.close()

    def discard(self) -> None:
        self.path.unlink(missing_ok=True)
        self._raw.close()

    def _ready(self) -> None:
        if self._lost is not None:
            raise self._lost
        # Retry a failed rollback: there may be space now.
        if self._torn:
            try:
                self._cut_back()
            except OSError as exc:
                raise disk_error(exc, f"cannot take back a torn record of {self.path.name}: {exc.strerror}") from exc

    def _write(self, data: bytes) -> None:
        # An unbuffered write may stop short just before the disk is full (measured: 7,194 of 50,001 bytes).
        view = memoryview(data)
        while view:
            self._torn = True
            written = self._raw.write(view)
            if not written:
                raise OSError(errno.EIO, "nothing was written")
            view = view[written:]

    def _rolled_back(self, exc: OSError) -> Unavailable:
        self._torn = True
        self.rollback()
        return disk_error(exc, f"cannot write {self.path.name}: {exc.strerror}; make room, then try again")

    def _cut_back(self) -> None:
        self._raw.truncate(self.size)
        self._raw.seek(self.size)
        self._torn = False


def create(directory: Path, name: str, first: bytes) -> OutFile:
    """Return a new file that already has its first bytes and its owner's lock when its name appears.

    Raise Conflict if the name is in use; NoSpace or Unavailable on disk errors.
    """
    # Never create the directory: if it vanished, its storage did (a lost mount), and the archive would lose everything
    # written to the disk below.
    sealed = directory / f"{name}.warc.gz"
    path = directory / f"{name}.warc.gz{OPEN_SUFFIX}"
    fresh = directory / f".{name}.new"
    try:
        if sealed.exists() or path.exists():
            raise Conflict(f"{sealed.name} exists already in {directory}")
        raw = io.FileIO(fresh, "w+")
    except OSError as exc:
        raise disk_error(exc, f"cannot create {path}: {exc.strerror}") from exc
    try:
        # Lock before naming: a recovery that finds the name must find the lock, or it would adopt a new file.
        fcntl.flock(raw.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        out = OutFile(raw, path)
        out.append(first)
        fresh.rename(path)
        sync_directory(directory)
    except (OSError, Unavailable) as exc:
        raw.close()
        fresh.unlink(missing_ok=True)
        if isinstance(exc, Unavailable):
            raise
        raise disk_error(exc, f"cannot create {path}: {exc.strerror}") from exc
    return out
