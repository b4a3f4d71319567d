"""`manifest.json` beside the WARC files: which sealed files there are, with their ids and digests.

It is what a rebuild from files alone starts from. It is written whole or not at all, by any number of processes.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from holdfast.errors import Conflict, Invalid
from holdfast.warc.outfile import SealedFile, disk_error, sync_directory

MANIFEST = "manifest.json"
_LOCK = ".manifest.lock"
_TYPE = "holdfast-warc-manifest"
_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestEntry:
    """One sealed file."""

    file_id: int
    name: str
    size: int
    sha256: str
    crc32: int
    record_count: int

    @classmethod
    def of(cls, file_id: int, sealed: SealedFile) -> Self:
        """Return the entry of a file that was just sealed."""
        return cls(
            file_id=file_id, name=sealed.path.name, size=sealed.size, sha256=sealed.sha256, crc32=sealed.crc32,
            record_count=sealed.record_count,
        )  # fmt: skip


class ManifestDamaged(Invalid):
    """A `manifest.json` that is not one of ours, or no longer; `is_ours` tells which."""

    code = "manifest_damaged"

    def __init__(self, path: Path, reason: str, *, is_ours: bool) -> None:
        super().__init__(f"{path} is no manifest of WARC files ({reason}); move it away, and it is made anew")
        self.is_ours = is_ours


def add_to_manifest(directory: Path, entry: ManifestEntry) -> None:
    """Note a sealed file; the same again changes nothing, and a repaired file's entry replaces the old one.

    Conflict if another file id has this name; NoSpace or Unavailable if the disk says so.
    """

    def add(entries: dict[int, ManifestEntry]) -> None:
        other = next((known for known in entries.values() if known.name == entry.name), None)
        if other is not None and other.file_id != entry.file_id:
            raise Conflict(f"{entry.name} is in the manifest as file {other.file_id}, not {entry.file_id}")
        entries[entry.file_id] = entry

    _change(directory, add)


def remove_from_manifest(directory: Path, file_id: int) -> None:
    """Strike a file off; nothing happens if it is not there, nor if there is no manifest."""
    if (directory / MANIFEST).exists():
        _change(directory, lambda entries: entries.pop(file_id, None))


def read_manifest(directory: Path) -> tuple[ManifestEntry, ...]:
    """Return the sealed files that a directory's manifest lists, by id; none if there is no manifest.

    ManifestDamaged if there is one that makes no sense, or one that somebody else put there.
    """
    path = directory / MANIFEST
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return ()
    except OSError as exc:
        raise disk_error(exc, f"cannot read {path}: {exc.strerror}") from exc
    try:
        content = json.loads(raw)
        if content["type"] != _TYPE:
            raise ValueError("its type is another")
        return tuple(_entry(item) for item in content["files"])
    except (ValueError, KeyError, TypeError, RecursionError) as exc:
        raise ManifestDamaged(path, repr(exc)[:100], is_ours=_TYPE.encode() in raw) from exc


def _change(directory: Path, change: Callable[[dict[int, ManifestEntry]], object]) -> None:
    try:
        with _locked(directory):
            before = {known.file_id: known for known in read_manifest(directory)}
            after = dict(before)
            change(after)
            if after != before:
                _write(directory, [after[file_id] for file_id in sorted(after)])
    except OSError as exc:
        raise disk_error(exc, f"cannot write {directory / MANIFEST}: {exc.strerror}") from exc


def _entry(item: Any) -> ManifestEntry:
    entry = ManifestEntry(
        file_id=int(item["file_id"]), name=str(item["name"]), size=int(item["size"]), sha256=str(item["sha256"]),
        crc32=int(item["crc32"]), record_count=int(item["record_count"]),
    )  # fmt: skip
    if "/" in entry.name or entry.name in ("", ".", ".."):
        raise ValueError(f"{entry.name[:80]!r} is no file name")
    return entry


def _write(directory: Path, entries: list[ManifestEntry]) -> None:
    content = {"type": _TYPE, "version": _VERSION, "files": [asdict(entry) for entry in entries]}
    fresh = directory / f".{MANIFEST}.new"
    with fresh.open("w") as file:
        json.dump(content, file, indent=1)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(directory / MANIFEST)
    sync_directory(directory)


@contextlib.contextmanager
def _locked(directory: Path) -> Iterator[None]:
    fd = os.open(directory / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
