"""Every WARC file of a job: stable and temporary ones together, each body of bytes once. Empty files do not count.

A disk that does not answer raises OSError: files that cannot be seen are not files that are not there.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from holdfast.archive_tool.manifest import WARCS, Manifest, ManifestStatus, read_job_manifest
from holdfast.archive_tool.state import load_state, temp_dirs_in

_WARC = re.compile(r".+\.warc(?:\.gz)?")
_NOWHERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
FALLBACK_NAMES = (".tmp-http-warc", ".tmp-playwright-warc")
"""Temporary directories of the backends that are not zimit."""


class WarcFile(NamedTuple):
    """One file, and which body of bytes it is."""

    path: Path
    size: int
    device: int
    inode: int

    @property
    def identity(self) -> tuple[int, int]:
        """The same for two names of one file."""
        return self.device, self.inode


def warcs_below(folder: Path) -> Iterator[WarcFile]:
    """Yield the WARC files in a folder and all folders below, by path; no empty ones, no dangling links, no loops."""
    found = []
    for root, folders, names in os.walk(folder, onerror=_unless_gone, followlinks=False):
        folders.sort()
        for name in names:
            if _WARC.fullmatch(name) and (file := _file(Path(root, name))) is not None:
                found.append(file)
    yield from sorted(found)


def _unless_gone(exc: OSError) -> None:
    if exc.errno not in _NOWHERE:
        raise exc


def _file(path: Path) -> WarcFile | None:
    try:
        seen = path.stat()
    except OSError as exc:
        _unless_gone(exc)
        return None
    if not stat.S_ISREG(seen.st_mode) or seen.st_size == 0:
        return None
    return WarcFile(path, seen.st_size, seen.st_dev, seen.st_ino)


def warcs_in(folders: Iterable[Path]) -> list[WarcFile]:
    """Return the WARC files of several folders, each body of bytes once."""
    once: dict[tuple[int, int], WarcFile] = {}
    for folder in folders:
        for file in warcs_below(folder):
            once.setdefault(file.identity, file)
    return list(once.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """What a job's directory holds."""

    files: tuple[WarcFile, ...]
    source: str
    """`stable`, `temp`, `fallback`, `mixed` or `none`."""
    manifest_status: ManifestStatus

    @property
    def paths(self) -> list[Path]:
        """Where the files stand."""
        return [file.path for file in self.files]


def discover_warcs(output_dir: Path) -> Discovery:
    """Return the union of a job's stable, temporary and fallback WARC files.

    A temporary file counts once with its stable twin: by inode, and by the manifest where it was copied.
    """
    output_dir = output_dir.resolve()
    manifest = read_job_manifest(output_dir / WARCS)
    stable = warcs_in([output_dir / WARCS])
    known = {file.identity for file in stable} | _copied(manifest, stable)
    labels = {"stable"} if stable else set()
    files = list(stable)
    for folder in all_temp_dirs(output_dir):
        fresh = [file for file in warcs_below(folder) if file.identity not in known]
        known |= {file.identity for file in fresh}
        files += fresh
        if fresh:
            labels.add("fallback" if folder.name in FALLBACK_NAMES else "temp")
    source = "none" if not labels else labels.pop() if len(labels) == 1 else "mixed"
    return Discovery(files=tuple(files), source=source, manifest_status=manifest.status)


def all_temp_dirs(output_dir: Path) -> list[Path]:
    """Return the temporary directories that the state names, and those that stand there besides."""
    return list(dict.fromkeys([*load_state(output_dir, 1).temp_dirs, *temp_dirs_in(output_dir)]))


def copied_files(output_dir: Path) -> set[tuple[int, int]]:
    """Return the identities of temporary files whose bytes were copied to the stable directory."""
    return _copied(read_job_manifest(output_dir / WARCS), warcs_in([output_dir / WARCS]))


def _copied(manifest: Manifest, stable: list[WarcFile]) -> set[tuple[int, int]]:
    """Return the identities of temporary files whose copy is in the stable directory."""
    names = {file.path.name: file.size for file in stable}
    found = set()
    for entry in manifest.entries:
        source = _file(Path(entry.source_path))
        if source is not None and names.get(entry.stable_name) == source.size == entry.size_bytes:
            found.add(source.identity)
    return found
