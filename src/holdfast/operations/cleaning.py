"""Clean-up and quarantine of execution directories and their rows. Data behind snapshots is never lost."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from enum import StrEnum
from functools import cache
from pathlib import Path

from holdfast.config import StorageSettings
from holdfast.db.engine import Database
from holdfast.errors import Conflict, HoldfastError, NotFound
from holdfast.jobs.administration import maintenance
from holdfast.jobs.administration.maintenance import (
    DirectoryRun,
    JobInUse,
    newest_directories,
    note_cleanup,
    run_again,
    uncleaned_runs,
)
from holdfast.jobs.views.listing import admin_state
from holdfast.operations.crawl_watchdog import TOOLS
from holdfast.processes.disk import identity_of
from holdfast.storage.roots import StrayFile, key_of, local_path
from holdfast.storage.store import FileKey
from holdfast.values import dataclass
from holdfast.warc.manifest import remove_from_manifest
from holdfast.warc.queries import discard_file, relocate_file
from holdfast.wiring import Runtime
from holdfast.zimit.output_directory import forget_end, hold_output, holder_of, is_temp_dir, temp_dirs_in
from holdfast.zimit.storage import (
    WarcVerdict,
    clean_temp,
    clean_temp_nonwarc,
    quarantine,
    storage_statistics,
)

_KEEP = 2
"""Newest crawls of each source that sweeps leave alone."""
_FULL_PERCENT = 80.0
"""Disk use from which a sweep cleans up."""

_CLEANED = {"temp": "temp_cleaned", "temp-nonwarc": "temp_nonwarc_cleaned"}


class CleanMode(StrEnum):
    TEMP = "temp"
    """Deletes temporary directories with all contents, and the state."""
    TEMP_NONWARC = "temp-nonwarc"
    """The same, but moves every WARC file to its stable name first."""


class CleanupRefused(Conflict):
    """The directory cannot be cleaned up, or not in this mode."""

    code = "cleanup_refused"


def admin_status_of(run: DirectoryRun) -> str:
    return admin_state(None, run=run.execution.state, index=run.execution.index_state)


def demand_idle(database: Database, run: DirectoryRun) -> Path:
    """Return the directory of an idle run; raise NotFound if it is missing, JobInUse if a run is or will be there."""
    folder = Path(run.execution.output_dir)
    if not folder.is_dir():
        raise NotFound(f"the directory of execution {run.execution.id} is gone: {folder}")
    with database.read() as session:
        wanted = maintenance.is_wanted(session, job_id=run.job.id, output_dir=run.execution.output_dir)
    # The rows show runs; the lock shows a tool that an operator started by hand.
    if wanted or holder_of(folder) is not None:
        raise JobInUse(f"job {run.job.id} runs in {folder}, or is queued to; wait for its end, or stop it")
    return folder


def check_cleanup(database: Database, home: Path, run: DirectoryRun, mode: CleanMode, *, replays: bool) -> Path:
    """Return the directory if it may be cleaned up; raise CleanupRefused with the reason otherwise.

    `replays` means that archived pages are served from here, and the operator did not insist.
    """
    folder, word = demand_idle(database, run), admin_status_of(run)
    if word not in ("indexed", "index_failed"):
        raise CleanupRefused(f"job {run.job.id} is {word}; only indexed or index_failed runs are cleaned up")
    if mode is CleanMode.TEMP_NONWARC:
        return folder
    with database.read() as session:
        files = maintenance.registered(session, execution_id=run.execution.id)
    # A registered file in a temporary directory is the only copy that snapshots can show.
    inside = [file.path for file in files if _is_temporary(_located(home, file.file_key), folder)]
    if inside:
        raise CleanupRefused(
            f"{len(inside)} registered WARC files stand in temporary directories ({inside[0]}); "
            "keep them with --mode temp-nonwarc"
        )
    # A server may be reading the files that mode `temp` removes.
    if replays:
        raise CleanupRefused(
            "archived pages are served from this installation; --mode temp-nonwarc keeps every WARC file, or insist "
            "with --force"
        )
    return folder


def _located(home: Path, key: FileKey) -> Path | None:
    try:
        return local_path(home, key)
    except StrayFile:
        return None


def _is_temporary(path: Path | None, folder: Path) -> bool:
    folder = folder.resolve()
    return path is not None and any(is_temp_dir(parent, folder) for parent in path.parents)


def clean_up(
    runtime: Runtime, database: Database, run: DirectoryRun, mode: CleanMode, folder: Path
) -> tuple[int, bool, int]:
    """Clean up a directory; return the removed temporary directories, whether a state was removed, and kept files."""
    kept: dict[Path, Path] = {}

    def follow(moved: dict[Path, Path]) -> None:
        kept.update(moved)
        _follow(runtime, moved)

    if mode is CleanMode.TEMP:
        temp_dirs, had_state = clean_temp(folder)
    else:
        temp_dirs, had_state = clean_temp_nonwarc(folder, runtime.clock, follow)
    if temp_dirs or had_state:
        with database.write() as session:
            note_cleanup(session, runtime.clock, run.execution.id, _CLEANED[mode])
    return temp_dirs, had_state, len(kept)


def _follow(runtime: Runtime, moved: dict[Path, Path]) -> None:
    """Update rows from temporary file names to stable ones, before the old names are deleted."""
    home = runtime.settings.home
    with runtime.raw_db.write() as tx:
        for old, new in moved.items():
            # Do this before removing the old name: a reader in between finds the file under either name.
            relocate_file(tx, old=key_of(home, old), new=key_of(home, new))


def check_quarantine(database: Database, run: DirectoryRun) -> Path:
    """Return the directory if damaged files may be moved away; raise Conflict if in use or needed by snapshots."""
    folder = demand_idle(database, run)
    with database.read() as session:
        # Never move files that snapshots show.
        if maintenance.has_captures(session, execution_id=run.execution.id):
            raise CleanupRefused(
                f"execution {run.execution.id} has snapshots that point into its files; nothing is moved"
            )
    return folder


def move_damaged(
    runtime: Runtime, database: Database, run: DirectoryRun, verdicts: list[WarcVerdict]
) -> tuple[tuple[Path, ...], bool]:
    """Move damaged files aside and queue the job again, with its full retry budget; the crawl counts as unfinished.

    Return the moved files, and whether the job runs again.
    """
    folder = check_quarantine(database, run)
    damaged = {identity_of(verdict.path) for verdict in verdicts if not verdict.ok}
    moved = quarantine(folder, verdicts, runtime.clock)
    if not moved:
        return (), False
    _strike_out(runtime, database, run, damaged)
    # The directory states that its crawl is complete, which is false once files are removed.
    forget_end(folder)
    with database.write() as session:
        again = run_again(session, runtime.clock, run.job.id, reason="warcs_quarantined")
    return tuple(moved), again


def _strike_out(runtime: Runtime, database: Database, run: DirectoryRun, damaged: set[tuple[int, int] | None]) -> None:
    """Discard the rows of files that were moved aside, including second names; no data was ever read from them."""
    with database.read() as session:
        files = maintenance.registered(session, execution_id=run.execution.id)
    for file in files:
        path = _located(runtime.settings.home, file.file_key)
        if path is not None and (found := identity_of(path)) is not None and found in damaged:
            with runtime.raw_db.write() as tx:
                discard_file(tx, file.id)
            remove_from_manifest(path.parent, file.id)
            path.unlink()


_PAGE = 100


def total_and_free(folder: Path) -> tuple[int, int]:
    found = shutil.disk_usage(folder)
    return found.total, found.free


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepCase:
    run: DirectoryRun
    used_percent: float | None
    """Use of its disk before the clean-up; None if unknown."""
    freed_bytes: int
    """Size of temporary files other than WARC files."""
    refusal: str | None = None


class Sweep:
    """One sweep; used by one thread."""

    def __init__(
        self, runtime: Runtime, database: Database, room: Callable[[Path], tuple[int, int]] = total_and_free
    ) -> None:
        self._runtime, self._database, self._room = runtime, database, room
        # Bytes that a dry run would free, by disk.
        self._planned: Counter[int] = Counter()

    @property
    def _limits(self) -> StorageSettings:
        return self._runtime.settings.storage

    def run(self, *, apply: bool) -> list[SweepCase]:
        """Clean up old directories while their disk is too full; without `apply`, only report."""
        newest = cache(self._newest)
        cases: dict[Path, SweepCase] = {}
        for run in self._old():
            folder = Path(run.execution.output_dir)
            # Retries share a directory: check it once, and not while it is one of the newest of its source.
            if folder in cases or folder in newest(run.source.id):
                continue
            try:
                case = self._case(run, folder, apply=apply)
            except (HoldfastError, OSError) as exc:
                # Count this directory only: the next may be on another disk.
                case = SweepCase(run=run, used_percent=None, freed_bytes=0, refusal=str(exc))
            if case is not None:
                cases[folder] = case
        return list(cases.values())

    def _old(self) -> Iterator[DirectoryRun]:
        before, after = self._runtime.clock.now() - timedelta(days=self._limits.clean_days), 0
        while True:
            with self._database.read() as session:
                runs = uncleaned_runs(session, backends=TOOLS, before=before, after=after, limit=_PAGE)
            yield from runs
            if not runs:
                return
            # Continue by id, not by offset: cleaned runs drop out of the list.
            after = runs[-1].execution.id

    def _newest(self, source_id: int) -> frozenset[Path]:
        with self._database.read() as session:
            folders = newest_directories(session, source_id=source_id, count=_KEEP)
        return frozenset(map(Path, folders))

    def _used_percent(self, folder: Path) -> float:
        total, free = self._room(folder)
        # A dry run frees nothing: count what it would free, otherwise it would list every directory of a full disk.
        free += self._planned[folder.stat().st_dev]
        return 100.0 * (total - free) / total if total else 0.0

    def _case(self, run: DirectoryRun, folder: Path, *, apply: bool) -> SweepCase | None:
        """Clean up a directory if necessary and its disk is full; raise OSError or CleanupRefused."""
        if not folder.is_dir() or not temp_dirs_in(folder):
            return None
        used = self._used_percent(folder)
        if used < _FULL_PERCENT:
            return None
        freed = storage_statistics(folder).tmp_non_warc_bytes
        check_cleanup(self._database, self._runtime.settings.home, run, CleanMode.TEMP_NONWARC, replays=False)
        if apply:
            with hold_output(folder):
                clean_up(self._runtime, self._database, run, CleanMode.TEMP_NONWARC, folder)
        else:
            self._planned[folder.stat().st_dev] += freed
        return SweepCase(run=run, used_percent=used, freed_bytes=freed)
