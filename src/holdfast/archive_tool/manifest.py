"""`warcs/manifest.json` of a job: which temporary WARC file became which stable one. Our own crawls have another.

A manifest that makes no sense is told apart from one that cannot be read; neither is ever taken for an empty one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.archive_tool.files import write_whole

MANIFEST = "manifest.json"
WARCS = "warcs"
_VERSION = 1
_MAX_BYTES = 256 * 1024 * 1024


class ManifestStatus(StrEnum):
    """What came of reading one."""

    MISSING = "missing"
    VALID = "valid"
    INVALID = "invalid"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One stable file and where it came from."""

    source_path: str
    stable_name: str
    link_type: str
    """`hardlink`, `copy`, or `found` for a file that was in the stable directory before there was an entry."""
    size_bytes: int
    sha256: str


class Manifest(NamedTuple):
    """What was read."""

    status: ManifestStatus
    entries: tuple[Entry, ...] = ()
    created_at: str | None = None


def read_job_manifest(warcs_dir: Path) -> Manifest:
    """Return the manifest of a job's stable WARC files; its status says whether it can be trusted."""
    path = warcs_dir / MANIFEST
    try:
        if path.stat().st_size > _MAX_BYTES:
            return Manifest(ManifestStatus.INVALID)
        data = path.read_bytes()
    except FileNotFoundError:
        return Manifest(ManifestStatus.MISSING)
    except OSError:
        return Manifest(ManifestStatus.UNREADABLE)
    try:
        content = json.loads(data)
        if content["version"] != _VERSION:
            return Manifest(ManifestStatus.INVALID)
        entries = tuple(_entry(item) for item in content["entries"])
        return Manifest(ManifestStatus.VALID, entries, str(content["created_at"]))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Manifest(ManifestStatus.INVALID)


def _entry(item: Any) -> Entry:
    entry = Entry(
        source_path=str(item["source_path"]), stable_name=str(item["stable_name"]), link_type=str(item["link_type"]),
        size_bytes=int(item["size_bytes"]), sha256=str(item["sha256"]),
    )  # fmt: skip
    if "/" in entry.stable_name or entry.stable_name in ("", ".", "..", MANIFEST):
        raise ValueError(f"{entry.stable_name[:80]!r} is no file name")
    return entry


def write_job_manifest(warcs_dir: Path, entries: Iterable[Entry], *, before: Manifest, now: datetime) -> None:
    """Put the manifest in place, whole; it keeps the moment at which it was first made."""
    moment = now.isoformat()
    content = {
        "version": _VERSION, "output_dir": str(warcs_dir.parent), "warcs_dir": str(warcs_dir),
        "created_at": before.created_at or moment, "updated_at": moment,
        "entries": [asdict(entry) for entry in sorted(entries, key=lambda entry: entry.stable_name)],
    }  # fmt: skip
    write_whole(warcs_dir / MANIFEST, (json.dumps(content, indent=2) + "\n").encode())
