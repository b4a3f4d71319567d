"""Running totals of one process, and what is slow and why; written with each settle, so they never claim too much."""

from __future__ import annotations

from collections import Counter
from typing import Any

from holdfast.crawl.lag import LagMeter
from holdfast.types import Visit


class Progress:
    """Counts by the words of the report; plain integers, because this is on the path of every page."""

    def __init__(self) -> None:
        self.pages = 0
        """Pages captured: attempts of kind page that ended well."""
        self.requests = 0
        self.wire_bytes = 0
        self.outcomes: Counter[str] = Counter()
        self.retries = 0
        self.refused = 0
        """Results that came after the lease was gone."""
        self.state = "running"
        self.active_domains = 0
        self.slow: list[dict[str, Any]] = []
        self.lag = LagMeter()

    def asked(self, wire_bytes: int) -> None:
        """Count one request that was sent, whatever for."""
        self.requests += 1
        self.wire_bytes += wire_bytes

    def settled(self, visit: Visit) -> None:
        """Count an attempt that was settled."""
        if visit.retry_at is not None:
            self.retries += 1
            return
        self.outcomes[visit.outcome.value] += 1
        self.pages += visit.attempt.kind == "page" and visit.outcome == "success"

    def unsettled(self, visit: Visit) -> None:
        """Take back the count of an attempt whose result was refused: a newer owner settles it."""
        self.refused += 1
        if visit.retry_at is not None:
            self.retries -= 1
            return
        self.outcomes[visit.outcome.value] -= 1
        self.pages -= visit.attempt.kind == "page" and visit.outcome == "success"

    def counts(self) -> dict[str, Any]:
        """Return what is written to the database."""
        return {
            "pages": self.pages, "requests": self.requests, "bytes": self.wire_bytes, "outcomes": dict(self.outcomes),
            "retries": self.retries, "refused": self.refused, "state": self.state,
            "active_domains": self.active_domains, "slow": self.slow, "loop_lag_ms": self.lag.figures(),
        }  # fmt: skip
