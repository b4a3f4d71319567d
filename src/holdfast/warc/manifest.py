"""`manifest.json` beside the WARC files: the sealed files with their ids and digests.

A rebuild from files alone starts from it. Any number of processes write it: a change is one line at the end of
`manifest.journal`, on disk before the caller continues, and from time to time the lines are merged into the
list. Whenever a process dies, list and journal agree: a line may be read twice without harm.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from cachetools import LRUCache

from holdfast.errors import Conflict, Invalid
from holdfast.failpoints import reach
from holdfast.storage.disk import disk_error, locked, sync_directory, write_whole
from holdfast.warc.outfile import SealedFile

MANIFEST = "manifest.json"
JOURNAL = "manifest.journal"
_LOCK = ".manifest.lock"
_TYPE = "holdfast-warc-manifest"
_VERSION = 1
# The journal is merged into an existing list only beyond this many lines: each merge writes the whole list.
_FEW_LINES = 64
_TRIES = 100


class ManifestDamaged(Invalid):
    """A `manifest.json` that another program wrote, or that is damaged; `is_ours` distinguishes them."""

    code = "manifest_damaged"

    def __init__(self, path: Path, reason: str, *, is_ours: bool) -> None:
        super().__init__(f"{path} is no manifest of WARC files ({reason}); move it away, and it is rebuilt")
        self.is_ours = is_ours


class _Listed:
    def __init__(self, base: tuple[int, int, int] | None) -> None:
        self.base = base
        """Identity of `manifest.json`: inode, modification time, size. None if it is missing."""
        self.journal_bytes = self.lines = 0
        self.files: dict[int, SealedFile] = {}
        self.names: dict[str, int] = {}

    def put(self, file_id: int, sealed: SealedFile) -> None:
        self.drop(file_id)
        self.files[file_id] = sealed
        self.names[sealed.path.name] = file_id

    def drop(self, file_id: int) -> None:
        known = self.files.pop(file_id, None)
        if known is not None and self.names.get(known.path.name) == file_id:
            del self.names[known.path.name]


_known: LRUCache[Path, _Listed] = LRUCache(maxsize=16)
"""This process's cache of manifests, so that a sealed file costs its own line and not the whole list."""
_guard = threading.Lock()


def add_to_manifest(file_id: int, sealed: SealedFile) -> None:
    """Add a sealed file to its folder's manifest; an unchanged entry changes nothing, a repaired file replaces it.

    Raise Conflict if another file id has this name; NoSpace or Unavailable on disk errors.
    """
    directory, name = sealed.path.parent, sealed.path.name
    with _changing(directory) as listed:
        other = listed.names.get(name, file_id)
        if other != file_id:
            raise Conflict(f"{name} is in the manifest as file {other}, not {file_id}")
        # Without a list, a process died between the journal's first line and the list: write it now.
        if listed.files.get(file_id) != sealed or listed.base is None:
            listed.put(file_id, sealed)
            _append(directory, listed, {"add": _fields(file_id, sealed)})


def is_listed(names: Collection[str]) -> bool:
    """Return whether a folder with these names has a manifest; after a crash it may have only the journal."""
    return MANIFEST in names or JOURNAL in names


def remove_from_manifest(directory: Path, file_id: int) -> None:
    """Remove a file from the manifest; do nothing if it is not listed, or there is no manifest."""
    if not is_listed([one.name for one in directory.iterdir()] if directory.is_dir() else ()):
        return
    with _changing(directory) as listed:
        if file_id in listed.files:
            listed.drop(file_id)
            _append(directory, listed, {"remove": file_id})


def read_manifest(directory: Path) -> dict[int, SealedFile]:
    """Return the sealed files in a directory's manifest, in order of id; empty without a manifest.

    Raise ManifestDamaged if it is invalid, or another program's.
    """
    with _guard:
        return dict(sorted(_current(directory).files.items()))


@contextlib.contextmanager
def _changing(directory: Path) -> Iterator[_Listed]:
    """Yield the manifest, locked against changes by other processes."""
    with _guard:
        try:
            with locked(directory / _LOCK, 0o644):
                yield _current(directory)
        except OSError as exc:
            # The cached list may contain more than the disk now: make the next call read the disk.
            _known.pop(directory, None)
            raise disk_error(exc, f"cannot write {directory / MANIFEST}: {exc.strerror}") from exc
        except BaseException:
            _known.pop(directory, None)
            raise


def _current(directory: Path) -> _Listed:
    """Return the current manifest: the cached one with newer journal lines, or all of it read again."""
    # Readers do not lock: another process may merge list and journal between the two reads.
    for _ in range(_TRIES):
        base = _identity(directory / MANIFEST)
        listed = _known.get(directory)
        if listed is None or listed.base != base:
            listed = _Listed(base)
            for file_id, sealed in _base(directory / MANIFEST):
                listed.put(file_id, sealed)
        try:
            lines = _journal(directory / JOURNAL, listed.journal_bytes)
        except FileNotFoundError:
            lines = b""
        # Another process merged the journal: the lines just read may now be only in the new list.
        if _identity(directory / MANIFEST) == base:
            _apply(directory / JOURNAL, listed, lines)
            _known[directory] = listed
            return listed
        _known.pop(directory, None)
    raise ManifestDamaged(directory / MANIFEST, "it never stands still", is_ours=True)


def _identity(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise disk_error(exc, f"cannot read {path}: {exc.strerror}") from exc
    return found.st_ino, found.st_mtime_ns, found.st_size


def _base(path: Path) -> list[tuple[int, SealedFile]]:
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return []
    except OSError as exc:
        raise disk_error(exc, f"cannot read {path}: {exc.strerror}") from exc
    try:
        content = json.loads(raw)
        if content["type"] != _TYPE:
            raise ValueError("its type is another")
        return [_listed_file(path.parent, item) for item in content["files"]]
    except (ValueError, KeyError, TypeError, RecursionError) as exc:
        raise ManifestDamaged(path, repr(exc)[:100], is_ours=_TYPE.encode() in raw) from exc


def _journal(path: Path, start: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(start)
            # A line without its end was being written when its process died, and was never confirmed.
            return b"".join(file.read().rpartition(b"\n")[:2])
    except FileNotFoundError:
        raise
    except OSError as exc:
        raise disk_error(exc, f"cannot read {path}: {exc.strerror}") from exc


def _apply(path: Path, listed: _Listed, lines: bytes) -> None:
    for line in lines.splitlines():
        try:
            change = json.loads(line)
            if "add" in change:
                listed.put(*_listed_file(path.parent, change["add"]))
            else:
                listed.drop(int(change["remove"]))
        except (ValueError, KeyError, TypeError, RecursionError) as exc:
            _known.pop(path.parent, None)
            raise ManifestDamaged(path, repr(exc)[:100], is_ours=True) from exc
        listed.lines += 1
    listed.journal_bytes += len(lines)


def _append(directory: Path, listed: _Listed, change: dict[str, Any]) -> None:
    """Append a change that `listed` already contains; merge the journal into the list when it gets long."""
    _write_line(directory, listed, change)
    if listed.base is None or listed.lines > max(_FEW_LINES, len(listed.files) // 2):
        _write(directory, [_fields(file_id, sealed) for file_id, sealed in sorted(listed.files.items())])
        reach("manifest.united")
        # The lines contain nothing new, the last one included: after a crash they are read again in order and lead to
        # the list's state.
        (directory / JOURNAL).unlink(missing_ok=True)
        sync_directory(directory)
        listed.base, listed.journal_bytes, listed.lines = _identity(directory / MANIFEST), 0, 0


def _write_line(directory: Path, listed: _Listed, change: dict[str, Any]) -> None:
    path = directory / JOURNAL
    line = json.dumps(change).encode() + b"\n"
    is_new = not path.exists()
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        # Overwrite a dead process's partial line: its caller never got a confirmation.
        os.ftruncate(fd, listed.journal_bytes)
        os.lseek(fd, listed.journal_bytes, os.SEEK_SET)
        written = 0
        while written < len(line):
            written += os.write(fd, line[written:])
        os.fsync(fd)
    finally:
        os.close(fd)
    if is_new:
        sync_directory(directory)
    listed.journal_bytes += len(line)
    listed.lines += 1


def _fields(file_id: int, sealed: SealedFile) -> dict[str, Any]:
    """Return a file's entry: it has its name, not its path, so that a folder can be moved as a whole."""
    return {
        "file_id": file_id,
        "name": sealed.path.name,
        "size": sealed.size,
        "sha256": sealed.sha256,
        "crc32": sealed.crc32,
        "record_count": sealed.record_count,
    }


def _listed_file(directory: Path, item: Any) -> tuple[int, SealedFile]:
    name = str(item["name"])
    # A manifest may come from elsewhere: a name that leaves its folder would be opened and registered.
    if "/" in name or name in ("", ".", ".."):
        raise ValueError(f"{name[:80]!r} is no file name")
    sealed = SealedFile(
        path=directory / name,
        size=int(item["size"]),
        sha256=str(item["sha256"]),
        crc32=int(item["crc32"]),
        record_count=int(item["record_count"]),
    )
    return int(item["file_id"]), sealed


def _write(directory: Path, files: list[dict[str, Any]]) -> None:
    content = {"type": _TYPE, "version": _VERSION, "files": files}
    write_whole(directory / MANIFEST, json.dumps(content, indent=1).encode() + b"\n")
