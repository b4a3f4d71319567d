"""Consolidation: WARC files get a stable name in `warcs/`, by hard link, before anything temporary is touched.

Doing it again changes nothing. A name that is taken by other bytes is never overwritten.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from holdfast.archive_tool.discovery import WarcFile, warcs_below
from holdfast.archive_tool.manifest import (
    WARCS,
    Entry,
    Manifest,
    ManifestStatus,
    read_job_manifest,
    write_job_manifest,
)
from holdfast.archive_tool.refusals import StableNameTaken
from holdfast.clock import Clock
from holdfast.errors import Unavailable
from holdfast.warc.outfile import disk_error, sync_directory

_STABLE = re.compile(r"warc-(\d{6,})\.warc(?:\.gz)?")
_PIECE = 1024 * 1024


class Consolidation(NamedTuple):
    """What became of each file that was handed in."""

    created: int
    reused: int
    paths: tuple[Path, ...]
    """The stable files, in the order of their sources. In a dry run, those that would be."""


def next_number(warcs_dir: Path) -> int:
    """Return the number after the highest in use; gaps stay gaps, for somebody may remember what stood there."""
    numbers = [int(match.group(1)) for path in _names(warcs_dir) if (match := _STABLE.fullmatch(path))]
    return max(numbers, default=0) + 1


def _names(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir()]
    except FileNotFoundError:
        return []


def consolidate(
    output_dir: Path, files: Iterable[WarcFile], clock: Clock, *, allow_copy: bool = False, dry_run: bool = False
) -> Consolidation:
    """Give every file a stable name and note it in the manifest; return how many were new and how many known.

    A manifest that is missing or makes no sense is made anew from what is there. NoSpace or Unavailable if the disk
    refuses; StableNameTaken if a name holds other bytes.
    """
    warcs_dir = output_dir / WARCS
    before = read_job_manifest(warcs_dir)
    if before.status is ManifestStatus.UNREADABLE:
        raise Unavailable(f"cannot read the manifest in {warcs_dir}; check the disk and its permissions")
    try:
        if not dry_run:
            warcs_dir.mkdir(exist_ok=True)
        desk = _Desk(warcs_dir, before, allow_copy=allow_copy, dry_run=dry_run)
        paths = tuple(desk.settle(file) for file in files)
        if before.status is not ManifestStatus.VALID:
            desk.adopt()
        if not dry_run and (desk.changed or before.status is not ManifestStatus.VALID):
            sync_directory(warcs_dir)
            write_job_manifest(warcs_dir, desk.entries.values(), before=before, now=clock.now())
        return Consolidation(desk.created, len(paths) - desk.created, paths)
    except OSError as exc:
        raise disk_error(exc, f"cannot consolidate WARC files into {warcs_dir}: {exc.strerror}") from exc


class _Desk:
    """Where files get their names, one at a time."""

    def __init__(self, warcs_dir: Path, before: Manifest, *, allow_copy: bool, dry_run: bool) -> None:
        self._dir = warcs_dir
        self._allow_copy, self._dry_run = allow_copy, dry_run
        self._number = next_number(warcs_dir)
        self._here = {file.identity: file for file in warcs_below(warcs_dir)}
        self._sizes = {file.path.name: file.size for file in self._here.values()}
        self.entries = {entry.source_path: entry for entry in before.entries}
        self.created = 0
        self.changed = False

    def settle(self, file: WarcFile) -> Path:
        """Return the stable path of a file, made if there is none."""
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
        """Note what is in the stable directory and in no entry: a manifest that was lost is made anew from it."""
        listed = {entry.stable_name for entry in self.entries.values()}
        for file in self._here.values():
            if file.path.name not in listed:
                self._note(file, file.path.name, "found")

    def _note(self, file: WarcFile, name: str, link_type: str) -> None:
        if not self._dry_run:
            self.entries[str(file.path)] = Entry(
                source_path=str(file.path), stable_name=name, link_type=link_type, size_bytes=file.size,
                sha256=sha256_of_file(self._dir / name),
            )  # fmt: skip
            self.changed = True

    def _link(self, file: WarcFile, target: Path) -> str:
        if target.exists() or target.is_symlink():
            raise StableNameTaken(f"{target} is there already, with other bytes; move it away, nothing was overwritten")
        try:
            os.link(file.path, target, follow_symlinks=True)
        except FileExistsError as exc:
            raise StableNameTaken(f"{target} appeared meanwhile; nothing was overwritten") from exc
        except OSError as exc:
            if exc.errno not in (errno.EXDEV, errno.EPERM, errno.EMLINK) or not self._allow_copy:
                raise
            _copy(file.path, target)
            return "copy"
        return "hardlink"


def _copy(source: Path, target: Path) -> None:
    fresh = target.with_name(f".{target.name}.new")
    with source.open("rb") as reading, fresh.open("wb") as writing:
        shutil.copyfileobj(reading, writing, _PIECE)
        writing.flush()
        os.fsync(writing.fileno())
    fresh.replace(target)


def sha256_of_file(path: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    hasher = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            hasher.update(piece)
    return hasher.hexdigest()
