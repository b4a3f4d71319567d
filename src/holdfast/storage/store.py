"""What every storage offers for sealed files and other blobs. None needs a local path, a rename or a hard link.

A key is a relative POSIX path below its store. A blob is never overwritten: it is put once, read and deleted.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple, Protocol

_PIECE_BYTES = 1 << 20


def captures_folder(home: Path) -> Path:
    """Return the folder of all captures, which may be a link to a larger disk."""
    return home / "warcs"


# Names that runs give to their folders below the captures of a source: the time, and what makes them unique.
_RUN = re.compile(r"\d{8}T\d{6}Z__.")


def run_folder(home: Path, stored: str) -> Path:
    """Return the folder of a run by its row: the one of that name in this data directory, else the stored one.

    The data directory may have been moved, or be a copy: nothing may be written where it was before.
    """
    path = Path(stored)
    ours = captures_folder(home) / path.parent.name / path.name
    return ours.resolve() if _RUN.match(path.name) and ours.is_dir() else path


class FileKey(NamedTuple):
    """Where a blob is, as its row says: its key, and the location of the store; None for the data directory."""

    key: str
    location: str | None = None

    def __str__(self) -> str:
        """Return the path that users see: relative to the data directory if it is below it."""
        return self.key if self.location is None else f"{self.location}/{self.key}"

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    def with_suffix(self, suffix: str) -> FileKey:
        return FileKey(self.key + suffix, self.location)

    def is_below(self, folder: FileKey) -> bool:
        return PurePosixPath(str(self)).is_relative_to(str(folder))


def store_name(location: str) -> str:
    """Return the name for a new store at a location: the same for all processes."""
    return f"folder-{hashlib.sha256(location.encode()).hexdigest()[:16]}"


class BlobReader(Protocol):
    """An open blob, for random reading up to its size when it was opened."""

    @property
    def size(self) -> int: ...

    def read(self, offset: int, count: int) -> bytes:
        """Return the bytes from `offset`, fewer at the end; raise Unavailable if the storage fails."""
        ...

    def close(self) -> None: ...


class Store(Protocol):
    """Blobs below one location. Every method raises NotFound for a missing blob, Unavailable if the storage fails."""

    def open(self, key: str) -> BlobReader: ...

    def size(self, key: str) -> int: ...

    def list(self, prefix: str = "") -> Iterator[tuple[str, int]]:
        """Yield (key, size) of the blobs in a folder and its subfolders, or of all, sorted by folder."""
        ...

    def put(self, key: str, pieces: Iterable[bytes]) -> None:
        """Store a blob, complete and lasting once this returns; raise Conflict if the key is taken, NoSpace."""
        ...

    def delete(self, key: str) -> None:
        """Delete a blob; do nothing if it is missing."""
        ...

    def local_path(self, key: str) -> Path | None:
        """Return the path of a blob, which need not exist; None if this store has no local files."""
        ...


class StoredFile(NamedTuple):
    """One blob of a store, to be opened when it is read. It need not exist."""

    store: Store
    file_key: FileKey

    @property
    def name(self) -> str:
        return self.file_key.name

    def with_suffix(self, suffix: str) -> StoredFile:
        return StoredFile(self.store, self.file_key.with_suffix(suffix))

    def open(self) -> BlobReader:
        return self.store.open(self.file_key.key)

    def size(self) -> int:
        return self.store.size(self.file_key.key)

    def local_path(self) -> Path | None:
        return self.store.local_path(self.file_key.key)

    def sha256(self) -> str:
        """Read the whole blob; return its digest in hexadecimal."""
        hasher, reader, at = hashlib.sha256(), self.open(), 0
        try:
            while piece := reader.read(at, _PIECE_BYTES):
                hasher.update(piece)
                at += len(piece)
        finally:
            reader.close()
        return hasher.hexdigest()
