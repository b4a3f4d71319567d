"""Consolidation: hard-link WARC files to stable names in `warcs/` before deleting anything temporary.

Idempotent. A name in use by other bytes is never overwritten.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import asdict, fields
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.clock import Clock
from holdfast.errors import Conflict, Unavailable
from holdfast.storage.disk import disk_error, sha256_of_file, sync_directory, write_whole
from holdfast.storage.folder import link_or_copy
from holdfast.values import dataclass
from holdfast.zimit.errors import StableNameTaken
from holdfast.zimit.output_directory import temp_dirs_in

MANIFEST = "manifest.json"
WARCS = "warcs"
_VERSION = 1
_MAX_BYTES = 256 * 1024 * 1024


class ManifestStatus(StrEnum):
    MISSING = "missing"
    VALID = "valid"
    INVALID = "invalid"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class StableFile:
    source_path: str
    stable_name: str
    link_type: str
    """`hardlink`, `copy`, or `found` for a file that was in the stable directory before it had an entry."""
    size_bytes: int
    sha256: str


ToolManifest = tuple[ManifestStatus, tuple[StableFile, ...], str | None]
"""Its status, which says whether it can be trusted, its entries, and when it was created."""


def read_job_manifest(warcs_dir: Path) -> ToolManifest:
    path = warcs_dir / MANIFEST
    try:
        if path.stat().st_size > _MAX_BYTES:
            return ManifestStatus.INVALID, (), None
        data = path.read_bytes()
    except FileNotFoundError:
        return ManifestStatus.MISSING, (), None
    except OSError:
        return ManifestStatus.UNREADABLE, (), None
    try:
        content = json.loads(data)
        if content["version"] != _VERSION:
            return ManifestStatus.INVALID, (), None
        entries = tuple(_entry(item) for item in content["entries"])
        return ManifestStatus.VALID, entries, str(content["created_at"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ManifestStatus.INVALID, (), None


def _entry(item: Any) -> StableFile:
    given: dict[str, Any] = {one.name: str(item[one.name]) for one in fields(StableFile)}
    entry = StableFile(**{**given, "size_bytes": int(item["size_bytes"])})
    # A manifest may be written by hand: no name in it leads out of the directory.
    if "/" in entry.stable_name or entry.stable_name in ("", ".", "..", MANIFEST):
        raise ValueError(f"{entry.stable_name[:80]!r} is no file name")
    return entry


def write_job_manifest(
    warcs_dir: Path, entries: Iterable[StableFile], *, created_at: str | None, now: datetime
) -> None:
    """Write the manifest atomically, created now unless `created_at` is given."""
    moment = now.isoformat()
    content = {
        "version": _VERSION,
        "output_dir": str(warcs_dir.parent),
        "warcs_dir": str(warcs_dir),
        "created_at": created_at or moment,
        "updated_at": moment,
        "entries": [asdict(entry) for entry in sorted(entries, key=lambda entry: entry.stable_name)],
    }
    write_whole(warcs_dir / MANIFEST, (json.dumps(content, indent=2) + "\n").encode())


_WARC = re.compile(r".+\.warc(?:\.gz)?")
_NOWHERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
FALLBACK_NAMES = (".tmp-http-warc", ".tmp-playwright-warc")
"""Temporary directories of the backends that are not zimit."""


class ToolWarcFile(NamedTuple):
    path: Path
    size: int
    device: int
    inode: int

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode: equal for two names of one file."""
        return self.device, self.inode


def warcs_below(folder: Path) -> Iterator[ToolWarcFile]:
    """Yield the WARC files in a folder and its subfolders, sorted by path; skip empty files, dangling links and
    loops.
    """
    found = []
    # Links are not followed: they could lead in a circle, or out of the job.
    for root, folders, names in os.walk(folder, onerror=_unless_gone, followlinks=False):
        folders.sort()
        for name in names:
            if _WARC.fullmatch(name) and (file := _file(Path(root, name))) is not None:
                found.append(file)
    yield from sorted(found)


def _unless_gone(exc: OSError) -> None:
    # A disk that does not answer is no empty directory: it must not look as if there were no files.
    if exc.errno not in _NOWHERE:
        raise exc


def _file(path: Path) -> ToolWarcFile | None:
    try:
        seen = path.stat()
    except OSError as exc:
        _unless_gone(exc)
        return None
    if not stat.S_ISREG(seen.st_mode) or seen.st_size == 0:
        return None
    return ToolWarcFile(path, seen.st_size, seen.st_dev, seen.st_ino)


def warcs_in(folders: Iterable[Path]) -> list[ToolWarcFile]:
    once: dict[tuple[int, int], ToolWarcFile] = {}
    for folder in folders:
        for file in warcs_below(folder):
            # By device and inode: a file and its hard link are one body of bytes.
            once.setdefault(file.identity, file)
    return list(once.values())


def stable_warcs(output_dir: Path) -> list[ToolWarcFile]:
    return warcs_in([output_dir / WARCS])


def temp_warcs(output_dir: Path) -> list[ToolWarcFile]:
    return warcs_in(temp_dirs_in(output_dir))


def discover_warcs(output_dir: Path) -> list[ToolWarcFile]:
    """Return the union of a job's stable, temporary and fallback WARC files.

    A temporary file and its stable twin count once: matched by inode, or by the manifest if it was copied.
    """
    output_dir = output_dir.resolve()
    stable = stable_warcs(output_dir)
    known = {file.identity for file in stable} | copied_files(output_dir, stable)
    return stable + [file for file in temp_warcs(output_dir) if file.identity not in known]


def source_of(output_dir: Path, files: Iterable[ToolWarcFile]) -> str:
    """Return where files of a job are: `stable`, `temp`, `fallback`, `mixed` or `none`."""
    folders = {file.path.relative_to(output_dir.resolve()).parts[0] for file in files}
    labels = {"stable" if name == WARCS else "fallback" if name in FALLBACK_NAMES else "temp" for name in folders}
    return "none" if not labels else labels.pop() if len(labels) == 1 else "mixed"


def copied_files(output_dir: Path, stable: Iterable[ToolWarcFile]) -> set[tuple[int, int]]:
    """Return the identities of temporary files whose bytes were copied to the stable directory."""
    names = {file.path.name: file.size for file in stable}
    found = set()
    for entry in read_job_manifest(output_dir / WARCS)[1]:
        source = _file(Path(entry.source_path))
        # Both sizes: a copy that was cut off is not taken for the whole file.
        if source is not None and names.get(entry.stable_name) == source.size == entry.size_bytes:
            found.add(source.identity)
    return found


_STABLE = re.compile(r"warc-(\d{6,})\.warc(?:\.gz)?")


def next_number(warcs_dir: Path) -> int:
    """Return the highest number in use plus one; gaps are not reused, because a manifest may refer to them."""
    numbers = [int(match.group(1)) for path in warcs_dir.glob("warc-*") if (match := _STABLE.fullmatch(path.name))]
    return max(numbers, default=0) + 1


def consolidate(
    output_dir: Path, files: Iterable[ToolWarcFile], clock: Clock, *, allow_copy: bool = False, dry_run: bool = False
) -> tuple[list[Path], int]:
    """Give every file a stable name and record it in the manifest.

    Return the stable files in the order of their sources (in a dry run, the paths they would get), and how many are
    new.

    A missing or invalid manifest is rebuilt from the files. Raise `NoSpace` or `Unavailable` if the disk fails,
    `StableNameTaken` if a name holds other bytes.
    """
    warcs_dir = output_dir / WARCS
    status, entries, created_at = read_job_manifest(warcs_dir)
    if status is ManifestStatus.UNREADABLE:
        raise Unavailable(f"cannot read the manifest in {warcs_dir}; check the disk and its permissions")
    try:
        if not dry_run:
            warcs_dir.mkdir(exist_ok=True)
        names = _StableNames(warcs_dir, entries, allow_copy=allow_copy, dry_run=dry_run)
        paths = [names.settle(file) for file in files]
        if status is not ManifestStatus.VALID:
            names.adopt()
        if not dry_run and (names.changed or status is not ManifestStatus.VALID):
            # Names first, then the manifest that lists them: after a power cut it names nothing that is not there.
            sync_directory(warcs_dir)
            write_job_manifest(warcs_dir, names.entries.values(), created_at=created_at, now=clock.now())
        return paths, names.created
    except OSError as exc:
        raise disk_error(exc, f"cannot consolidate WARC files into {warcs_dir}: {exc.strerror}") from exc


class _StableNames:
    def __init__(self, warcs_dir: Path, entries: Iterable[StableFile], *, allow_copy: bool, dry_run: bool) -> None:
        self._dir = warcs_dir
        self._allow_copy, self._dry_run = allow_copy, dry_run
        self._number = next_number(warcs_dir)
        self._here = {file.identity: file for file in warcs_below(warcs_dir)}
        self._sizes = {file.path.name: file.size for file in self._here.values()}
        self.entries = {entry.source_path: entry for entry in entries}
        self.created = 0
        self.changed = False

    def settle(self, file: ToolWarcFile) -> Path:
        source = str(file.path)
        known = self.entries.get(source)
        if known is not None and self._sizes.get(known.stable_name) == known.size_bytes == file.size:
            return self._dir / known.stable_name
        twin = self._here.get(file.identity)
        if twin is not None:
            self._note(file, twin.path.name, "hardlink" if file.path.parent != self._dir else "found")
            return twin.path
        suffix = ".warc.gz" if file.path.name.endswith(".gz") else ".warc"
        target = self._dir / f"warc-{self._number:06d}{suffix}"
        self._number += 1
        self.created += 1
        if not self._dry_run:
            self._note(file, target.name, self._link(file, target))
        return target

    def adopt(self) -> None:
        """Record files in the stable directory that have no entry, to rebuild a lost manifest."""
        listed = {entry.stable_name for entry in self.entries.values()}
        for file in self._here.values():
            if file.path.name not in listed:
                self._note(file, file.path.name, "found")

    def _note(self, file: ToolWarcFile, name: str, link_type: str) -> None:
        if not self._dry_run:
            self.entries[str(file.path)] = StableFile(
                source_path=str(file.path),
                stable_name=name,
                link_type=link_type,
                size_bytes=file.size,
                sha256=sha256_of_file(self._dir / name),
            )
            self.changed = True

    def _link(self, file: ToolWarcFile, target: Path) -> str:
        try:
            return "hardlink" if link_or_copy(file.path, target, may_copy=self._allow_copy) else "copy"
        except Conflict as exc:
            raise StableNameTaken(
                f"{target} is there already, with other bytes; move it away, nothing was overwritten"
            ) from exc
