"""Volumes: whether one has room for new work, takes a file, and is still the one that was mounted."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from holdfast.config import DiskSettings, Settings
from holdfast.db.raw import sqlite_path
from holdfast.errors import NoSpace

_PROBE = ".holdfast-probe"


def is_low(folder: Path, marks: DiskSettings) -> bool:
    """Return whether the volume under a folder has less room than we keep free."""
    # `f_bavail`, what this user may take; root has a reserve beyond it.
    disk = os.statvfs(folder)
    free = disk.f_bavail * disk.f_frsize
    return free < marks.free_bytes or free < disk.f_blocks * disk.f_frsize * marks.free_percent / 100


class CachedFile(NamedTuple):
    """Something in a cache on the disk."""

    asked_at: int
    """When it was last asked for, in nanoseconds."""
    path: Path
    size: int
    """What it takes on the disk, in bytes."""


def trim(stored: Iterable[CachedFile], most_bytes: int, *, keep: Path, remove: Callable[[Path], bool]) -> None:
    """Remove what was asked for longest ago until a cache has its size again; `keep` stays whatever it takes.

    `remove` says whether something is gone: what is being read may stay.
    """
    found = sorted(stored)
    total = sum(one.size for one in found)
    for one in found:
        if total <= most_bytes:
            return
        # The file asked for now stays whatever it takes: it is about to be read.
        if one.path != keep and remove(one.path):
            total -= one.size


def demand_room(folder: Path, marks: DiskSettings, *, for_bytes: int = 0) -> None:
    """Refuse, with NoSpace, to begin what would leave less room on the volume of a folder than we keep free."""
    disk = os.statvfs(folder)
    left = disk.f_bavail * disk.f_frsize - for_bytes
    if left < marks.free_bytes or left < disk.f_blocks * disk.f_frsize * marks.free_percent / 100:
        raise NoSpace(
            f"{folder} has {_megabytes(left + for_bytes)} free, of which this would take {_megabytes(for_bytes)}, and "
            f"{_megabytes(marks.free_bytes)} and {marks.free_percent:g} % are kept free: make room, or lower "
            "HOLDFAST_DISK_FREE_BYTES and HOLDFAST_DISK_FREE_PERCENT"
        )


def shortage(folder: Path, marks: DiskSettings) -> str:
    """Return in words why nothing is written below a folder: what is free, what is kept free, and what helps.

    Where more is free than we keep, the system itself has refused: a quota, or a limit on the size of files.
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
# Looks that a dead mount keeps from coming back, by data directory: one at a time, and nothing waits for them.
_hanging: dict[Path, threading.Thread] = {}


def low_volume(settings: Settings) -> Path | None:
    """Return the first volume that new work would be written to and that has too little room; None if all have.

    The database and the captures may lie on different ones, and so may the captures of a source. One that is away, or
    that does not answer, is not asked about room: what is to be written there says so itself.
    """
    found: list[Path] = []
    before = _hanging.get(settings.home)
    if before is not None and before.is_alive():
        return None
    # A mount whose server is gone blocks a look for ever, and a thread cannot be stopped: it is left behind.
    look = threading.Thread(target=lambda: found.extend(_low(settings)), name="volumes", daemon=True)
    look.start()
    look.join(_ANSWER_S)
    if look.is_alive():
        _hanging[settings.home] = look
    return found[0] if found else None


def _low(settings: Settings) -> list[Path]:
    stores = [settings.home / "warcs", *_mounts(settings.home / "warcs")]
    if settings.zimit.store_root is not None:
        stores.append(settings.zimit.store_root)
    # A database of its own place stops everything when its disk is full, and cannot say so in a row.
    database = sqlite_path(settings.database)
    if database is not None:
        stores.append(database.parent)
    return [folder for folder in _volumes([settings.home, *stores]) if is_low(folder, settings.disk)][:1]


def _mounts(store: Path) -> list[Path]:
    """Return the folders of sources that are volumes of their own."""
    try:
        # A folder of another device is a mount.
        own = store.stat().st_dev
        with os.scandir(store) as entries:
            found = [entry.path for entry in entries if entry.is_dir() and entry.stat().st_dev != own]
    except OSError:
        return []
    return sorted(map(Path, found))


def _volumes(folders: Iterable[Path]) -> list[Path]:
    """Return one folder of each volume, in this order; those that are not there are left out."""
    found: dict[int, Path] = {}
    for folder in folders:
        try:
            found.setdefault(folder.stat().st_dev, folder)
        except OSError:
            continue
    return list(found.values())


class MountIdentity:
    """The place that a run writes to, known by device and inode: a mount that vanished is never written through."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._known = folder, identity_of(folder)

    @property
    def is_same(self) -> bool:
        """Whether the folder is still the one that it was."""
        return self._known is not None and identity_of(self._folder) == self._known


def identity_of(path: Path) -> tuple[int, int] | None:
    """Return the device and the inode of a file or folder, None if it cannot be seen."""
    try:
        seen = path.stat()
    except OSError:
        return None
    return seen.st_dev, seen.st_ino


def storage_trouble(folder: Path) -> str | None:
    """Return what is wrong with the place that a run writes to, None if it takes a file."""
    probe = folder / _PROBE
    try:
        fd = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, b"holdfast")
            # Some file systems take a write and refuse it only when it is synced.
            os.fsync(fd)
        finally:
            os.close(fd)
        # Another worker may look at the same folder, and have removed it.
        probe.unlink(missing_ok=True)
    except OSError as exc:
        return f"{folder} cannot be written: {exc.strerror or exc}"
    return None
