"""Permitted locations of WARC files: below the data directory, or below a folder that an operator recorded there.

A row of the database has a file's store and key, and a database may be restored from elsewhere or tampered with:
any other location is rejected before the file is opened. The folders are listed in a file beside the database,
not in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache, partial
from pathlib import Path

from holdfast.errors import Invalid, NotFound, Unavailable
from holdfast.storage.disk import disk_error, locked, write_whole
from holdfast.storage.folder import FolderStore
from holdfast.storage.store import FileKey, StoredFile, captures_folder

ROOTS = "warc-roots.json"
_TYPE = "holdfast-warc-roots"
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
    place, root = captures_folder(home), root.resolve()
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


def stored_file(home: Path, key: FileKey) -> StoredFile:
    """Return a WARC file by its row; raise StrayFile if its place is not permitted. The file need not exist.

    Links are resolved, and their targets checked, whenever the file is opened or looked at.
    """
    # Otherwise a row could make replay serve any file that this user can read.
    is_strange = ".." in str(key).split("/") or "\0" in str(key) or not _NAME.search(key.name)
    if is_strange or not (key.location is None or key.location.startswith("/")):
        raise StrayFile(str(key))
    return StoredFile(_store(home, key.location), key)


def local_path(home: Path, key: FileKey) -> Path:
    """Return the path of a WARC file for work that only a local disk allows; raise StrayFile if it is not permitted."""
    path = stored_file(home, key).local_path()
    if path is None:
        raise NotFound(f"{key} is not on a local disk")
    return path


def full_path(home: Path, key: FileKey) -> Path:
    """Return the path of a WARC file to be shown; it may lead anywhere, and is never opened."""
    return home.resolve() / str(key)


def find_file(home: Path, key: FileKey | None) -> StoredFile | None:
    """Return a WARC file by its row if it exists; None without a row, or if its place is not permitted."""
    try:
        if key is None:
            return None
        file = stored_file(home, key)
        file.size()
        return file
    except (NotFound, Unavailable, OSError):
        return None


def key_of(home: Path, path: Path) -> FileKey:
    """Return what a row stores for a file: below the data directory its key there, so that it may be moved.

    Each folder elsewhere is a store of its own, so that a file has one key, whichever folders are recorded.
    """
    return plain_key(home.resolve(), path.resolve())


def plain_key(home: Path, path: Path) -> FileKey:
    """Return the key of a file whose links are resolved already."""
    if path.is_relative_to(home):
        return FileKey(path.relative_to(home).as_posix())
    return FileKey(path.name, str(path.parent))


def _store(home: Path, location: str | None) -> FolderStore:
    return FolderStore(
        home.resolve() if location is None else Path(location),
        partial(_permitted, home),
        lambda key: StrayFile(str(FileKey(key, location))),
    )


def _permitted(home: Path) -> Iterator[Path]:
    top = home.resolve()
    yield top
    # The folder of captures itself may be a link: operators move it to a larger disk that way.
    yield captures_folder(top).resolve()
    yield from recorded_roots(home)


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
    with locked(path.with_name(f".{ROOTS}.lock")):
        # Read it without the cache: an unreadable list must not be overwritten as if it were empty.
        known = _read.__wrapped__(path, 0, 0) if path.exists() else ()
        kept = [str(root) for root in known if not root.is_relative_to(folder)]
        write_whole(path, json.dumps({"type": _TYPE, "roots": sorted({*kept, str(folder)})}, indent=1).encode())
