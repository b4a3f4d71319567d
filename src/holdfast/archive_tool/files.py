"""Small files written whole or not at all, and the identity of the directory that they stand in."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from holdfast.archive_tool.refusals import StoreMissing
from holdfast.warc.outfile import sync_directory

SENTINEL = ".holdfast-store"
"""A file of this name in the root of mounted storage tells it from the empty directory below the mount."""


def write_whole(path: Path, data: bytes, *, mtime: float | None = None) -> None:
    """Put a file in place with its bytes on disk first; a reader sees the old one or the new one."""
    fresh = path.with_name(f"{path.name}.new")
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    with os.fdopen(fd, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    if mtime is not None:
        os.utime(fresh, (mtime, mtime))
    fresh.replace(path)
    sync_directory(path.parent)


class Place(NamedTuple):
    """An output directory, known by more than its name: a mount that goes away leaves another directory behind."""

    path: Path
    device: int
    inode: int

    def check(self) -> None:
        """StoreMissing if the directory is no longer the one that this run began with, or takes no writes."""
        self.check_identity()
        probe = self.path / ".archive_tool.probe"
        try:
            probe.write_bytes(b"")
            probe.unlink()
        except OSError as exc:
            raise StoreMissing(self.path, f"not writable, errno {exc.errno}: {exc.strerror}") from exc

    def check_identity(self) -> None:
        """StoreMissing if the directory is no longer the one that this run began with."""
        try:
            now = self.path.stat()
        except OSError as exc:
            raise StoreMissing(self.path, f"errno {exc.errno}: {exc.strerror}") from exc
        if (now.st_dev, now.st_ino) != (self.device, self.inode):
            raise StoreMissing(self.path, "another directory stands in its place")


def open_place(output_dir: Path, store_root: Path | None) -> Place:
    """Return the output directory, made if it is missing; StoreMissing rather than a directory in a wrong place.

    With a store root, its sentinel must be there, and directories are made below it; without one, the parent must be.
    """
    try:
        if store_root is not None:
            if not (store_root / SENTINEL).is_file():
                raise StoreMissing(store_root, f"there is no {SENTINEL} in it")
            if not output_dir.is_relative_to(store_root):
                raise StoreMissing(output_dir, f"it does not lie below {store_root}")
            output_dir.mkdir(parents=True, exist_ok=True)
        else:
            output_dir.mkdir(exist_ok=True)
        found = output_dir.stat()
    except OSError as exc:
        raise StoreMissing(output_dir, f"errno {exc.errno}: {exc.strerror}") from exc
    place = Place(output_dir, found.st_dev, found.st_ino)
    place.check()
    return place


def store_is_present(store_root: Path) -> bool:
    """Return whether mounted storage is really there: its sentinel can be read."""
    try:
        return (store_root / SENTINEL).is_file()
    except OSError:
        return False
