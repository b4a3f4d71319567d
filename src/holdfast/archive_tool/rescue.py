"""What a failed crawl becomes when its policy knows another backend, and the words for where it stands. Pure.

Storage trouble and configuration errors never come here: they spend no failure (1.4 of the facts, HA-038).
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import NamedTuple

from holdfast.archive_tool.contract import ExecutionPolicy
from holdfast.archive_tool.options import ResumePolicy

FALLBACK_TRIES = 2
FRESH_FAILED, FALLBACK_FAILED, EXHAUSTED = "fresh_failed", "fallback_failed", "fallback_exhausted"
_PROMOTED = "promoted_to_"


class RescueWord(StrEnum):
    """How far a job is from its first plan."""

    NORMAL = "normal"
    FRESH_FAILED = "fresh-failed"
    FALLBACK_ACTIVE = "fallback-active"
    FALLBACK_RETRY = "fallback-retry"
    FALLBACK_EXHAUSTED = "fallback-exhausted"


class Rescue(NamedTuple):
    """What a job becomes after a failure."""

    status: str
    stage: str
    policy: ExecutionPolicy
    restarts_count: bool
    """Whether failures are counted from nothing again."""


def is_promoted(policy: ExecutionPolicy) -> bool:
    """Return whether the fallback has replaced the backend that the job began with."""
    return policy.primary_backend is not None and policy.capture_backend != policy.primary_backend


def after_failure(policy: ExecutionPolicy, failures: int) -> Rescue | None:
    """Return what follows the n-th failure in a row with this backend; None if the ordinary retry rules apply.

    Fresh phases fail up to the budget, then the fallback takes the backend's place; it may fail once, not twice.
    """
    if is_promoted(policy):
        if failures >= FALLBACK_TRIES:
            return Rescue("failed", EXHAUSTED, policy, False)
        return Rescue("retryable", FALLBACK_FAILED, policy, False)
    if policy.resume_policy != ResumePolicy.FRESH_ONLY.value or policy.fallback_backend == "none":
        return None
    if failures < max(1, policy.max_fresh_failures_before_fallback):
        return Rescue("retryable", FRESH_FAILED, policy, False)
    promoted = replace(
        policy, capture_backend=policy.fallback_backend, primary_backend=policy.capture_backend,
        last_promoted_from_backend=policy.capture_backend, last_promotion_reason=f"{failures} fresh failures",
    )  # fmt: skip
    return Rescue("retryable", f"{_PROMOTED}{policy.fallback_backend}", promoted, True)


def rescue_word(policy: ExecutionPolicy, stage: str | None) -> RescueWord:
    """Return how far a job is from its first plan."""
    if stage == EXHAUSTED:
        return RescueWord.FALLBACK_EXHAUSTED
    if is_promoted(policy):
        return RescueWord.FALLBACK_RETRY if stage == FALLBACK_FAILED else RescueWord.FALLBACK_ACTIVE
    return RescueWord.FRESH_FAILED if stage == FRESH_FAILED else RescueWord.NORMAL


_PLAIN = {
    "queued": "queued", "completed": "awaiting-index", "indexing": "indexing", "indexed": "search-ready",
    "index_failed": "index-failed",
}  # fmt: skip


def operator_state(status: str, policy: ExecutionPolicy, stage: str | None) -> str:
    """Return the word that operators see for a job's status, backend and stage; an unknown status stays itself."""
    word = rescue_word(policy, stage)
    if status == "running":
        if word is RescueWord.FALLBACK_RETRY:
            return "running-rescue"
        return "running-fallback" if is_promoted(policy) else "running-primary"
    if status == "retryable":
        return {
            RescueWord.FRESH_FAILED: "waiting-fresh-retry", RescueWord.FALLBACK_ACTIVE: "waiting-fallback",
            RescueWord.FALLBACK_RETRY: "waiting-fallback-retry",
        }.get(word, "waiting-retry")  # fmt: skip
    if status == "failed":
        return "failed-fallback-exhausted" if word is RescueWord.FALLBACK_EXHAUSTED else "failed"
    return _PLAIN.get(status, status)
