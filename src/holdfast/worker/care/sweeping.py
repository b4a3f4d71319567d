"""Clean-ups by themselves: what old crawls of tools left temporarily goes when the disk fills, WARC files never.

Only what is indexed, older than its time and not among a source's newest; the oldest first, and only until there is
room again. A directory that somebody works in, or is about to, is left alone.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import NamedTuple

from holdfast.archive_tool.discovery import all_temp_dirs
from holdfast.archive_tool.hold import hold_output
from holdfast.archive_tool.storage import storage_statistics
from holdfast.config import StorageSettings
from holdfast.db.engine import Database
from holdfast.errors import HoldfastError
from holdfast.jobs.care.queries import Run, newest_directories, uncleaned_runs
from holdfast.wiring import Ground
from holdfast.worker.care.cleaning import CleanMode, check_cleanup, clean_up
from holdfast.worker.care.sights import TOOLS

_PAGE = 100


class Room(NamedTuple):
    """How full a disk is."""

    total: int
    free: int


def room_of(folder: Path) -> Room:
    """Return how full the disk of a folder is."""
    found = shutil.disk_usage(folder)
    return Room(found.total, found.free)


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepCase:
    """One directory that was, or would be, cleaned up; or why it was not."""

    run: Run
    used_percent: float | None
    """Of its disk, before; None if nobody can tell."""
    freed_bytes: int
    """Temporary files that are no WARC files."""
    refusal: str | None = None


class Sweep:
    """One sweep; used by one thread."""

    def __init__(self, ground: Ground, database: Database, room: Callable[[Path], Room] = room_of) -> None:
        self._ground, self._database, self._room = ground, database, room
        self._planned: Counter[int] = Counter()
        """Bytes that a dry run would have freed, by disk."""

    @property
    def _limits(self) -> StorageSettings:
        return self._ground.settings.storage

    def run(self, *, apply: bool) -> list[SweepCase]:
        """Clean up what may be, while its disk is too full; without `apply` only say what would be."""
        newest = cache(self._newest)
        cases: dict[Path, SweepCase] = {}
        for run in self._old():
            folder = Path(run.execution.output_dir)
            if folder in cases or folder in newest(run.source.id):
                continue
            try:
                case = self._case(run, folder, apply=apply)
            except (HoldfastError, OSError) as exc:  # of this directory alone: the next may be on another disk
                case = SweepCase(run=run, used_percent=None, freed_bytes=0, refusal=str(exc))
            if case is not None:
                cases[folder] = case
        return list(cases.values())

    def _old(self) -> Iterator[Run]:
        """Yield the executions that are old enough, the oldest first."""
        before, after = self._ground.clock.now() - timedelta(days=self._limits.clean_days), 0
        while True:
            with self._database.read() as session:
                runs = uncleaned_runs(session, backends=TOOLS, before=before, after=after, limit=_PAGE)
            yield from runs
            if not runs:
                return
            after = runs[-1].execution.id

    def _newest(self, source_id: int) -> frozenset[Path]:
        with self._database.read() as session:
            folders = newest_directories(session, source_id=source_id, count=self._limits.clean_keep)
        return frozenset(map(Path, folders))

    def _used_percent(self, folder: Path) -> float:
        room = self._room(folder)
        free = room.free + self._planned[folder.stat().st_dev]
        return 100.0 * (room.total - free) / room.total if room.total else 0.0

    def _case(self, run: Run, folder: Path, *, apply: bool) -> SweepCase | None:
        """Clean a directory up if there is something to do and its disk is full; OSError, or a refusal of ours."""
        if not folder.is_dir() or not all_temp_dirs(folder):
            return None
        used = self._used_percent(folder)
        if used < self._limits.clean_percent:
            return None
        freed = storage_statistics(folder).tmp_non_warc_bytes
        check_cleanup(self._database, self._ground.settings.home, run, CleanMode.TEMP_NONWARC, replays=False)
        if apply:
            with hold_output(folder):
                clean_up(self._ground, self._database, run, CleanMode.TEMP_NONWARC, folder)
        else:
            self._planned[folder.stat().st_dev] += freed
        return SweepCase(run=run, used_percent=used, freed_bytes=freed)
