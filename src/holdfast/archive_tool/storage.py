"""What a job's WARC storage weighs and whether it is whole: statistics by inode, verification of files and manifest.

A disk that does not answer is told apart from a file that is damaged. Then: what may be moved or removed in a job's
directory, by hand or by a retention rule. Every WARC file that is whole keeps a stable name before anything else is
touched, and nothing outside the job is.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.archive_tool.outcome import crawl_statistics, is_storage_errno
from holdfast.archive_tool.output_directory import STATE_NAME, temp_dirs_in
from holdfast.archive_tool.run import RESUME_NAME, remove_temp_dirs
from holdfast.archive_tool.warc_files import (
    WARCS,
    ManifestStatus,
    StableFile,
    ToolWarcFile,
    all_temp_dirs,
    consolidate,
    copied_files,
    discover_warcs,
    read_job_manifest,
    sha256_of_file,
    warcs_below,
    warcs_in,
)
from holdfast.archive_tool.zimit_flags import MANAGED_NAME
from holdfast.clock import Clock, digits14
from holdfast.errors import HoldfastError, Invalid
from holdfast.gzip_streams import GZIP, DeflateStream, EndOfInput
from holdfast.warc.member import ByteSource, open_source
from holdfast.warc.outfile import disk_error, sync_directory
from holdfast.warc.reader import DamagedWarc, Record, read_records
from holdfast.warc.verify import verify_file

_PIECE = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageStatistics:
    """Bytes of one job; a file with several names counts once."""

    warc_files: int
    warc_bytes: int
    output_bytes: int
    tmp_bytes: int
    tmp_non_warc_bytes: int


NO_WEIGHT = StorageStatistics(warc_files=0, warc_bytes=0, output_bytes=0, tmp_bytes=0, tmp_non_warc_bytes=0)


def storage_statistics(output_dir: Path) -> StorageStatistics:
    """Return what a job's directory weighs; OSError if the disk does not answer."""
    output_dir = output_dir.resolve()
    temp = _inodes(temp_dirs_in(output_dir))
    warcs = {file.identity: file.size for file in warcs_below(output_dir)}
    return StorageStatistics(
        warc_files=len(warcs),
        warc_bytes=sum(warcs.values()),
        output_bytes=sum(_inodes([output_dir]).values()),
        tmp_bytes=sum(temp.values()),
        tmp_non_warc_bytes=sum(size for inode, size in temp.items() if inode not in warcs),
    )


def _inodes(folders: Iterable[Path]) -> dict[tuple[int, int], int]:
    found: dict[tuple[int, int], int] = {}
    for folder in folders:
        for root, _folders, names in os.walk(folder, followlinks=False):
            for name in names:
                try:
                    seen = os.lstat(os.path.join(root, name))  # noqa: PTH118 millions of names; Path costs 5 us each
                except OSError:
                    continue
                if stat.S_ISREG(seen.st_mode):
                    found[seen.st_dev, seen.st_ino] = seen.st_size
    return found


class ErrorKind(StrEnum):
    """Why a WARC file did not pass."""

    INFRA = "infra_error"
    CORRUPT = "corrupt_or_unreadable"
    NOT_A_FILE = "not_a_file"
    EMPTY = "empty_file"


class WarcVerdict(NamedTuple):
    """What was found about one file."""

    path: Path
    ok: bool
    error_kind: ErrorKind | None = None
    error: str | None = None
    records: int | None = None

    def as_json(self) -> dict[str, Any]:
        """Return it as the report shows it."""
        return {
            "path": str(self.path),
            "ok": self.ok,
            "error_kind": self.error_kind and self.error_kind.value,
            "error": self.error,
            "records": self.records,
        }


def verify_warc(path: Path, level: int = 1) -> WarcVerdict:
    """Return whether a WARC file is whole: 0 looks at the file, 1 reads its gzip stream, 2 reads every record."""
    if level not in (0, 1, 2):
        raise Invalid(f"there is no level {level}; 0 looks at the file, 1 at the gzip stream, 2 at every record")
    try:
        seen = path.stat()
        if not stat.S_ISREG(seen.st_mode):
            return WarcVerdict(path, False, ErrorKind.NOT_A_FILE, "it is no regular file")
        if seen.st_size == 0:
            return WarcVerdict(path, False, ErrorKind.EMPTY, "there is nothing in it")
        # Cheapest first: a broken stream needs no look at its records.
        if level >= 1 and (why := _broken_stream(path)):
            return WarcVerdict(path, False, ErrorKind.CORRUPT, why)
        return _verify_records(path) if level == 2 else WarcVerdict(path, True)
    except FileNotFoundError:
        return WarcVerdict(path, False, ErrorKind.NOT_A_FILE, "there is no such file")
    except HoldfastError as exc:
        cause = exc.__cause__
        kind = ErrorKind.INFRA if isinstance(cause, OSError) and _is_infra(cause) else ErrorKind.CORRUPT
        return WarcVerdict(path, False, kind, str(exc))
    except OSError as exc:
        kind = ErrorKind.INFRA if _is_infra(exc) else ErrorKind.CORRUPT
        return WarcVerdict(path, False, kind, f"errno {exc.errno}: {exc.strerror}")


def _verify_records(path: Path) -> WarcVerdict:
    """Read every record to its end, with lengths and digests; the first problem is told."""
    report = verify_file(path)
    if report.ok:
        return WarcVerdict(path, True, records=report.records)
    first = report.problems[0]
    why = f"{report.problem_count} problems, the first at {first.offset} ({first.kind}): {first.detail}"
    return WarcVerdict(path, False, ErrorKind.CORRUPT, why, report.records)


def _is_infra(exc: OSError) -> bool:
    # A file that we may not read is not damaged: it must not be moved aside.
    return is_storage_errno(exc.errno) or exc.errno in (errno.EACCES, errno.EPERM)


def _broken_stream(path: Path) -> str | None:
    """Return why the gzip stream of a file is broken, or None; members are inflated in steps and nothing is kept."""
    if not path.name.endswith(".gz"):
        return None
    with path.open("rb") as file:
        at, size = 0, os.fstat(file.fileno()).st_size
        while at < size:
            member = DeflateStream(lambda start, count: os.pread(file.fileno(), count, start), at, GZIP)
            try:
                for _ in member:
                    pass
            except EndOfInput:
                return "the gzip stream ends too early"
            except zlib.error as exc:
                return f"the gzip stream is broken: {exc}"
            at = member.end or size
    return None


def warc_report(verdicts: Sequence[WarcVerdict], level: int) -> dict[str, Any]:
    """Return the report over many files: totals by kind of error, and one entry for each."""
    kinds = {kind.value: sum(verdict.error_kind is kind for verdict in verdicts) for kind in ErrorKind}
    failed = sum(not verdict.ok for verdict in verdicts)
    return {
        "level": level,
        "warcs_total": len(verdicts),
        "warcs_ok": len(verdicts) - failed,
        "warcs_failed": failed,
        "errors": kinds,
        "results": [verdict.as_json() for verdict in verdicts],
    }


class ManifestLevel(StrEnum):
    """How closely files are compared with their manifest."""

    PRESENCE = "presence"
    SIZE = "size"
    HASH = "hash"


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestReport:
    """How a job's stable files compare with their manifest. Orphans are told, and fail nothing."""

    status: ManifestStatus
    level: ManifestLevel
    entries_total: int
    entries_verified: int
    missing: tuple[str, ...]
    size_mismatches: tuple[str, ...]
    hash_mismatches: tuple[str, ...]
    orphaned: tuple[str, ...]

    @property
    def valid(self) -> bool:
        """Whether everything that the manifest lists is as it says."""
        return self.status is ManifestStatus.VALID and self.entries_verified == self.entries_total

    def as_json(self) -> dict[str, Any]:
        """Return it as the report shows it."""
        return {
            "valid": self.valid,
            "manifest_status": self.status.value,
            "level": self.level.value,
            "entries_total": self.entries_total,
            "entries_verified": self.entries_verified,
            "missing": list(self.missing),
            "size_mismatches": list(self.size_mismatches),
            "hash_mismatches": list(self.hash_mismatches),
            "orphaned": list(self.orphaned),
        }

    def describe(self) -> str:
        """Return it as lines for a person; the last is the verdict."""
        problems = [
            *([] if self.status is ManifestStatus.VALID else [f"the manifest is {self.status.value}"]),
            *(f"missing: {name}" for name in self.missing),
            *(f"size differs: {name}" for name in self.size_mismatches),
            *(f"hash differs: {name}" for name in self.hash_mismatches),
            *(f"warning: {name} is in no entry" for name in self.orphaned),
        ]
        counted = f"{self.entries_verified} of {self.entries_total} entries verified ({self.level.value})"
        return "\n".join([*problems, counted, f"Status: {'OK' if self.valid else 'FAILED'}"])


def verify_manifest(output_dir: Path, level: ManifestLevel = ManifestLevel.SIZE) -> ManifestReport:
    """Return how the files in `warcs/` compare with the manifest there."""
    warcs_dir = output_dir / WARCS
    manifest = read_job_manifest(warcs_dir)
    found = [(entry.stable_name, _compare(warcs_dir, entry, level)) for entry in manifest.entries]
    listed = {entry.stable_name for entry in manifest.entries}
    orphans = sorted(file.path.name for file in warcs_below(warcs_dir) if file.path.name not in listed)

    def those(verdict: str) -> tuple[str, ...]:
        return tuple(name for name, said in found if said == verdict)

    return ManifestReport(
        status=manifest.status,
        level=level,
        entries_total=len(found),
        entries_verified=len(those("ok")),
        missing=those("missing"),
        size_mismatches=those("size"),
        hash_mismatches=those("hash"),
        orphaned=tuple(orphans),
    )


def _compare(warcs_dir: Path, entry: StableFile, level: ManifestLevel) -> str:
    path = warcs_dir / entry.stable_name
    if not path.is_file():
        return "missing"
    if level is not ManifestLevel.PRESENCE and path.stat().st_size != entry.size_bytes:
        return "size"
    if level is ManifestLevel.HASH and sha256_of_file(path) != entry.sha256:
        return "hash"
    return "ok"


class StorageVerdict(StrEnum):
    """How a job's storage stands."""

    PASS = "pass"  # noqa: S105 a verdict, no password
    INCOMPLETE = "incomplete"
    FAIL = "fail"


class Issue(NamedTuple):
    """One thing that is not as it should be."""

    code: str
    detail: str
    fails: bool


def integrity_report(output_dir: Path, *, level: int = 1) -> dict[str, Any]:
    """Return the verdict with its issues and counts.

    `fail`: something is lost or damaged. `incomplete`: nothing is, but the job is not finished (no WARC files, files
    that only stand in temporary directories, a crawl with pages left). `level` is that of the files' own verification.
    """
    output_dir = output_dir.resolve()
    try:
        issues, weight = _issues(output_dir, level), storage_statistics(output_dir)
    except OSError as exc:
        trouble = Issue(ErrorKind.INFRA.value, f"{output_dir}: errno {exc.errno}: {exc.strerror}", True)
        issues, weight = [trouble], NO_WEIGHT
    fails = any(issue.fails for issue in issues)
    verdict = StorageVerdict.FAIL if fails else StorageVerdict.INCOMPLETE if issues else StorageVerdict.PASS
    return {
        "verdict": verdict.value,
        "output_dir": str(output_dir),
        "level": level,
        "issues": [{"code": issue.code, "detail": issue.detail, "fails": issue.fails} for issue in issues],
        "warc_files": weight.warc_files,
        "warc_bytes": weight.warc_bytes,
        "tmp_bytes": weight.tmp_bytes,
    }


def _issues(output_dir: Path, level: int) -> list[Issue]:
    if not output_dir.is_dir():
        return [Issue("output_dir_missing", str(output_dir), True)]
    found = discover_warcs(output_dir)
    issues = [
        Issue(verdict.error_kind.value if verdict.error_kind else "unknown", f"{verdict.path}: {verdict.error}", True)
        for verdict in (verify_warc(file.path, level) for file in found.files)
        if not verdict.ok
    ]
    if found.manifest_status in (ManifestStatus.INVALID, ManifestStatus.UNREADABLE):
        issues.append(Issue(f"manifest_{found.manifest_status.value}", str(output_dir), True))
    elif found.manifest_status is ManifestStatus.VALID:
        issues += _manifest_issues(output_dir)
    if not found.files:
        issues.append(Issue("no_warcs", "there is nothing to index", False))
    elif found.source not in ("stable",):
        issues.append(Issue("not_consolidated", f"{len(temp_dirs_in(output_dir))} temporary directories", False))
    last = crawl_statistics(output_dir)
    if last is not None and not last.is_complete:
        issues.append(Issue("crawl_incomplete", f"{last.crawled} of {last.total} crawled", False))
    return issues


def _manifest_issues(output_dir: Path) -> list[Issue]:
    report = verify_manifest(output_dir, ManifestLevel.SIZE)
    return [
        *(Issue("warc_missing", name, True) for name in report.missing),
        *(Issue("warc_size_mismatch", name, True) for name in report.size_mismatches),
        *(Issue("warc_orphaned", name, False) for name in report.orphaned),
    ]


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
        # A rename that is lost in a power cut would leave a row that names no file.
        sync_directory(target.parent)
        moved.append(target)
    # The temporary name of the same file would bring the damage back with the next run.
    away = {(found.st_dev, found.st_ino) for found in (path.stat() for path in moved)}
    for folder in all_temp_dirs(output_dir):
        for file in warcs_below(folder):
            if file.identity in away:
                file.path.unlink()
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
    """Remove temporary directories, WARC files in them included, and the state (mode `temp`).

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
    # Rows follow before the old names go.
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
    # Several records in one gzip member cannot be copied one by one without being compressed anew.
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
    # The copy is read back before anything is said of it.
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
