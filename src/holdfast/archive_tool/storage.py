"""What a job's WARC storage weighs and whether it is whole: statistics by inode, verification of files and manifest.

Nothing here changes anything. A disk that does not answer is told apart from a file that is damaged.
"""

from __future__ import annotations

import errno
import os
import stat
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.archive_tool.outcome import crawl_statistics, is_storage_errno
from holdfast.archive_tool.state import temp_dirs_in
from holdfast.archive_tool.warc_files import (
    WARCS,
    ManifestStatus,
    StableFile,
    discover_warcs,
    read_job_manifest,
    sha256_of_file,
    warcs_below,
)
from holdfast.errors import HoldfastError, Invalid
from holdfast.gzip_streams import GZIP, DeflateStream, EndOfInput
from holdfast.warc.verify import verify_file


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
