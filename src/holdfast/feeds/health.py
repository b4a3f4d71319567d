"""Rules for feed errors: classes, time of the next poll, and when to disable a feed. No I/O."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

from holdfast.config import FeedSettings
from holdfast.types import Outcome
from holdfast.values import dataclass

_CHILD_HOURS = 24
"""Hours between two polls of a sitemap from an index, unless the index gives it a newer date."""


class Trouble(StrEnum):
    RATE_LIMITED = "rate_limited"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    GONE = "gone"
    UPSTREAM_FAILURE = "upstream_failure"
    NETWORK = "network"
    PARSE_ERROR = "parse_error"
    UNEXPECTED = "unexpected"


# Consecutive polls with this trouble after which the feed is disabled; other troubles never disable one.
DISABLE_AFTER = {
    Trouble.NOT_FOUND: 3,
    Trouble.GONE: 1,
    Trouble.FORBIDDEN: 5,
    Trouble.UPSTREAM_FAILURE: 10,
    Trouble.NETWORK: 10,
    Trouble.PARSE_ERROR: 5,
}

# Stored instead of a trouble while an operator has disabled the feed: no response enables it then.
BY_HAND = "by_hand"

# Stored as the trouble of a feed with more items than may be queued: it is healthy, and the rest is read later.
BACKLOG = "backlog"

# Feeds that their responses disabled this long ago make room for new ones. Removed earlier, they would be requested
# again at every poll if an index still lists them.
FORGOTTEN_AFTER = timedelta(days=30)

_BY_STATUS = {429: Trouble.RATE_LIMITED, 403: Trouble.FORBIDDEN, 404: Trouble.NOT_FOUND, 410: Trouble.GONE}
_LIMIT_STEP = timedelta(minutes=5)
_LIMIT_STEPS = 96
_SILENT = (Outcome.FAILED, Outcome.TIMEOUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedHealth:
    errors: int = 0
    """Consecutive errors of the same class."""
    trouble: str | None = None
    disabled_at: datetime | None = None
    next_poll_at: datetime | None = None
    """None while it is disabled."""


def trouble_of(outcome: Outcome, status: int | None) -> Trouble | None:
    """Return the class of a failed outcome; None for success. Responses are judged by status, failures by kind."""
    if status is not None:
        if status in _BY_STATUS:
            return _BY_STATUS[status]
        if 500 <= status <= 599:
            return Trouble.UPSTREAM_FAILURE
        # A successful response with a truncated body: its status alone would count as a success.
        if outcome is Outcome.FAILED and 200 <= status <= 299:
            return Trouble.NETWORK
        return None if outcome is Outcome.SUCCESS else Trouble.UNEXPECTED
    return Trouble.NETWORK if outcome in _SILENT else Trouble.UNEXPECTED


def limited_wait(errors: int) -> timedelta:
    """Return how long to pause a feed after this many consecutive 429 responses."""
    # 2, 4, 8 … 96 steps of five minutes: at most eight hours, or a feed that was limited once would never be polled
    # again.
    steps: int = min(2 ** min(errors, 10), _LIMIT_STEPS)
    return steps * _LIMIT_STEP


def after_failure(
    before: FeedHealth, trouble: Trouble, *, now: datetime, interval: timedelta, retry_after_s: float | None = None
) -> FeedHealth:
    """Return the health of a feed after a failed poll: polled again later, or disabled.

    A longer Retry-After of the server overrides our own wait.
    """
    # Another class of error restarts the count: a 500 that becomes a 404 is a different trouble.
    errors = before.errors + 1 if before.trouble == trouble else 1
    limit = DISABLE_AFTER.get(trouble)
    # A feed that is already disabled keeps its date: 30 days later it makes room for new ones.
    if limit is not None and errors >= limit:
        return FeedHealth(errors=errors, trouble=trouble.value, disabled_at=before.disabled_at or now)
    wait = limited_wait(errors) if trouble is Trouble.RATE_LIMITED else interval
    wait = max(wait, timedelta(seconds=retry_after_s or 0.0))
    return FeedHealth(errors=errors, trouble=trouble.value, next_poll_at=now + wait)


def interval_of(origin: str, settings: FeedSettings) -> timedelta:
    """Return the usual time between two polls: long for a sitemap from an index, which announces its changes."""
    # Its index gives a date when it changes; the long interval is for indexes without dates.
    if origin == "index":
        return timedelta(hours=_CHILD_HOURS)
    return timedelta(minutes=settings.interval_minutes)


def asked_to_wait(health: FeedHealth, *, polled_at: datetime | None, interval: timedelta) -> bool:
    """Return whether the server requested a pause until the next poll: a 429, or a Retry-After beyond the usual.

    Such a feed is never polled early, neither by its job's schedule nor by hand.
    """
    if health.trouble == Trouble.RATE_LIMITED:
        return True
    if health.trouble is None or health.next_poll_at is None or polled_at is None:
        return False
    return health.next_poll_at - polled_at > interval


def after_success(*, now: datetime, interval: timedelta) -> FeedHealth:
    return FeedHealth(next_poll_at=now + interval)


def after_backlog(*, now: datetime, interval: timedelta) -> FeedHealth:
    """Return the health of a feed after a successful poll whose items could not all be stored."""
    return FeedHealth(trouble=BACKLOG, next_poll_at=now + interval)
