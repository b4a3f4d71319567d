"""What stands in the output directory before a run, what follows from it, and the reset of remains that lead nowhere.

A reset gives every temporary WARC file its stable name first; if that fails, nothing is removed.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from holdfast import log
from holdfast.archive_tool.browsertrix import MANAGED_NAME
from holdfast.archive_tool.consolidation import Consolidation, consolidate
from holdfast.archive_tool.discovery import all_temp_dirs, discover_warcs, warcs_in
from holdfast.archive_tool.lines import Statistics
from holdfast.archive_tool.logs import last_statistics, newest_crawl_log
from holdfast.archive_tool.modes import Mode, Situation, choose_mode
from holdfast.archive_tool.options import Options, ResumePolicy
from holdfast.archive_tool.resume import RESUME_NAME, is_poisoned, usable_resume
from holdfast.archive_tool.state import CrawlState, is_temp_dir
from holdfast.clock import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What was found, and how the run begins."""

    mode: Mode | None
    """None if a finished ZIM is in the way."""
    resume: Path | None
    """The saved queue, whether it will be used or not."""
    temp_dirs: tuple[Path, ...]
    warcs: int
    statistics: Statistics | None
    reset: str | None
    """Why the remains of earlier runs are cleared away first, if they are."""


def survey(options: Options) -> Survey:
    """Look at the output directory; nothing is changed."""
    output_dir = options.output_dir
    temp_dirs = all_temp_dirs(output_dir) if output_dir.is_dir() else []
    resume = usable_resume(output_dir, temp_dirs)
    reset, may_resume = _judge(options, temp_dirs)
    files = discover_warcs(output_dir).files if output_dir.is_dir() else ()
    newest = newest_crawl_log(output_dir)
    mode = choose_mode(Situation(
        zim_exists=options.zim_path.exists(), overwrite=options.overwrite, wants_build=options.wants_build,
        has_resume=resume is not None, has_warcs=bool(files), may_resume=may_resume,
    ))  # fmt: skip
    return Survey(
        mode=mode, resume=resume, temp_dirs=tuple(temp_dirs), warcs=len(files), reset=reset,
        statistics=None if newest is None else last_statistics(newest),
    )  # fmt: skip


def _judge(options: Options, temp_dirs: list[Path]) -> tuple[str | None, bool]:
    """Return why earlier remains are cleared away, and whether a saved queue may be used."""
    recovery, output_dir = options.recovery, options.output_dir
    managed = options.managed_config is not None or (output_dir / MANAGED_NAME).is_file()
    remains = bool(temp_dirs) or (output_dir / RESUME_NAME).exists()
    if recovery.policy is ResumePolicy.FRESH_ONLY:
        return ("the resume policy is fresh_only" if remains else None), False
    if recovery.max_temp_dirs is not None and len(temp_dirs) > recovery.max_temp_dirs:
        return f"{len(temp_dirs)} temporary directories are more than {recovery.max_temp_dirs}", False
    if is_poisoned(output_dir, managed=managed):
        return ("the saved queue is poisoned" if recovery.reset_poisoned else None), False
    return None, True


def reset(state: CrawlState, clock: Clock) -> Consolidation:
    """Keep every WARC file under its stable name, then remove temporary directories, saved queue and state.

    NoSpace, Unavailable or StableNameTaken if a file cannot be kept: then nothing has been removed.
    """
    output_dir = state.output_dir
    folders = all_temp_dirs(output_dir)
    kept = consolidate(output_dir, warcs_in(folders), clock)
    remove_temp_dirs(output_dir, folders)
    (output_dir / RESUME_NAME).unlink(missing_ok=True)
    state.forget()
    log.get().info("remains.reset", created=kept.created, reused=kept.reused, folders=len(folders))
    return kept


def remove_temp_dirs(output_dir: Path, folders: list[Path]) -> None:
    """Remove temporary directories of this output directory, and nothing else."""
    for folder in folders:
        if is_temp_dir(folder, output_dir):
            shutil.rmtree(folder)
