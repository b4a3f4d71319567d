"""Sizes of the stores of an installation, and the removal of caches and leftovers.

It never removes captures, rows or the search index: only caches, and files that a tool left behind.
"""

from __future__ import annotations

import importlib
import os
import shutil
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path

from holdfast.db.audit_events import append_event
from holdfast.db.engine import Database
from holdfast.db.raw import sqlite_path
from holdfast.exports.package_cache import cached_packages, remove_packages
from holdfast.operations.queries import TableSize, server_bytes, table_sizes, warc_totals
from holdfast.records import Operator, record
from holdfast.wiring import Runtime

_MOST_FILES = 200_000
"""Limit of counted files per folder; a report mentions when it is exceeded."""


class StoreName(StrEnum):
    DATABASE = "database"
    WARCS = "warcs"
    SEARCH = "search"
    CACHE = "cache"
    OTHER = "other"


class CleanTarget(StrEnum):
    PACKAGES = "packages"
    """Cached packages (WACZ): each is rebuilt on request."""
    TOOL_FILES = "tool_files"
    """Temporary files of old zimit runs, while their disk is too full; every WARC file stays."""


@record
class StoreSize:
    """A store and its size."""

    name: Operator[StoreName]
    bytes: Operator[int]
    files: Operator[int | None]
    whole: Operator[bool] = True
    """False if it has more files than one request counts."""


@record
class StoreSizes:
    """The size of each store, and the free space."""

    stores: Operator[list[StoreSize]]
    tables: Operator[list[TableSize]]
    """The largest ones; empty on SQLite, which stores all of them in one file."""
    disk_bytes: Operator[int]
    free_bytes: Operator[int]


def weigh(database: Database, home: Path) -> StoreSizes:
    """Return the size of each store, and the free space of the data directory's disk."""
    path = sqlite_path(database.url)
    with database.read() as session:
        warc_bytes, warc_files = warc_totals(session)
        rows = server_bytes(session) if path is None else 0
        tables = table_sizes(session) if path is None else []
    if path is not None:
        rows = sum(_size(path.with_name(f"{path.name}{end}")) for end in ("", "-wal", "-shm"))
    own = {name.value for name in (StoreName.SEARCH, StoreName.CACHE)} | {"warcs"}
    others = [folder for folder in _folders(home) if folder.name not in own]
    room = shutil.disk_usage(home)
    return StoreSizes(
        stores=[
            StoreSize(name=StoreName.DATABASE, bytes=rows, files=None),
            StoreSize(name=StoreName.WARCS, bytes=warc_bytes, files=warc_files),
            _weighed(StoreName.SEARCH, [home / "search"]),
            _weighed(StoreName.CACHE, [home / "cache"]),
            _weighed(StoreName.OTHER, others),
        ],
        tables=tables,
        disk_bytes=room.total,
        free_bytes=room.free,
    )


def _folders(home: Path) -> list[Path]:
    with os.scandir(home) as entries:
        return [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _weighed(name: StoreName, folders: Sequence[Path]) -> StoreSize:
    total = count = 0
    for size in _sizes(folders):
        if count == _MOST_FILES:
            return StoreSize(name=name, bytes=total, files=count, whole=False)
        total, count = total + size, count + 1
    return StoreSize(name=name, bytes=total, files=count)


def _sizes(folders: Sequence[Path]) -> Iterator[int]:
    # Do not follow links: they may lead anywhere, and form a circle.
    waiting = list(folders)
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(Path(entry.path))
                    elif entry.is_file(follow_symlinks=False):
                        yield entry.stat(follow_symlinks=False).st_size
        except OSError:  # it was deleted meanwhile
            continue


@record
class Removal:
    """A part of the storage that was removed, or can be."""

    target: Operator[CleanTarget]
    what: Operator[str]
    bytes: Operator[int]
    refusal: Operator[str | None] = None
    """Why it cannot be removed."""


@record
class CleanReceipt:
    """Everything that a clean-up removed, or would remove."""

    applied: Operator[bool]
    freed_bytes: Operator[int]
    items: Operator[list[Removal]]


def clean(runtime: Runtime, database: Database, targets: Sequence[CleanTarget], *, apply: bool) -> CleanReceipt:
    """Delete caches and leftovers; without `apply`, only list them."""
    found: list[Removal] = []
    if CleanTarget.PACKAGES in targets:
        found.append(_packages(runtime.settings.home, apply=apply))
    if CleanTarget.TOOL_FILES in targets:
        # Import it by name: it loads the storage of archive-tool, which a serving process rarely needs.
        cases = importlib.import_module(".cleaning", __package__).Sweep(runtime, database).run(apply=apply)
        found += [
            Removal(
                target=CleanTarget.TOOL_FILES,
                what=f"temporary files of execution {case.run.execution.id}",
                bytes=case.freed_bytes,
                refusal=case.refusal,
            )
            for case in cases
        ]
    freed = sum(one.bytes for one in found if one.refusal is None)
    if apply:
        with runtime.raw_db.write() as tx:
            detail = {"targets": [target.value for target in targets], "bytes": freed}
            append_event(tx, runtime.clock, action="storage.cleaned", subject="storage", detail=detail)
    return CleanReceipt(applied=apply, freed_bytes=freed, items=found)


def _packages(home: Path, *, apply: bool) -> Removal:
    packages = cached_packages(home)
    freed = remove_packages(home) if apply else sum(package.size for package in packages)
    return Removal(target=CleanTarget.PACKAGES, what=f"{len(packages)} packages", bytes=freed)
