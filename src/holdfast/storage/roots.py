"""Permitted locations of WARC files: below the data directory, or below a folder that an operator recorded there.

A row of the database has a file's path, and a database may be restored from elsewhere or tampered with: any
other location is rejected before the file is opened. The folders are listed in a file beside the database, not
in it.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from functools import lru_cache
from pathlib import Path

from holdfast.errors import Invalid, NotFound
from holdfast.storage.disk import disk_error, write_whole

ROOTS = "warc-roots.json"
_TYPE = "holdfast-warc-roots"
_CAPTURES = "warcs"
_NAME = re.compile(r"\.w?arc(?:\.gz|\.zst)?(?:\.open)?$", re.IGNORECASE)


class StrayFile(NotFound):
    """A row has a path for a WARC file that is not permitted."""

    code = "stray_file"

    def __init__(self, stored: str) -> None:
        super().__init__(
            f"{stored[:300]!r} is no place for a WARC file of this archive: restore its row, or if it is right, record "
            "its folder with: holdfast import --in-place FILE --source CODE"
        )


def link_captures(home: Path, root: Path) -> None:
    """Make the folder of captures a link to `root`, created if missing; raise Invalid if captures are elsewhere."""
    place, root = home / _CAPTURES, root.resolve()
    # An unmounted target leaves a dangling link, which is valid: the sentinel file decides (`open_store`).
    if place.resolve() == root:
        return
    if place.exists():
        raise Invalid(
            f"HOLDFAST_WARC_ROOT is {root}, but captures lie in {place.resolve()}; stop every process, move them to "
            f"{root}, and remove {place}"
        )
    try:
        root.mkdir(parents=True, exist_ok=True)
        place.symlink_to(root)
    except FileExistsError:
        # Another process created the link at the same time.
        return
    except OSError as exc:
        raise Invalid(f"HOLDFAST_WARC_ROOT: cannot use {root}: {exc.strerror}; choose another folder") from exc


def locate(home: Path, stored: str) -> Path:
    """Return the path for a row's name; raise StrayFile if it is not permitted. The file need not exist."""
    path, top = Path(stored), home.resolve()
    # Otherwise a row could make replay serve any file that this user can read.
    if ".." in path.parts or "\0" in stored or not _NAME.search(path.name):
        raise StrayFile(stored)
    # Resolve links first: one below the data directory or a recorded folder may point elsewhere. The folder of captures
    # itself may be a link: operators move it to a larger disk that way.
    real = (top / path).resolve()
    if any(real.is_relative_to(root) for root in (top, (top / _CAPTURES).resolve(), *recorded_roots(home))):
        return real
    raise StrayFile(stored)


def relative(home: Path, path: Path) -> str:
    """Return the name that a row stores for a file: relative to the data directory, so that it may be moved."""
    home, path = home.resolve(), path.resolve()
    return str(path.relative_to(home)) if path.is_relative_to(home) else str(path)


def placed(home: Path, stored: str | None) -> Path | None:
    """Return the path for a row's name if the file exists and is readable.

    Return None without a row, if the file is gone, or if the path is not permitted.
    """
    try:
        path = None if stored is None else locate(home, stored)
        return path if path is not None and path.is_file() else None
    except (StrayFile, OSError):
        return None


def may_lie_at(path: Path) -> bool:
    """Return whether this is a valid name of a WARC file; a row cannot store paths that are not UTF-8."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return _NAME.search(path.name) is not None


def recorded_roots(home: Path) -> tuple[Path, ...]:
    """Return the recorded folders outside the data directory; empty if the list is missing or invalid."""
    path = home / ROOTS
    try:
        found = path.stat()
    except OSError:
        return ()
    try:
        # Called for every replayed page: read the list again only when the file has changed.
        return _read(path, found.st_mtime_ns, found.st_size)
    except OSError:
        return ()


@lru_cache(maxsize=8)
def _read(path: Path, _written: int, _size: int) -> tuple[Path, ...]:
    """Return the list, cached per file version; raise OSError, which is not cached, if it is unreadable now."""
    data = path.read_bytes()
    try:
        content = json.loads(data)
        listed = content["roots"] if content["type"] == _TYPE else []
        return tuple(Path(one) for one in listed if isinstance(one, str) and Path(one).is_absolute())
    except (ValueError, KeyError, TypeError, RecursionError):
        return ()


def record_root(home: Path, folder: Path) -> None:
    """Permit WARC files in this folder; do nothing if they are permitted already.

    Raise NoSpace or Unavailable if the list cannot be written.
    """
    folder = folder.resolve()
    if folder.is_relative_to(home.resolve()) or any(folder.is_relative_to(root) for root in recorded_roots(home)):
        return
    try:
        _add(home / ROOTS, folder)
    except OSError as exc:
        raise disk_error(exc, f"cannot write {home / ROOTS}: {exc.strerror}") from exc


def _add(path: Path, folder: Path) -> None:
    lock = os.open(path.with_name(f".{ROOTS}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Read it without the cache: an unreadable list must not be overwritten as if it were empty.
        known = _read.__wrapped__(path, 0, 0) if path.exists() else ()
        kept = [str(root) for root in known if not root.is_relative_to(folder)]
        write_whole(path, json.dumps({"type": _TYPE, "roots": sorted({*kept, str(folder)})}, indent=1).encode())
    finally:
        os.close(lock)
