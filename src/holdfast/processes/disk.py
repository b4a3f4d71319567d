"""Volumes: whether one has enough free space, is writable, and is still the one that was mounted."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from holdfast.config import DiskSettings, Settings
from holdfast.db.raw import sqlite_path
from holdfast.errors import NoSpace
from holdfast.storage.store import captures_folder

_PROBE = ".holdfast-probe"


def is_low(folder: Path, marks: DiskSettings) -> bool:
    # `f_bavail` is the space for this user; root has a reserve beyond it.
    disk = os.statvfs(folder)
    free = disk.f_bavail * disk.f_frsize
    return free < marks.free_bytes or free < disk.f_blocks * disk.f_frsize * marks.free_percent / 100


class CachedFile(NamedTuple):
    asked_at: int
    """Time of the last request for it, in nanoseconds."""
    path: Path
    size: int
    """Bytes used on disk."""


def trim(stored: Iterable[CachedFile], most_bytes: int, *, keep: Path, remove: Callable[[Path], bool]) -> None:
    """Remove the least recently requested files until a cache fits its size; `keep` always stays.

    `remove` returns whether a file was deleted: one that is being read may stay.
    """
    found = sorted(stored)
    total = sum(one.size for one in found)
    for one in found:
        if total <= most_bytes:
            return
        # Never remove the requested file: it is about to be read.
        if one.path != keep and remove(one.path):
            total -= one.size


def demand_room(folder: Path, marks: DiskSettings, *, for_bytes: int = 0) -> None:
    """Raise `NoSpace` if work of `for_bytes` would reduce the volume's free space below the configured minimum."""
    disk = os.statvfs(folder)
    left = disk.f_bavail * disk.f_frsize - for_bytes
    if left < marks.free_bytes or left < disk.f_blocks * disk.f_frsize * marks.free_percent / 100:
        raise NoSpace(
            f"{folder} has {_megabytes(left + for_bytes)} free, of which this would take {_megabytes(for_bytes)}, and "
            f"{_megabytes(marks.free_bytes)} and {marks.free_percent:g} % are kept free: make room, or lower "
            "HOLDFAST_DISK_FREE_BYTES and HOLDFAST_DISK_FREE_PERCENT"
        )


def shortage(folder: Path, marks: DiskSettings) -> str:
    """Return a message why nothing is written below a folder: free space, required minimum, and how to fix it.

    If more than the minimum is free, the system itself refused the write: a quota, or a file size limit.
    """
    try:
        disk = os.statvfs(folder)
    except OSError as exc:
        return f"{folder} cannot be looked at: {exc.strerror or exc}; is its storage mounted?"
    free, whole = disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize
    share = f" ({100 * free / whole:.1f} %)" if whole else ""
    if not is_low(folder, marks):
        return (
            f"the disk takes no more below {folder}, though {_megabytes(free)}{share} are free: lift the quota or the"
            " limit on the size of files, and it goes on by itself"
        )
    return (
        f"{folder} has {_megabytes(free)}{share} free, and {_megabytes(marks.free_bytes)} and {marks.free_percent:g} %"
        " are kept free: make room, and it goes on by itself, or lower HOLDFAST_DISK_FREE_BYTES and"
        " HOLDFAST_DISK_FREE_PERCENT"
    )


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"


_ANSWER_S = 2.0
# Checks that a dead mount blocks, by data directory: at most one each, and nothing waits for them.
_hanging: dict[Path, threading.Thread] = {}


def low_volume(settings: Settings) -> Path | None:
    """Return the first volume for new work with too little free space; None if all have enough.

    The database and the captures may be on different volumes, and so may the captures of a source. Missing or
    unresponsive volumes are skipped: writing to them reports its own error.
    """
    found: list[Path] = []
    before = _hanging.get(settings.home)
    if before is not None and before.is_alive():
        return None
    # A dead mount blocks a check forever, and a thread cannot be stopped: abandon it.
    look = threading.Thread(target=lambda: found.extend(_low(settings)), name="volumes", daemon=True)
    look.start()
    look.join(_ANSWER_S)
    if look.is_alive():
        _hanging[settings.home] = look
    return found[0] if found else None


def _low(settings: Settings) -> list[Path]:
    captures = captures_folder(settings.home)
    stores = [captures, *_mounts(captures)]
    if settings.zimit.store_root is not None:
        stores.append(settings.zimit.store_root)
    # A database on its own disk stops everything when that is full, and cannot record this in a row.
    database = sqlite_path(settings.database)
    if database is not None:
        stores.append(database.parent)
    return [folder for folder in _volumes([settings.home, *stores]) if is_low(folder, settings.disk)][:1]


def _mounts(store: Path) -> list[Path]:
    try:
        # A folder on another device is a mount.
        own = store.stat().st_dev
        with os.scandir(store) as entries:
            found = [entry.path for entry in entries if entry.is_dir() and entry.stat().st_dev != own]
    except OSError:
        return []
    return sorted(map(Path, found))


def _volumes(folders: Iterable[Path]) -> list[Path]:
    found: dict[int, Path] = {}
    for folder in folders:
        try:
            found.setdefault(folder.stat().st_dev, folder)
        except OSError:
            continue
    return list(found.values())


class MountIdentity:
    """The folder a run writes to, identified by device and inode, so that a vanished mount is never written to."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._known = folder, identity_of(folder)

    @property
    def is_same(self) -> bool:
        return self._known is not None and identity_of(self._folder) == self._known


def identity_of(path: Path) -> tuple[int, int] | None:
    try:
        seen = path.stat()
    except OSError:
        return None
    return seen.st_dev, seen.st_ino


def storage_trouble(folder: Path) -> str | None:
    """Return why a run's folder is not writable; None if it is."""
    probe = folder / _PROBE
    try:
        fd = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, b"holdfast")
            # Some file systems accept a write and fail only when it is synced.
            os.fsync(fd)
        finally:
            os.close(fd)
        # Another worker may check the same folder and have removed the file.
        probe.unlink(missing_ok=True)
    except OSError as exc:
        return f"{folder} cannot be written: {exc.strerror or exc}"
    return None
