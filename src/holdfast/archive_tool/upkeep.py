"""What may be moved or removed in a job's directory, by hand or by a retention rule: damaged files aside, remains away.

Every WARC file that is whole keeps a stable name before anything else is touched, and nothing outside the job is.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from holdfast.archive_tool.browsertrix import MANAGED_NAME
from holdfast.archive_tool.consolidation import consolidate
from holdfast.archive_tool.discovery import all_temp_dirs, copied_files, warcs_in
from holdfast.archive_tool.manifest import WARCS
from holdfast.archive_tool.resume import RESUME_NAME
from holdfast.archive_tool.state import STATE_NAME
from holdfast.archive_tool.storage import ErrorKind, WarcVerdict
from holdfast.archive_tool.survey import remove_temp_dirs
from holdfast.clock import Clock, digits14
from holdfast.errors import Invalid
from holdfast.warc.outfile import sync_directory

QUARANTINE = "warcs_quarantine"
PROVENANCE = "provenance"


def quarantine(output_dir: Path, verdicts: Iterable[WarcVerdict], clock: Clock) -> list[Path]:
    """Move damaged WARC files to `warcs_quarantine/<moment>/`, with their paths below the job; return where they are.

    Only what is damaged moves: a file that the disk would not give us may be whole. Invalid if one is not the job's.
    The caller refuses a job that runs or whose snapshots point into these files.
    """
    output_dir = output_dir.resolve()
    damaged = [one.path for one in verdicts if one.error_kind in (ErrorKind.CORRUPT, ErrorKind.EMPTY)]
    outside = [path for path in damaged if not path.is_relative_to(output_dir)]
    if outside:
        raise Invalid(f"{outside[0]} does not lie in {output_dir}; nothing was moved")
    folder = output_dir / QUARANTINE / digits14(clock.now())
    moved = []
    for path in damaged:
        target = folder / path.relative_to(output_dir)
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)
        sync_directory(target.parent)
        moved.append(target)
    return moved


class Cleaned(NamedTuple):
    """What a clean-up did."""

    temp_dirs: int
    state_removed: bool
    moved: dict[Path, Path]
    """Where each temporary WARC file can be found now; rows that name the old path follow it."""

    @property
    def is_nothing(self) -> bool:
        """Whether there was nothing to clean up."""
        return self.temp_dirs == 0 and not self.state_removed


def clean_temp(output_dir: Path) -> Cleaned:
    """Remove temporary directories, WARC files in them included, and the state (HA-100, mode `temp`).

    The caller has made sure that this job is indexed or given up, and that nothing replays from these files.
    """
    output_dir = output_dir.resolve()
    folders = all_temp_dirs(output_dir)
    had_state = (output_dir / STATE_NAME).exists()
    remove_temp_dirs(output_dir, folders)
    (output_dir / STATE_NAME).unlink(missing_ok=True)
    return Cleaned(len(folders), had_state, {})


def lost_by_cleaning(output_dir: Path, kept: Iterable[Path]) -> list[Path]:
    """Return the temporary WARC files that a clean-up of mode `temp` would lose: bytes that stand nowhere else.

    `kept` are folders beside the temporary ones in which files stand for good.
    """
    output_dir = output_dir.resolve()
    safe = {file.identity for file in warcs_in([output_dir / WARCS, *kept])} | copied_files(output_dir)
    return [file.path for file in warcs_in(all_temp_dirs(output_dir)) if file.identity not in safe]


def clean_temp_nonwarc(
    output_dir: Path, clock: Clock, on_kept: Callable[[dict[Path, Path]], None] = lambda moved: None
) -> Cleaned:
    """Keep every temporary WARC file under its stable name, copy state and settings to `provenance/`, remove the rest.

    `on_kept` hears where each file can be found before anything is removed, so that rows can follow first. NoSpace,
    Unavailable or StableNameTaken if a file cannot be kept: then nothing has been removed.
    """
    output_dir = output_dir.resolve()
    folders = all_temp_dirs(output_dir)
    files = warcs_in(folders)
    kept = consolidate(output_dir, files, clock)
    moved = {file.path: path for file, path in zip(files, kept.paths, strict=True)}
    on_kept(moved)
    had_state = (output_dir / STATE_NAME).exists()
    folder = output_dir / PROVENANCE
    for name in (STATE_NAME, RESUME_NAME, MANAGED_NAME):
        if (output_dir / name).is_file():
            folder.mkdir(exist_ok=True)
            shutil.copy2(output_dir / name, folder / name.lstrip("."))
    remove_temp_dirs(output_dir, folders)
    (output_dir / STATE_NAME).unlink(missing_ok=True)
    return Cleaned(len(folders), had_state, moved)
