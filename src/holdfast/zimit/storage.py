"""Size and integrity of a job's WARC storage: statistics by inode, verification of files and manifest.

Disk failures are distinguished from damaged files. Also decides which files in a job's directory may be moved
or deleted, by hand or by a retention rule: every intact WARC file gets a stable name first, and nothing outside
the job is touched.
"""

from __future__ import annotations

import os
import shutil
import stat
import zlib
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from pathlib import Path

from holdfast.clock import Clock, digits14
from holdfast.errors import HoldfastError, Invalid
from holdfast.gzip_streams import GZIP, DeflateStream, EndOfInput
from holdfast.records import Operator, from_row, record
from holdfast.storage.disk import disk_error, sha256_of_file, sync_directory, synced
from holdfast.warc.member import open_source
from holdfast.warc.reader import DamagedWarc, Record, read_records
from holdfast.warc.repair import copy_bytes
from holdfast.warc.verify import verify_file
from holdfast.zimit.logs import crawl_statistics
from holdfast.zimit.outcome import is_storage_errno
from holdfast.zimit.output_directory import (
    MANAGED_NAME,
    RESUME_NAME,
    STATE_NAME,
    remove_temp_dirs,
    temp_dirs_in,
)
from holdfast.zimit.warc_files import (
    WARCS,
    ManifestStatus,
    StableFile,
    ToolWarcFile,
    consolidate,
    copied_files,
    discover_warcs,
    read_job_manifest,
    source_of,
    stable_warcs,
    temp_warcs,
    warcs_below,
    warcs_in,
)


@record
class StorageStatistics:
    """Size of one job in bytes; a file with several names counts once."""

    warc_files: Operator[int]
    warc_bytes: Operator[int]
    output_bytes: Operator[int]
    tmp_bytes: Operator[int]
    tmp_non_warc_bytes: Operator[int]


NO_WEIGHT = StorageStatistics(warc_files=0, warc_bytes=0, output_bytes=0, tmp_bytes=0, tmp_non_warc_bytes=0)


def storage_statistics(output_dir: Path) -> StorageStatistics:
    """Return the size of a job's directory; raise OSError if the disk fails."""
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
    INFRA = "infra_error"
    CORRUPT = "corrupt_or_unreadable"
    NOT_A_FILE = "not_a_file"
    EMPTY = "empty_file"


@record
class WarcVerdict:
    """Result of the verification of one file."""

    path: Operator[Path]
    ok: Operator[bool]
    error_kind: Operator[ErrorKind | None] = None
    error: Operator[str | None] = None
    records: Operator[int | None] = None


def _bad(path: Path, kind: ErrorKind, error: str, records: int | None = None) -> WarcVerdict:
    return WarcVerdict(path=path, ok=False, error_kind=kind, error=error, records=records)


def verify_warc(path: Path, level: int = 1) -> WarcVerdict:
    """Return whether a WARC file is intact: level 0 checks the file, 1 its gzip stream, 2 every record."""
    if level not in (0, 1, 2):
        raise Invalid(f"there is no level {level}; 0 looks at the file, 1 at the gzip stream, 2 at every record")
    try:
        seen = path.stat()
        if not stat.S_ISREG(seen.st_mode):
            return _bad(path, ErrorKind.NOT_A_FILE, "it is no regular file")
        if seen.st_size == 0:
            return _bad(path, ErrorKind.EMPTY, "there is nothing in it")
        # Cheapest first: a broken stream needs no look at its records.
        if level >= 1 and (why := _broken_stream(path)):
            return _bad(path, ErrorKind.CORRUPT, why)
        return _verify_records(path) if level == 2 else WarcVerdict(path=path, ok=True)
    except FileNotFoundError:
        return _bad(path, ErrorKind.NOT_A_FILE, "there is no such file")
    except (HoldfastError, OSError) as exc:
        cause = exc if isinstance(exc, OSError) else exc.__cause__
        # A file that we may not read is not damaged: it must not be moved aside.
        denied = isinstance(cause, PermissionError)
        is_infra = denied or (isinstance(cause, OSError) and is_storage_errno(cause.errno))
        kind = ErrorKind.INFRA if is_infra else ErrorKind.CORRUPT
        return _bad(path, kind, f"errno {exc.errno}: {exc.strerror}" if isinstance(exc, OSError) else str(exc))


def _verify_records(path: Path) -> WarcVerdict:
    report = verify_file(path)
    if report.ok:
        return WarcVerdict(path=path, ok=True, records=report.records)
    first = report.problems[0]
    why = f"{report.problem_count} problems, the first at {first.offset} ({first.kind}): {first.detail}"
    return _bad(path, ErrorKind.CORRUPT, why, report.records)


def _broken_stream(path: Path) -> str | None:
    """Return why a file's gzip stream is broken, or None; inflates members in steps to bound memory."""
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


@record
class WarcReport:
    """Verification results of many files."""

    level: Operator[int]
    warcs_total: Operator[int]
    warcs_ok: Operator[int]
    warcs_failed: Operator[int]
    errors: Operator[dict[str, int]]
    """Number of files by kind of error."""
    results: Operator[list[WarcVerdict]]


def warc_report(verdicts: Sequence[WarcVerdict], level: int) -> WarcReport:
    failed = sum(not verdict.ok for verdict in verdicts)
    return WarcReport(
        level=level,
        warcs_total=len(verdicts),
        warcs_ok=len(verdicts) - failed,
        warcs_failed=failed,
        errors={kind.value: sum(verdict.error_kind is kind for verdict in verdicts) for kind in ErrorKind},
        results=list(verdicts),
    )


class ManifestLevel(StrEnum):
    PRESENCE = "presence"
    SIZE = "size"
    HASH = "hash"


@record
class ManifestReport:
    """Comparison of a job's stable files with their manifest. Orphans are listed but are not failures."""

    valid: Operator[bool]
    """Whether every entry of the manifest matches its file."""
    manifest_status: Operator[ManifestStatus]
    level: Operator[ManifestLevel]
    entries_total: Operator[int]
    entries_verified: Operator[int]
    missing: Operator[list[str]]
    size_mismatches: Operator[list[str]]
    hash_mismatches: Operator[list[str]]
    orphaned: Operator[list[str]]

    def describe(self) -> str:
        status = self.manifest_status
        lines = [] if status is ManifestStatus.VALID else [f"the manifest is {status.value}"]
        lines += [f"missing: {name}" for name in self.missing]
        lines += [f"size differs: {name}" for name in self.size_mismatches]
        lines += [f"hash differs: {name}" for name in self.hash_mismatches]
        lines += [f"warning: {name} is in no entry" for name in self.orphaned]
        lines.append(f"{self.entries_verified} of {self.entries_total} entries verified ({self.level.value})")
        return "\n".join([*lines, f"Status: {'OK' if self.valid else 'FAILED'}"])


def verify_manifest(output_dir: Path, level: ManifestLevel = ManifestLevel.SIZE) -> ManifestReport:
    """Compare the files in `warcs/` with their manifest."""
    warcs_dir = output_dir / WARCS
    status, entries, _ = read_job_manifest(warcs_dir)
    found = [(entry.stable_name, _compare(warcs_dir, entry, level)) for entry in entries]
    listed = {name for name, _ in found}
    orphans = sorted(file.path.name for file in warcs_below(warcs_dir) if file.path.name not in listed)

    def those(verdict: str) -> list[str]:
        return [name for name, said in found if said == verdict]

    verified = len(those("ok"))
    return ManifestReport(
        valid=status is ManifestStatus.VALID and verified == len(found),
        manifest_status=status,
        level=level,
        entries_total=len(found),
        entries_verified=verified,
        missing=those("missing"),
        size_mismatches=those("size"),
        hash_mismatches=those("hash"),
        orphaned=orphans,
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
    PASS = "pass"  # noqa: S105 a verdict, no password
    INCOMPLETE = "incomplete"
    FAIL = "fail"


@record
class Issue:
    """A problem of a job's storage."""

    code: Operator[str]
    detail: Operator[str]
    fails: Operator[bool]


@record
class IntegrityReport:
    """Verdict on the storage of a job, with its issues and counts."""

    verdict: Operator[StorageVerdict]
    output_dir: Operator[str]
    level: Operator[int]
    issues: Operator[list[Issue]]
    warc_files: Operator[int]
    warc_bytes: Operator[int]
    tmp_bytes: Operator[int]


def integrity_report(output_dir: Path, *, level: int = 1) -> IntegrityReport:
    """Return the verdict with its issues and counts.

    `fail`: data is lost or damaged. `incomplete`: all data is intact, but the job is not finished (no WARC files,
    files only in temporary directories, or a crawl with pages left). `level` is the verification level of the
    files.
    """
    output_dir = output_dir.resolve()
    try:
        issues, weight = _issues(output_dir, level), storage_statistics(output_dir)
    except OSError as exc:
        issues, weight = [_issue(ErrorKind.INFRA.value, f"{output_dir}: errno {exc.errno}: {exc.strerror}")], NO_WEIGHT
    fails = any(issue.fails for issue in issues)
    verdict = StorageVerdict.FAIL if fails else StorageVerdict.INCOMPLETE if issues else StorageVerdict.PASS
    return from_row(IntegrityReport, weight, verdict=verdict, output_dir=str(output_dir), level=level, issues=issues)


def _issue(code: str, detail: str, *, fails: bool = True) -> Issue:
    return Issue(code=code, detail=detail, fails=fails)


def _issues(output_dir: Path, level: int) -> list[Issue]:
    if not output_dir.is_dir():
        return [_issue("output_dir_missing", str(output_dir))]
    files = discover_warcs(output_dir)
    issues = [
        _issue(verdict.error_kind.value if verdict.error_kind else "unknown", f"{verdict.path}: {verdict.error}")
        for verdict in (verify_warc(file.path, level) for file in files)
        if not verdict.ok
    ]
    manifest = verify_manifest(output_dir)
    if manifest.manifest_status is ManifestStatus.VALID:
        issues += [_issue("warc_missing", name) for name in manifest.missing]
        issues += [_issue("warc_size_mismatch", name) for name in manifest.size_mismatches]
        issues += [_issue("warc_orphaned", name, fails=False) for name in manifest.orphaned]
    elif manifest.manifest_status is not ManifestStatus.MISSING:
        issues.append(_issue(f"manifest_{manifest.manifest_status.value}", str(output_dir)))
    if not files:
        issues.append(_issue("no_warcs", "there is nothing to index", fails=False))
    elif source_of(output_dir, files) != "stable":
        count = len(temp_dirs_in(output_dir))
        issues.append(_issue("not_consolidated", f"{count} temporary directories", fails=False))
    last = crawl_statistics(output_dir)
    if last is not None and not last.is_complete:
        issues.append(_issue("crawl_incomplete", f"{last.crawled} of {last.total} crawled", fails=False))
    return issues


QUARANTINE = "warcs_quarantine"
PROVENANCE = "provenance"


def quarantine(output_dir: Path, verdicts: Iterable[WarcVerdict], clock: Clock) -> list[Path]:
    """Move damaged WARC files to `warcs_quarantine/<time>/` and return their new paths.

    Paths below the job are preserved. Only damaged files move: a file the disk could not read may be intact. Raise
    `Invalid` if a file does not belong to the job. The caller rejects jobs that are running or whose snapshots
    refer to these files.
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
    for folder in temp_dirs_in(output_dir):
        for file in warcs_below(folder):
            if file.identity in away:
                file.path.unlink()
    return moved


def clean_temp(output_dir: Path) -> tuple[int, bool]:
    """Delete temporary directories, including their WARC files, and the state (mode `temp`).

    Return how many directories there were, and whether there was a state.

    The caller must ensure that this job is indexed or abandoned and that no replay uses these files.
    """
    output_dir = output_dir.resolve()
    folders, had_state = temp_dirs_in(output_dir), (output_dir / STATE_NAME).exists()
    remove_temp_dirs(output_dir, folders)
    (output_dir / STATE_NAME).unlink(missing_ok=True)
    return len(folders), had_state


def lost_by_cleaning(output_dir: Path, kept: Iterable[Path]) -> list[Path]:
    """Return the temporary WARC files that exist nowhere else and that mode `temp` would lose.

    `kept` lists folders beside the temporary ones whose files are permanent.
    """
    output_dir = output_dir.resolve()
    stable = stable_warcs(output_dir)
    safe = {file.identity for file in (*stable, *warcs_in(kept))} | copied_files(output_dir, stable)
    return [file.path for file in temp_warcs(output_dir) if file.identity not in safe]


def clean_temp_nonwarc(
    output_dir: Path, clock: Clock, on_kept: Callable[[dict[Path, Path]], None] = lambda moved: None
) -> tuple[int, bool]:
    """Give temporary WARC files stable names, copy state and settings to `provenance/`, delete the rest.

    `on_kept` receives the new path of each temporary WARC file before anything is deleted, so that rows can be updated
    first. Return as `clean_temp` does. Raise `NoSpace`, `Unavailable` or `StableNameTaken` if a file cannot be
    preserved; nothing is deleted then.
    """
    output_dir = output_dir.resolve()
    files = temp_warcs(output_dir)
    paths, _ = consolidate(output_dir, files, clock)
    # Rows follow before the old names go.
    on_kept({file.path: path for file, path in zip(files, paths, strict=True)})
    folder = output_dir / PROVENANCE
    for name in (STATE_NAME, RESUME_NAME, MANAGED_NAME):
        if (output_dir / name).is_file():
            folder.mkdir(exist_ok=True)
            shutil.copy2(output_dir / name, folder / name.lstrip("."))
    return clean_temp(output_dir)


COMPACTED = "warcs_compacted"
DROPPED_KINDS = ("video/", "audio/")


@record
class Compacted:
    """A smaller copy of a WARC file, staged or planned."""

    file: Operator[Path]
    staged: Operator[Path | None]
    """The copy; null if none was written."""
    before_bytes: Operator[int]
    after_bytes: Operator[int]
    dropped: Operator[int]
    """Records that the copy omits."""


def compact(output_dir: Path, files: Iterable[ToolWarcFile], clock: Clock, *, dry_run: bool = False) -> list[Compacted]:
    """Write smaller copies to `warcs_compacted/<time>/` and return them; files with nothing to drop get none.

    A dry run writes nothing and returns the same. Raise `DamagedWarc` if a file is damaged (a copy would hide the
    damage), `Invalid` if a copy fails verification, `NoSpace` or `Unavailable` if the disk fails.
    """
    folder, made = output_dir / COMPACTED / digits14(clock.now()), []
    for file in files:
        spans = [(record.offset, record.length, _is_dropped(record)) for record in read_records(file.path)]
        gone = [length for _, length, drop in spans if drop]
        if gone:
            staged = None if dry_run else _write_smaller(file.path, folder / file.path.name, spans)
            sizes = {"before_bytes": file.size, "after_bytes": file.size - sum(gone), "dropped": len(gone)}
            made.append(Compacted(file=file.path, staged=staged, **sizes))
    return made


def _write_smaller(path: Path, target: Path, spans: Sequence[tuple[int, int, bool]]) -> Path:
    # Several records in one gzip member cannot be copied one by one without compressing them again.
    if len({offset for offset, _, _ in spans}) != len(spans) or any(length <= 0 for _, length, _ in spans):
        raise Invalid(f"{path} holds several records in one member; they cannot be copied one by one")
    if target.exists():
        raise Invalid(f"two files are called {target.name}; compact them one after the other")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with open_source(path) as source, synced(target, "xb") as out:
            for offset, length, drop in spans:
                if not drop:
                    copy_bytes(source, offset, offset + length, out.fileno())
    except OSError as exc:
        raise disk_error(exc, f"cannot write {target}: {exc.strerror}") from exc
    # The copy is read back before anything is said of it.
    report = verify_file(target)
    if not report.ok or report.records != sum(not drop for *_, drop in spans):
        raise Invalid(f"the copy {target} does not verify: {report.problems[:1]}; the original is as it was")
    return target


def _is_dropped(record: Record) -> bool:
    drop = False
    if record.head.type == "response":
        try:
            head, _ = record.http()
            drop = (head.media_type or "").startswith(DROPPED_KINDS)
        except DamagedWarc as damage:
            if damage.kind != "http_head":
                raise
    record.drain()
    return drop
