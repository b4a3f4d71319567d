"""What the end of a run means to whoever called for it: finished, try again, or mend the configuration first. Pure."""

from __future__ import annotations

import errno
import re
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from holdfast.archive_tool.discovery import discover_warcs
from holdfast.archive_tool.lines import Statistics
from holdfast.archive_tool.logs import failure_text, last_loud_line, last_statistics, newest_crawl_log
from holdfast.archive_tool.state import load_state

FINALIZATION_FAILED = "warc_complete_finalization_failed"
"""The stage of a job whose WARC files are complete although the run ended badly."""
USAGE_MARK = "archive-tool: error:"
STOPPED_MARK = "archive-tool: stopped"
MAX_INFRA_ERRORS = 5
_STORAGE = frozenset({
    errno.ENOTCONN, errno.EIO, errno.ETIMEDOUT, errno.ENETUNREACH, errno.ECONNREFUSED, errno.EHOSTUNREACH,
    errno.ENOSPC, errno.ESTALE, errno.EROFS,
})  # fmt: skip
_INFRA_TEXT = re.compile(
    r"not writable|permission denied|transport endpoint (?:is )?not connected|read-only file system"
    r"|no space left on device|input/output error|stale file handle"
    r"|cannot connect to the docker daemon|docker does not answer"
    r"|errno:? ?(?:107|13|1)\b",
    re.I,
)
_CONFIG_TEXT = re.compile(
    r"unrecognized arguments|unknown option|zimit: error:|unable to find image|pull access denied"
    r"|invalid reference format",
    re.I,
)


class CrawlerStatus(StrEnum):
    """In a word, how the crawler ended."""

    SUCCESS = "success"
    FAILED = "failed"
    INFRA = "infra_error"
    CONFIG = "infra_error_config"


class Result(NamedTuple):
    """What a job becomes: the status, the crawler's word, and the stage if there is something to say."""

    status: str
    crawler_status: CrawlerStatus
    stage: str | None = None


_SUCCESS = Result("completed", CrawlerStatus.SUCCESS)
_INFRA = Result("retryable", CrawlerStatus.INFRA)
_CONFIG = Result("failed", CrawlerStatus.CONFIG)
_FAILED = Result("failed", CrawlerStatus.FAILED)


def is_storage_errno(code: int | None) -> bool:
    """Return whether an errno says that the storage is in trouble, not the file."""
    return code in _STORAGE


def classify_error(exc: BaseException, output_dir: Path) -> Result:
    """Return what an exception around a run means: storage trouble may be tried again, the rest is for a person.

    EACCES and EPERM count as storage trouble only for a path below the output directory.
    """
    seen: BaseException | None = exc
    while seen is not None:
        if isinstance(seen, OSError):
            denied = seen.errno in (errno.EACCES, errno.EPERM) and _is_below(seen.filename, output_dir)
            if is_storage_errno(seen.errno) or denied:
                return _INFRA
        seen = seen.__cause__
    return _CONFIG


def _is_below(name: object, output_dir: Path) -> bool:
    return isinstance(name, str | bytes | Path) and Path(
        name.decode(errors="replace") if isinstance(name, bytes) else name
    ).is_relative_to(output_dir)


def is_config_text(text: str) -> bool:
    """Return whether what was logged says that the arguments themselves are wrong: the same again fails the same."""
    return bool(_CONFIG_TEXT.search(text)) or USAGE_MARK in text


def is_infra_text(text: str) -> bool:
    """Return whether what was logged says that the storage or its permissions are the trouble."""
    return bool(_INFRA_TEXT.search(text))


def classify_exit(exit_code: int, output_dir: Path, said: str = "") -> Result:
    """Return what an exit code means, with the logs in the output directory and what the tool itself said.

    In this order: success; a run that was stopped; a configuration that the tool refused; an output directory that is
    none; a crawl that came to its end and whose final build failed, for whatever reason; storage trouble; a
    configuration that zimit refused; a crawl that failed, but whose WARC files are complete; a crawl that failed.
    """
    if exit_code == 0:
        return _SUCCESS
    if STOPPED_MARK in said:
        return Result("retryable", CrawlerStatus.FAILED, "stopped")
    if USAGE_MARK in said or not _is_directory(output_dir):
        return _CONFIG if USAGE_MARK in said or not is_infra_text(said) else _INFRA
    if awaits_build(output_dir):
        return Result("completed", CrawlerStatus.FAILED, FINALIZATION_FAILED)
    text = f"{said}\n{failure_text(output_dir)}"
    if is_infra_text(text):
        return _INFRA
    if is_config_text(text):
        return _CONFIG
    if is_warc_complete(output_dir):
        return Result("completed", CrawlerStatus.FAILED, FINALIZATION_FAILED)
    return _FAILED


def _is_directory(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def is_warc_complete(output_dir: Path) -> bool:
    """Return whether the crawl itself came to its end: nothing pending or queued, and WARC files to index."""
    found = crawl_statistics(output_dir)
    return found is not None and found.is_complete and bool(discover_warcs(output_dir).files)


def awaits_build(output_dir: Path) -> bool:
    """Return whether the crawl came to its end with WARC files, and only its ZIM was not built."""
    try:
        return load_state(output_dir, 1).awaits_build and bool(discover_warcs(output_dir).files)
    except OSError:
        return False


def crawl_statistics(output_dir: Path) -> Statistics | None:
    """Return the last statistics of the newest log of a crawl, or None."""
    log = newest_crawl_log(output_dir)
    return None if log is None else last_statistics(log)


_MAX_REASON = 1000
_STATE_LINE = re.compile(r"archive-tool: [a-z_]+")


def failure_reason(output_dir: Path, said: str, exit_code: int) -> str:
    """Return in one line why a run failed: what the tool itself said, and the last loud line of its newest log.

    The combined log has the whole story; a person who looks at the job must not have to open it to know where to begin.
    """
    lines = [line.strip() for line in said.splitlines() if line.strip() and not line.lstrip().startswith("{")]
    words = list(dict.fromkeys(lines))[-3:] or [f"archive-tool ended with {exit_code}"]
    sentences = [line for line in words if not _STATE_LINE.fullmatch(line)]
    reason = (sentences or words)[-1]
    found = last_loud_line(output_dir)
    if found is not None and not sentences:
        reason = f"{reason}; {found[0]}: {found[1]}"
    return reason[:_MAX_REASON]


class PageCounts(NamedTuple):
    """What a job row keeps of the statistics."""

    crawled: int
    total: int
    failed: int
    log_path: Path


def page_counts(output_dir: Path) -> PageCounts | None:
    """Return the page counts of the newest log of a crawl with its path, or None if it reports none."""
    log = newest_crawl_log(output_dir)
    found = None if log is None else last_statistics(log)
    if log is None or found is None:
        return None
    return PageCounts(found.crawled, found.total, max(found.failed, 0), log)


def infra_errors_exhausted(history: Sequence[CrawlerStatus]) -> bool:
    """Return whether the last runs all ended in storage trouble, as many as are tried."""
    recent = history[-MAX_INFRA_ERRORS:]
    return len(recent) == MAX_INFRA_ERRORS and all(status is CrawlerStatus.INFRA for status in recent)
