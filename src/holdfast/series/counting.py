"""Counts a batch of visits, in the columns of the table `series`. Pure functions: no database."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from holdfast.types import FAILURES, REDIRECTED, Outcome, UrlKind, Visit

LATENCY_S: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of the latency histogram of attempts; one more class holds longer attempts."""
_LATENCY_US: Final = tuple(round(bound * 1_000_000) for bound in LATENCY_S)
LATENCY: Final = (
    *("latency_50ms", "latency_100ms", "latency_250ms", "latency_500ms", "latency_1s", "latency_2500ms"),
    *("latency_5s", "latency_10s", "latency_30s", "latency_longer"),
)
"""One column for each class, in order."""
OUTCOMES: Final = tuple(outcome.value for outcome in Outcome)
STATUSES: Final = ("status_2xx", "status_3xx", "status_4xx", "status_5xx", "status_other")
COUNTED: Final = (
    *("pages", "requests", "bytes", "links", "unchanged", "retries"),
    *OUTCOMES,
    *STATUSES,
    *LATENCY,
    *("latency_ms", "circuits_opened", "circuits_closed", "imported_records", "imported_bytes", "queue"),
)
"""Columns that are summed. `queue` is the growth of the queue: the sum over all rows is its length."""
_STATUS_BY_CLASS = dict(enumerate(STATUSES[:-1], 2))

Counts = Counter[str]
"""The increase of each column; missing columns do not grow."""


def count_visits(visits: Sequence[Visit]) -> Counts:
    """Return the counts of these attempts; a rescheduled one is a retry, and none of the outcomes."""
    # Use plain numbers and lists of words: this runs for every page, and a Counter per figure took four times as long.
    words: list[str] = []
    requests = wire_bytes = pages = unchanged = retries = latency_us = 0
    for visit in visits:
        status = visit.status
        if visit.requests:
            requests += visit.requests
            wire_bytes += visit.wire_bytes
            took = visit.finished_at - visit.started_at
            took_us = took.seconds * 1_000_000 + took.microseconds if took.days == 0 else _us(took)
            words.append(LATENCY[bisect_left(_LATENCY_US, took_us)])
            latency_us += took_us
        if status is not None:
            words.append(_STATUS_BY_CLASS.get(status // 100, "status_other"))
        if visit.retry_at is not None:
            retries += 1
            continue
        words.append(visit.outcome.value)
        if visit.outcome is Outcome.SUCCESS:
            pages += visit.attempt.kind is UrlKind.PAGE and visit.reason != REDIRECTED
            unchanged += status == 304 or visit.reason == "unchanged"
    counts: Counts = Counter(words)
    counts.update(requests=requests, bytes=wire_bytes, pages=pages, unchanged=unchanged, retries=retries)
    counts["latency_ms"], counts["queue"] = latency_us // 1000, retries - len(visits)
    return counts


def _us(took: timedelta) -> int:
    """Return a duration in microseconds, at least 0: the clock may be set back during a request."""
    return max(0, round(took.total_seconds() * 1_000_000))


def attempts_of(counts: Counts) -> int:
    return counts["retries"] + sum(counts[outcome] for outcome in OUTCOMES)


def failures_of(counts: Counts) -> int:
    return sum(counts[outcome] for outcome in FAILURES)


def percentile_of(counts: Counts, share: float) -> float | None:
    """Return the upper bound for this share of attempts; None if it exceeds the last bound, or without attempts."""
    left = share * sum(counts[name] for name in LATENCY)
    if not left:
        return None
    for bound, name in zip(LATENCY_S, LATENCY, strict=False):
        left -= counts[name]
        if left <= 0:
            return bound
    return None
