"""Where WARC files may lie: below the data directory, or below a folder that an operator recorded there.

A row of the database says where a file is, and a database may be restored from elsewhere or tampered with: a row that
names any other place is refused before it is opened. The folders stand in a file beside the database, not in it.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from functools import lru_cache
from pathlib import Path

from holdfast.errors import Invalid, NotFound
from holdfast.warc.outfile import disk_error, sync_directory

ROOTS = "warc-roots.json"
_TYPE = "holdfast-warc-roots"
_CAPTURES = "warcs"
_NAME = re.compile(r"\.w?arc(?:\.gz|\.zst)?(?:\.open)?$", re.IGNORECASE)


class StrayFile(NotFound):
    """A row names a place for a WARC file where none may lie."""

    code = "stray_file"

    def __init__(self, stored: str) -> None:
        super().__init__(
            f"{stored[:300]!r} is no place for a WARC file of this archive: restore its row, or if it is right, record "
            "its folder with: holdfast import --in-place FILE --source CODE"
        )


def link_captures(home: Path, root: Path) -> None:
    """Let the folder of captures be a link to `root`, made if it is missing; Invalid if captures lie elsewhere."""
    place, root = home / _CAPTURES, root.resolve()
    # A mount that is away leaves a dangling link, which is right all the same: its sentinel tells (`open_store`).
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
        # Another process made the link at the same moment.
        return
    except OSError as exc:
        raise Invalid(f"HOLDFAST_WARC_ROOT: cannot use {root}: {exc.strerror}; choose another folder") from exc


def locate(home: Path, stored: str) -> Path:
    """Return where the file lies that a row names so; StrayFile if no file of ours may lie there. It need not exist."""
    path, top = Path(stored), home.resolve()
    # A row could otherwise have replay serve any file that this user can read.
    if ".." in path.parts or "\0" in stored or not _NAME.search(path.name):
        raise StrayFile(stored)
    # Links are followed first: below the data directory or a recorded folder may stand one that leads elsewhere. The
    # folder of captures itself may be such a link: operators move it to a larger disk that way.
    real = (top / path).resolve()
    if any(real.is_relative_to(root) for root in (top, (top / _CAPTURES).resolve(), *recorded_roots(home))):
        return real
    raise StrayFile(stored)


def relative(home: Path, path: Path) -> str:
    """Return the name that a row stores for a file: below the data directory without it, so that it may be moved."""
    home, path = home.resolve(), path.resolve()
    return str(path.relative_to(home)) if path.is_relative_to(home) else str(path)


def placed(home: Path, stored: str | None) -> Path | None:
    """Return where the file lies that a row names so, if it is there to be read.

    None if there is no row, if the file is gone, or if the row names a place where no file of ours may lie.
    """
    try:
        path = None if stored is None else locate(home, stored)
        return path if path is not None and path.is_file() else None
    except (StrayFile, OSError):
        return None


def may_lie_at(path: Path) -> bool:
    """Return whether a file of this name is taken for a WARC file at all; a row keeps no path that is not UTF-8."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return _NAME.search(path.name) is not None


def recorded_roots(home: Path) -> tuple[Path, ...]:
    """Return the folders outside the data directory that were recorded; none if the list is not there or broken."""
    path = home / ROOTS
    try:
        found = path.stat()
    except OSError:
        return ()
    try:
        # Asked for every replayed page: the list is read again only when the file is another.
        return _read(path, found.st_mtime_ns, found.st_size)
    except OSError:
        return ()


@lru_cache(maxsize=8)
def _read(path: Path, _written: int, _size: int) -> tuple[Path, ...]:
    """Return the list as it was written then; OSError, which is not remembered, if it cannot be read at this moment."""
    data = path.read_bytes()
    try:
        content = json.loads(data)
        listed = content["roots"] if content["type"] == _TYPE else []
        return tuple(Path(one) for one in listed if isinstance(one, str) and Path(one).is_absolute())
    except (ValueError, KeyError, TypeError, RecursionError):
        return ()


def record_root(home: Path, folder: Path) -> None:
    """Let WARC files lie in this folder, too; nothing happens if they may already.

    NoSpace or Unavailable if the list cannot be written.
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
        # Read anew: a list that cannot be read at this moment must not be written over as if it were empty.
        known = _read.__wrapped__(path, 0, 0) if path.exists() else ()
        kept = [str(root) for root in known if not root.is_relative_to(folder)]
        fresh = path.with_name(f".{ROOTS}.new")
        with fresh.open("w") as file:
            json.dump({"type": _TYPE, "roots": sorted({*kept, str(folder)})}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
        sync_directory(path.parent)
    finally:
        os.close(lock)
