"""Classify the end of a run for its caller: finished, retry, or fix the configuration first. Only reads."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from holdfast.jobs.endings import FailureCause
from holdfast.zimit.flags import ResumePolicy, backend_of
from holdfast.zimit.logs import crawl_statistics, failure_text, last_loud_line, newest_log
from holdfast.zimit.output_directory import load_state
from holdfast.zimit.warc_files import discover_warcs


class EndState(StrEnum):
    SUCCESS = "success"
    FAILED = "failed"
    MAX_ATTEMPTS = "failed_max_attempts"
    NO_WARCS = "failed_no_warcs"
    PATH_CONVERSION = "failed_warc_path_conversion"
    STATE_ERROR = "failed_state_error"
    DOCKER_START = "docker_start_failed"
    STOPPED = "stopped"
    BUILD_FAILED = "warc_complete_finalization_failed"

    @property
    def exit_code(self) -> int:
        return 0 if self is EndState.SUCCESS else 1


FINALIZATION_FAILED = EndState.BUILD_FAILED.value
"""Stage of a job whose WARC files are complete although the run failed."""
STOPPED = EndState.STOPPED.value
"""Stage of a job whose run was stopped; the next run continues in the same directory."""
USAGE_MARK = "archive-tool: error:"
STOPPED_MARK = "archive-tool: stopped"
_STORAGE = (
    *(errno.ENOTCONN, errno.EIO, errno.ETIMEDOUT, errno.ENETUNREACH, errno.ECONNREFUSED, errno.EHOSTUNREACH),
    *(errno.ENOSPC, errno.ESTALE, errno.EROFS),
)
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


Verdict = tuple[FailureCause | None, str | None]
"""Why a run failed, None if it did not; and its stage, where one is known."""


def is_complete(verdict: Verdict) -> bool:
    """Return whether the crawl itself finished, whatever became of its ZIM."""
    return verdict[0] is None or verdict[1] == FINALIZATION_FAILED


def is_storage_errno(code: int | None) -> bool:
    """Return whether an errno indicates a storage problem rather than a problem with one file."""
    return code in _STORAGE


def classify_exit(exit_code: int, output_dir: Path, said: str = "") -> Verdict:
    """Classify an exit code, using the logs in the output directory and the tool's own output.

    In this order: success; stopped run; configuration rejected by the tool; invalid output directory; finished
    crawl whose final build failed for any reason; storage problem; configuration rejected by zimit; failed crawl
    with complete WARC files; failed crawl.
    """
    if exit_code == 0:
        return None, None
    # A run that was asked to end goes on in the same directory; its exit code says only that it is not complete.
    if STOPPED_MARK in said:
        return FailureCause.FAILED, STOPPED
    # Also False if the storage does not answer.
    if USAGE_MARK in said or not os.path.isdir(output_dir):  # noqa: PTH112
        is_infra = USAGE_MARK not in said and _INFRA_TEXT.search(said)
        return FailureCause.INFRA if is_infra else FailureCause.CONFIG, None
    # Before storage trouble: a crawl that is complete is kept whatever kept its ZIM from being built.
    if awaits_build(output_dir):
        return FailureCause.FAILED, FINALIZATION_FAILED
    # Without the lines that a page may have written: a page that says "permission denied" is no trouble of ours.
    return classify_text(f"{said}\n{failure_text(newest_log(output_dir))}", output_dir)


def classify_text(text: str, output_dir: Path) -> Verdict:
    """Classify a crawl that failed by what it and its tool said."""
    if _INFRA_TEXT.search(text):
        return FailureCause.INFRA, None
    if USAGE_MARK in text or _CONFIG_TEXT.search(text):
        return FailureCause.CONFIG, None
    return FailureCause.FAILED, FINALIZATION_FAILED if is_warc_complete(output_dir) else None


def is_warc_complete(output_dir: Path) -> bool:
    """Return whether the crawl itself finished: nothing pending or queued, and WARC files to index."""
    found = crawl_statistics(output_dir)
    return found is not None and found.is_complete and bool(discover_warcs(output_dir))


def awaits_build(output_dir: Path) -> bool:
    """Return whether the crawl finished with WARC files and only its ZIM is missing."""
    try:
        return load_state(output_dir, 1).awaits_build and bool(discover_warcs(output_dir))
    except OSError:
        return False


_MAX_REASON = 1000
_STATE_LINE = re.compile(r"archive-tool: [a-z_]+")


def failure_reason(output_dir: Path, said: str, exit_code: int) -> str:
    """Return in one line why a run failed: the tool's own output and the last warning or error in its newest log.

    Lets an operator start from the job page instead of opening the combined log.
    """
    lines = [line.strip() for line in said.splitlines() if line.strip() and not line.lstrip().startswith("{")]
    words = list(dict.fromkeys(lines))[-3:] or [f"archive-tool ended with {exit_code}"]
    sentences = [line for line in words if not _STATE_LINE.fullmatch(line)]
    reason = (sentences or words)[-1]
    found = last_loud_line(output_dir)
    if found is not None and not sentences:
        reason = f"{reason}; {found[0]}: {found[1]}"
    return reason[:_MAX_REASON]


FALLBACK_TRIES = 2
FRESH_FAILED, FALLBACK_FAILED, EXHAUSTED = "fresh_failed", "fallback_failed", "fallback_exhausted"


Policy = Mapping[str, Any]
"""The `execution_policy` of a job; missing fields have their defaults."""


def is_promoted(policy: Policy) -> bool:
    return policy.get("primary_backend") not in (None, backend_of(policy))


def after_failure(policy: Policy, failures: int) -> tuple[str, Policy] | None:
    """Return stage and policy after the n-th consecutive failure with this backend; None for the ordinary retry rules.

    Fresh phases may fail up to the budget, then the fallback replaces the backend, and failures are counted from
    zero; the fallback may fail once. The job fails at the stage `EXHAUSTED`, otherwise it is retried.
    """
    # There is nothing to fall back to after it.
    if is_promoted(policy):
        return (EXHAUSTED if failures >= FALLBACK_TRIES else FALLBACK_FAILED), policy
    fallback, backend = policy.get("fallback_backend", "none"), backend_of(policy)
    if policy.get("resume_policy") != ResumePolicy.FRESH_ONLY.value or fallback == "none":
        return None
    if failures < max(1, policy.get("max_fresh_failures_before_fallback", 0)):
        return FRESH_FAILED, policy
    promotion = {
        "capture_backend": fallback,
        "primary_backend": backend,
        "last_promoted_from_backend": backend,
        "last_promotion_reason": f"{failures} fresh failures",
    }
    return f"promoted_to_{fallback}", {**policy, **promotion}


def rescue_word(policy: Policy, stage: str | None) -> str:
    """Return how far a job has moved from its original plan."""
    if stage == EXHAUSTED:
        return "fallback-exhausted"
    if is_promoted(policy):
        return "fallback-retry" if stage == FALLBACK_FAILED else "fallback-active"
    return "fresh-failed" if stage == FRESH_FAILED else "normal"


_OPERATOR_STATES = {
    ("queued", None): "queued",
    ("completed", None): "awaiting-index",
    ("indexing", None): "indexing",
    ("indexed", None): "search-ready",
    ("index_failed", None): "index-failed",
    ("running", None): "running-primary",
    ("running", "fallback-active"): "running-fallback",
    ("running", "fallback-retry"): "running-rescue",
    ("running", "fallback-exhausted"): "running-fallback",
    ("retryable", None): "waiting-retry",
    ("retryable", "fresh-failed"): "waiting-fresh-retry",
    ("retryable", "fallback-active"): "waiting-fallback",
    ("retryable", "fallback-retry"): "waiting-fallback-retry",
    ("failed", "fallback-exhausted"): "failed-fallback-exhausted",
}
"""By status and rescue word; None is every other word."""


def operator_state(status: str, policy: Policy, stage: str | None) -> str:
    """Return the state that operators see for a job's status, backend and stage; unknown statuses pass through."""
    states = _OPERATOR_STATES
    return states.get((status, rescue_word(policy, stage))) or states.get((status, None), status)
