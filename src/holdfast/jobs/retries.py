"""What follows a failed run: tried again, and when, or given up. Pure; the clock and the rows are the caller's."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

CAP_S = 3600
"""No wait between two tries is longer (NC-025)."""
ZIMIT_RETRIES = 2
"""Document 000 gives a crawl two more chances, at once (HA-091)."""


class Failure(StrEnum):
    """Whose fault a failed run was."""

    FAILED = "failed"
    """The crawl's: it burns a retry."""
    INFRA = "infra_error"
    """The machine's (storage, mount, network): waits for a cooldown and burns none."""
    CONFIG = "infra_error_config"
    """The configuration's: trying again changes nothing (HA-038)."""
    LEASE_LOST = "lease_lost"
    """Its owners fell silent too often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How patient a job is."""

    max_retries: int = 3
    base_s: float = 60
    cap_s: float = CAP_S
    infra_cooldown_s: float = 600
    infra_retries: int = 5
    """Failures of the machine in a row after which the job is given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """The run is tried again after a wait."""

    wait: timedelta
    retries: int
    """What the job's counter of burnt retries becomes."""
    infra_retries: int = 0


def backoff(base_s: float, attempt: int, *, cap_s: float = CAP_S) -> timedelta:
    """Return the wait before a try: base·2^(attempt-1), never over the cap; the first try is attempt 1."""
    doublings = min(max(attempt, 1) - 1, 32)
    return timedelta(seconds=min(base_s * 2**doublings, cap_s))


def policy_for(backend: str, policy: RetryPolicy) -> RetryPolicy:
    """Return the policy as the backend's document has it: native waits longer each time, zimit is tried at once."""
    if backend != "zimit":
        return policy
    return RetryPolicy(
        max_retries=min(policy.max_retries, ZIMIT_RETRIES), base_s=0, cap_s=policy.cap_s,
        infra_cooldown_s=policy.infra_cooldown_s, infra_retries=policy.infra_retries,
    )  # fmt: skip


def after_failure(failure: Failure, policy: RetryPolicy, *, retries: int, infra_retries: int) -> Again | None:
    """Return when a failed run is tried again, or None if it is given up."""
    if failure is Failure.CONFIG:
        return None
    if failure is Failure.INFRA:
        if infra_retries >= policy.infra_retries:
            return None
        wait = timedelta(seconds=policy.infra_cooldown_s)
        return Again(wait=wait, retries=retries, infra_retries=infra_retries + 1)
    if retries >= policy.max_retries:
        return None
    return Again(wait=backoff(policy.base_s, retries + 1, cap_s=policy.cap_s), retries=retries + 1)
