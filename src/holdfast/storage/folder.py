"""Blobs in a folder of a local disk, and the opening of local files that belong to no store."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from uuid import uuid4

from holdfast.errors import Conflict, NotFound, Unavailable
from holdfast.storage.disk import disk_error, sync_directory, synced
from holdfast.storage.store import BlobReader, StoredFile
from holdfast.values import dataclass

AnyFile = StoredFile | Path
"""A file of a store, or a local one that belongs to none."""


class LocalFile:
    """An open local file."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.size = os.fstat(fd).st_size

    def read(self, offset: int, count: int) -> bytes:
        # Read up to the size when opened: a crawl may append to an open file meanwhile.
        count = min(count, self.size - offset)
        if count <= 0:
            return b""
        try:
            return os.pread(self._fd, count, offset)
        except OSError as exc:
            raise Unavailable(f"cannot read at {offset}: {exc.strerror}; check the disk") from exc

    def close(self) -> None:
        os.close(self._fd)


def open_file(file: AnyFile) -> BlobReader:
    """Open a file for reading; raise NotFound or Unavailable."""
    return file.open() if isinstance(file, StoredFile) else open_local(file)


def open_local(path: Path) -> LocalFile:
    try:
        # A container can write to the folder of its run: opening a named pipe would wait for its writer forever.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError as exc:
        raise NotFound(f"there is no file {path}") from exc
    except OSError as exc:
        raise Unavailable(f"cannot open {path}: {exc.strerror}") from exc
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise NotFound(f"{path} is no file")
    return LocalFile(fd)


@dataclass(frozen=True, slots=True)
class FolderStore:
    """A folder of a local disk. A key that leads elsewhere, also by a link, is refused before the file is opened."""

    root: Path
    permitted: Callable[[], Iterable[Path]]
    """Yields the folders, without links, that files may be in; called for every access."""
    refused: Callable[[str], NotFound]
    """Makes the error for a key that leads elsewhere."""

    def local_path(self, key: str) -> Path:
        if key.startswith("/") or ".." in key.split("/") or "\0" in key:
            raise self.refused(key)
        # Resolve links first: one below the root may point elsewhere.
        try:
            real = (self.root / key).resolve()
        except RuntimeError as exc:  # links that form a circle
            raise self.refused(key) from exc
        if any(real.is_relative_to(folder) for folder in self.permitted()):
            return real
        raise self.refused(key)

    def open(self, key: str) -> LocalFile:
        return open_local(self.local_path(key))

    def size(self, key: str) -> int:
        path = self.local_path(key)
        try:
            seen = path.stat()
        except FileNotFoundError as exc:
            raise NotFound(f"there is no file {path}") from exc
        except OSError as exc:
            raise Unavailable(f"cannot look at {path}: {exc.strerror}") from exc
        if not stat.S_ISREG(seen.st_mode):
            raise NotFound(f"{path} is no file")
        return seen.st_size

    def list(self, prefix: str = "") -> Iterator[tuple[str, int]]:
        # Follow no link except the start: operators move captures to a larger disk by linking their folder there.
        for parent, folders, names in os.walk(self.root / prefix, followlinks=False):
            folders.sort()
            for name in sorted(names):
                path = Path(parent, name)
                if path.is_file():
                    yield path.relative_to(self.root).as_posix(), path.stat().st_size

    def put(self, key: str, pieces: Iterable[bytes]) -> None:
        target = self.local_path(key)
        # Never create the folder: if it vanished, its storage did (a lost mount).
        fresh = target.with_name(f".{uuid4().hex}.new")
        try:
            with synced(fresh, "xb") as file:
                file.writelines(pieces)
            give_name(fresh, target)
        except OSError as exc:
            raise disk_error(exc, f"cannot write {target}: {exc.strerror}") from exc
        finally:
            fresh.unlink(missing_ok=True)

    def delete(self, key: str) -> None:
        self.local_path(key).unlink(missing_ok=True)


def link_or_copy(source: Path, target: Path, *, may_copy: bool) -> bool:
    """Give a complete file a second name; return False if it had to be copied, which takes the space twice.

    Raise Conflict if the name is taken; OSError, also if the disk has no hard links and `may_copy` is not set.
    """
    try:
        os.link(source, target, follow_symlinks=True)
    except FileExistsError as exc:
        raise Conflict(f"{target} exists already") from exc
    except OSError as exc:
        # Another file system, or one without hard links.
        if exc.errno not in (errno.EXDEV, errno.EPERM, errno.EMLINK) or not may_copy:
            raise
        # Under another name until it is whole: a reader never sees half a file.
        fresh = target.with_name(f".{target.name}.new")
        with source.open("rb") as reading, synced(fresh) as writing:
            shutil.copyfileobj(reading, writing, 1 << 20)
        give_name(fresh, target)
        return False
    return True


def give_name(fresh: Path, target: Path) -> None:
    """Rename a complete, synced file and sync its folder; raise Conflict if the name is taken."""
    try:
        # Another process may take the name at the same time: a link then fails, a rename would overwrite the file.
        os.link(fresh, target, follow_symlinks=False)
    except FileExistsError as exc:
        raise Conflict(f"{target} exists already") from exc
    except OSError:
        if target.exists():
            raise Conflict(f"{target} exists already") from None
        fresh.rename(target)  # no hard links on this disk
    else:
        fresh.unlink()
    sync_directory(target.parent)
