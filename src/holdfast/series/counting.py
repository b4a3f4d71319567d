"""What is counted of a batch of visits, in the columns of the table `series`. Pure: no database."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from typing import Final

from holdfast.types import Outcome, UrlKind, Visit

LATENCY_S: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of the histogram of an attempt's time; what takes longer stands in a last class of its own."""
LATENCY: Final = (
    *("latency_50ms", "latency_100ms", "latency_250ms", "latency_500ms", "latency_1s", "latency_2500ms"),
    *("latency_5s", "latency_10s", "latency_30s", "latency_longer"),
)
"""One column for each class, in order."""
OUTCOMES: Final = tuple(outcome.value for outcome in Outcome)
FAILURES: Final = ("failed", "timeout", "blocked_4xx", "blocked_5xx")
"""Outcomes that count as failed; what a rule of ours or of a robots file kept out does not."""
STATUSES: Final = ("status_2xx", "status_3xx", "status_4xx", "status_5xx", "status_other")
COUNTED: Final = (
    *("pages", "requests", "bytes", "links", "unchanged", "retries"),
    *OUTCOMES,
    *STATUSES,
    *LATENCY,
    *("latency_ms", "circuits_opened", "circuits_closed", "imported_records", "imported_bytes", "queue"),
)
"""Columns that add up. `queue` is by how much the queue grew: the sum over all rows is how long it is."""
_STATUS_BY_CLASS = dict(enumerate(STATUSES[:-1], 2))

Counts = Counter[str]
"""How much each column grows; what is missing does not."""


def count_visits(visits: Iterable[Visit]) -> Counts:
    """Return what these attempts add; one that is tried again is a retry, and none of the outcomes."""
    counts: Counts = Counter()
    for visit in visits:
        counts["queue"] -= 1
        if visit.requests:
            counts["requests"] += visit.requests
            counts["bytes"] += visit.wire_bytes
            # The clock of a machine may be set back while a page is on its way.
            took_s = max(0.0, (visit.finished_at - visit.started_at).total_seconds())
            counts[LATENCY[bisect_left(LATENCY_S, took_s)]] += 1
            counts["latency_ms"] += round(took_s * 1000)
        if visit.status is not None:
            counts[_STATUS_BY_CLASS.get(visit.status // 100, "status_other")] += 1
        if visit.retry_at is not None:
            counts["retries"] += 1
            counts["queue"] += 1
            continue
        counts[visit.outcome.value] += 1
        if visit.outcome is Outcome.SUCCESS:
            counts["pages"] += visit.attempt.kind is UrlKind.PAGE
            counts["unchanged"] += visit.reason == "unchanged" or visit.status == 304
    return counts


def attempts_of(counts: Counts) -> int:
    """Return how many attempts were settled."""
    return counts["retries"] + sum(counts[outcome] for outcome in OUTCOMES)


def failures_of(counts: Counts) -> int:
    """Return how many addresses failed."""
    return sum(counts[outcome] for outcome in FAILURES)


def percentile_of(counts: Counts, share: float) -> float | None:
    """Return the bound below which this share of attempts took; None if it is beyond the last, or there were none."""
    left = share * sum(counts[name] for name in LATENCY)
    if not left:
        return None
    for bound, name in zip(LATENCY_S, LATENCY, strict=False):
        left -= counts[name]
        if left <= 0:
            return bound
    return None
