"""What may be moved or removed in a job's directory, by hand or by a retention rule: damaged files aside, remains away.

Every WARC file that is whole keeps a stable name before anything else is touched, and nothing outside the job is.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from holdfast.archive_tool.run import RESUME_NAME, remove_temp_dirs
from holdfast.archive_tool.state import STATE_NAME
from holdfast.archive_tool.storage import ErrorKind, WarcVerdict
from holdfast.archive_tool.warc_files import WARCS, ToolWarcFile, all_temp_dirs, consolidate, copied_files, warcs_in
from holdfast.archive_tool.zimit_flags import MANAGED_NAME
from holdfast.clock import Clock, digits14
from holdfast.errors import Invalid
from holdfast.warc.member import ByteSource, open_source
from holdfast.warc.outfile import disk_error, sync_directory
from holdfast.warc.reader import DamagedWarc, Record, read_records
from holdfast.warc.verify import verify_file

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


COMPACTED = "warcs_compacted"
DROPPED_KINDS = ("video/", "audio/")
_PIECE = 1024 * 1024


class Compacted(NamedTuple):
    """One staged copy."""

    source: Path
    staged: Path
    before_bytes: int
    after_bytes: int
    dropped: int
    """Records that the copy leaves out."""


def compact(
    output_dir: Path, files: Iterable[ToolWarcFile], clock: Clock, kinds: tuple[str, ...] = DROPPED_KINDS
) -> list[Compacted]:
    """Stage smaller copies under `warcs_compacted/<moment>/` and return them; files with nothing to drop have none.

    DamagedWarc if a file is damaged (a copy would hide that); Invalid if a copy does not verify; NoSpace or Unavailable
    if the disk refuses.
    """
    folder = output_dir / COMPACTED / digits14(clock.now())
    return [made for file in files if (made := _compact_one(file, folder, kinds)) is not None]


class Compactable(NamedTuple):
    """What a compaction of one file would leave out."""

    source: Path
    before_bytes: int
    dropped: int
    dropped_bytes: int


def measure(files: Iterable[ToolWarcFile], kinds: tuple[str, ...] = DROPPED_KINDS) -> list[Compactable]:
    """Return what `compact` would leave out, and write nothing; files with nothing to drop are not listed."""
    found = []
    for file in files:
        gone = [length for _, length, drop in _spans(file.path, kinds) if drop]
        if gone:
            found.append(Compactable(file.path, file.size, len(gone), sum(gone)))
    return found


def _spans(path: Path, kinds: tuple[str, ...]) -> list[tuple[int, int, bool]]:
    return [(record.offset, record.length, _is_dropped(record, kinds)) for record in read_records(path)]


def _compact_one(file: ToolWarcFile, folder: Path, kinds: tuple[str, ...]) -> Compacted | None:
    spans = _spans(file.path, kinds)
    dropped = sum(drop for _, _, drop in spans)
    if not dropped:
        return None
    if len({offset for offset, _, _ in spans}) != len(spans) or any(length <= 0 for _, length, _ in spans):
        raise Invalid(f"{file.path} holds several records in one member; they cannot be copied one by one")
    target = folder / file.path.name
    if target.exists():
        raise Invalid(f"two files are called {target.name}; compact them one after the other")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with open_source(file.path) as source, target.open("xb") as out:
            for offset, length, drop in spans:
                if not drop:
                    _copy(source, offset, length, out.write)
            out.flush()
            os.fsync(out.fileno())
    except OSError as exc:
        raise disk_error(exc, f"cannot write {target}: {exc.strerror}") from exc
    report = verify_file(target)
    if not report.ok or report.records != len(spans) - dropped:
        raise Invalid(f"the copy {target} does not verify: {report.problems[:1]}; the original is as it was")
    return Compacted(file.path, target, file.size, target.stat().st_size, dropped)


def _is_dropped(record: Record, kinds: tuple[str, ...]) -> bool:
    drop = False
    if record.head.type == "response":
        try:
            head, _ = record.http()
            drop = (head.media_type or "").startswith(kinds)
        except DamagedWarc as damage:
            if damage.kind != "http_head":
                raise
    record.drain()
    return drop


def _copy(source: ByteSource, offset: int, length: int, write: Callable[[bytes], int]) -> None:
    while length:
        piece = source.at(offset, min(length, _PIECE))
        if not piece:
            raise Invalid("the file became shorter while it was copied; nothing was changed")
        write(piece)
        offset += len(piece)
        length -= len(piece)
