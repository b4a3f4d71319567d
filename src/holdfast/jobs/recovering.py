"""Whether a running job needs help: stalled, or slow for long, and not helped too often or in vain. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from holdfast.config import RecoverySettings

DAY = timedelta(hours=24)


class Help(StrEnum):
    """What is done, or noted, for a job; kept in `recoveries`."""

    RESTART_STALLED = "restart_stalled"
    RESTART_SLOW = "restart_slow"
    SEEN_SLOW = "seen_slow"
    SEEN_FINE = "seen_fine"
    """It was slow before, and is not any more."""
    WOKEN = "woken"
    NOTHING = "nothing"


RESTARTS = (Help.RESTART_STALLED, Help.RESTART_SLOW)


class Sight(NamedTuple):
    """What can be seen of a running job from outside."""

    pages: int
    running_s: float
    """Since its present holder took it."""
    idle_s: float
    """Since its count of pages last changed, or since it was taken if it never did."""
    pages_per_minute: float | None
    """None if nothing can be said."""


class Helped(NamedTuple):
    """One earlier deed or note."""

    at: datetime
    action: str
    pages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What is to be done for a job, and why; or why nothing is."""

    help: Help
    reason: str


def decide(sight: Sight, history: Sequence[Helped], limits: RecoverySettings, *, now: datetime) -> Decision:
    """Return what a job needs. `history` holds a day of what was done for it, oldest first."""
    if sight.running_s < limits.guard_s:
        return Decision(help=Help.NOTHING, reason="just_started")
    if sight.idle_s >= limits.stalled_s:
        return _restart(Help.RESTART_STALLED, sight, history, limits, now)
    slow = sight.pages_per_minute is not None and sight.pages_per_minute < limits.slow_pages_per_minute
    noted = _streak(history)
    if slow and noted + 1 >= limits.slow_looks:
        return _restart(Help.RESTART_SLOW, sight, history, limits, now)
    if slow:
        return Decision(help=Help.SEEN_SLOW, reason=f"slow {noted + 1} of {limits.slow_looks}")
    return Decision(help=Help.SEEN_FINE if noted else Help.NOTHING, reason="healthy")


def _restart(wanted: Help, sight: Sight, history: Sequence[Helped], limits: RecoverySettings,
             now: datetime) -> Decision:  # fmt: skip
    """Return a restart unless it was tried a moment ago, too often today, or in vain each time."""
    restarts = [one for one in history if one.action in RESTARTS]
    if restarts and (now - restarts[-1].at).total_seconds() < limits.guard_s:
        return Decision(help=Help.NOTHING, reason="just_helped")
    if sum(now - one.at < DAY for one in restarts) >= limits.per_day:
        return Decision(help=Help.NOTHING, reason="helped_too_often")
    recent = restarts[-limits.breaker_times :]
    if len(recent) == limits.breaker_times and max(_yields(recent, sight.pages)) < limits.breaker_pages:
        return Decision(help=Help.NOTHING, reason="breaker_open")
    return Decision(help=wanted, reason="stalled" if wanted is Help.RESTART_STALLED else "slow")


def _yields(restarts: Sequence[Helped], pages: int) -> list[int]:
    """Return the new pages that each restart led to; a crawl that counts from nothing again counts from there."""
    ends = [*(one.pages for one in restarts[1:]), pages]
    return [end - one.pages if end >= one.pages else end for one, end in zip(restarts, ends, strict=True)]


def _streak(history: Sequence[Helped]) -> int:
    count = 0
    for one in reversed(history):
        if one.action != Help.SEEN_SLOW:
            break
        count += 1
    return count
