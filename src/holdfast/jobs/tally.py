"""What a native crawl did, in the fields of document 003's crawl_metrics (3.6 of the facts). Pure.

`extraction_quality` is added when the files were indexed; `skipped.non_html` is what a source without bodies left out.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final, NamedTuple

from holdfast.frontier import Summary
from holdfast.jobs.endings import Counts
from holdfast.types import Kind, Outcome

_TOP: Final = 10
_CAPTURED: Final = (Outcome.SUCCESS.value,)
_RULED_OUT: Final = (Outcome.EXCLUDED.value, Outcome.BLOCKED_ROBOTS.value)
_UNSUPPORTED: Final = "unsupported_type"
"""Why a source that keeps no bodies leaves an answer out."""


class Timing(NamedTuple):
    """How long the answers took, in milliseconds; nothing if there were none."""

    average_ms: float | None
    min_ms: float | None
    max_ms: float | None


def counts_of(outcomes: dict[str, int], *, pages: int, queue: int) -> Counts:
    """Return the counts of an execution from its totals, while it runs or at its end."""
    failed = sum(count for word, count in outcomes.items() if word not in (*_CAPTURED, *_RULED_OUT))
    return Counts(items_crawled=pages, items_failed=failed, items_total=sum(outcomes.values()) + queue)


def counted(summary: Summary) -> Counts:
    """Return the counts of an execution that is over, from its rows: a killed process may have told too much."""
    failed = sum(count for word, count in summary.outcomes.items() if word not in (*_CAPTURED, *_RULED_OUT))
    crawled = summary.kinds.get((Kind.PAGE.value, Outcome.SUCCESS.value), 0)
    return Counts(items_crawled=crawled, items_failed=failed, items_total=summary.total)


def crawl_metrics(summary: Summary, timing: Timing, *, requests: int) -> dict[str, Any]:
    """Return the metrics of an execution that is over."""
    failed: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for (outcome, reason), count in summary.reasons.items():
        if outcome not in (*_CAPTURED, *_RULED_OUT, "open"):
            failed[outcome] += count
            reasons[reason] += count
    too_deep = sum(count for (rule, _host), count in summary.exclusions.items() if rule == "max_depth")
    robots = summary.outcomes.get(Outcome.BLOCKED_ROBOTS.value, 0)
    # What was captured was not skipped, whatever its type: only a source without bodies passes types over.
    other = sum(count for (_outcome, reason), count in summary.reasons.items() if reason == _UNSUPPORTED)
    return {
        "status_codes": {str(code): count for code, count in sorted(summary.statuses.items())},
        "requests_total": requests, "requests_failed": failed.total(), "bytes_downloaded": summary.wire_bytes,
        "rate_limits": summary.statuses.get(429, 0), "error_categories": dict(failed),
        "top_errors": [{"message": reason, "count": count} for reason, count in reasons.most_common(_TOP)],
        "response_time": {"avg_ms": timing.average_ms, "min_ms": timing.min_ms, "max_ms": timing.max_ms},
        "skipped": {"non_html": other, "max_depth": too_deep, "robots_txt": robots},
    }  # fmt: skip
