"""What each store of an installation takes, what of it may go without losing anything, and the removal of that.

Captures, rows and the search index never go here: only what can be made anew, and what a tool left behind.
"""

from __future__ import annotations

import importlib
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from holdfast.db.audit_events import append_event
from holdfast.db.engine import Database
from holdfast.db.raw import sqlite_path
from holdfast.exports.package_cache import cached_packages, remove_packages
from holdfast.operations.store_queries import TableSize, server_bytes, table_sizes, warc_totals
from holdfast.wiring import Runtime

_MOST_FILES = 200_000
"""Files of one folder that are weighed; an answer says if there were more."""


class StoreName(StrEnum):
    """What takes room."""

    DATABASE = "database"
    WARCS = "warcs"
    SEARCH = "search"
    CACHE = "cache"
    OTHER = "other"


class CleanTarget(StrEnum):
    """What may go."""

    PACKAGES = "packages"
    """Packages (WACZ) that were put together before: each is made anew when it is asked for."""
    TOOL_FILES = "tool_files"
    """Temporary files of old zimit runs, while their disk is too full; every WARC file is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """One store and what it takes."""

    name: StoreName
    bytes: int
    files: int | None
    is_whole: bool = True
    """Whether all of it was weighed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WeighedStores:
    """Everything that takes room, and how much is left."""

    stores: tuple[Store, ...]
    tables: tuple[TableSize, ...]
    disk_bytes: int
    free_bytes: int


def weigh(database: Database, home: Path) -> WeighedStores:
    """Return what each store takes, and how much room the data directory's disk has."""
    path = sqlite_path(database.url)
    with database.read() as session:
        warc_bytes, warc_files = warc_totals(session)
        rows = server_bytes(session) if path is None else 0
        tables = tuple(table_sizes(session)) if path is None else ()
    if path is not None:
        rows = sum(_size(path.with_name(f"{path.name}{end}")) for end in ("", "-wal", "-shm"))
    own = {name.value for name in (StoreName.SEARCH, StoreName.CACHE)} | {"warcs"}
    others = [folder for folder in _folders(home) if folder.name not in own]
    room = shutil.disk_usage(home)
    return WeighedStores(
        stores=(
            Store(name=StoreName.DATABASE, bytes=rows, files=None),
            Store(name=StoreName.WARCS, bytes=warc_bytes, files=warc_files),
            _weighed(StoreName.SEARCH, [home / "search"]),
            _weighed(StoreName.CACHE, [home / "cache"]),
            _weighed(StoreName.OTHER, others),
        ),
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


def _weighed(name: StoreName, folders: Sequence[Path]) -> Store:
    total = count = 0
    for size in _sizes(folders):
        if count == _MOST_FILES:
            return Store(name=name, bytes=total, files=count, is_whole=False)
        total, count = total + size, count + 1
    return Store(name=name, bytes=total, files=count)


def _sizes(folders: Sequence[Path]) -> Iterator[int]:
    # Not followed: a link may lead anywhere, and in a circle.
    waiting = list(folders)
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(Path(entry.path))
                    elif entry.is_file(follow_symlinks=False):
                        yield entry.stat(follow_symlinks=False).st_size
        except OSError:  # it went meanwhile
            continue


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaning:
    """One thing that went, or would go."""

    target: CleanTarget
    what: str
    bytes: int
    refusal: str | None = None
    """Why it stays."""


def clean(runtime: Runtime, database: Database, targets: Sequence[CleanTarget], *, apply: bool) -> tuple[Cleaning, ...]:
    """Remove what can be made anew or was left behind; without `apply` only say what would go."""
    found: list[Cleaning] = []
    if CleanTarget.PACKAGES in targets:
        found.append(_packages(runtime.settings.home, apply=apply))
    if CleanTarget.TOOL_FILES in targets:
        # Loaded by name: it brings the storage of archive-tool, which a serving process rarely needs.
        cases = importlib.import_module("holdfast.operations.cleaning").Sweep(runtime, database).run(apply=apply)
        found += [
            Cleaning(
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
    return tuple(found)


def _packages(home: Path, *, apply: bool) -> Cleaning:
    packages = cached_packages(home)
    freed = remove_packages(home) if apply else sum(package.size for package in packages)
    return Cleaning(target=CleanTarget.PACKAGES, what=f"{len(packages)} packages", bytes=freed)
