"""One verdict over a job's storage: pass, incomplete or fail, with a code for everything that is not as it should."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.archive_tool.discovery import discover_warcs
from holdfast.archive_tool.manifest import ManifestStatus
from holdfast.archive_tool.outcome import crawl_statistics
from holdfast.archive_tool.state import temp_dirs_in
from holdfast.archive_tool.storage import (
    NO_WEIGHT,
    ErrorKind,
    ManifestLevel,
    storage_statistics,
    verify_manifest,
    verify_warc,
)


class Verdict(StrEnum):
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
    verdict = Verdict.FAIL if fails else Verdict.INCOMPLETE if issues else Verdict.PASS
    return {
        "verdict": verdict.value, "output_dir": str(output_dir), "level": level,
        "issues": [{"code": issue.code, "detail": issue.detail, "fails": issue.fails} for issue in issues],
        "warc_files": weight.warc_files, "warc_bytes": weight.warc_bytes, "tmp_bytes": weight.tmp_bytes,
    }  # fmt: skip


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
