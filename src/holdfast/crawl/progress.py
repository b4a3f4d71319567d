"""Running totals of one process, and what is slow and why; written with each settle, so they never claim too much."""

from __future__ import annotations

from collections import Counter, deque
from typing import Any

from holdfast.clock import Clock
from holdfast.crawl.lag import LagMeter
from holdfast.types import Visit

_RATE_S = 10.0


class Progress:
    """Counts by the words of the report; plain integers, because this is on the path of every page."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._samples: deque[tuple[float, int]] = deque([(clock.monotonic(), 0)])
        self.pages = 0
        """Pages captured: attempts of kind page that ended well."""
        self.requests = 0
        self.wire_bytes = 0
        self.outcomes: Counter[str] = Counter()
        self.retries = 0
        self.refused = 0
        """Results that came after the lease was gone."""
        self.state = "running"
        self.trouble: str | None = None
        """What keeps it from going on, in words, with what helps."""
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

    def _rate(self) -> float:
        """Return the pages a second over the last ten seconds, and take a sample."""
        now = self._clock.monotonic()
        while len(self._samples) > 1 and now - self._samples[1][0] >= _RATE_S:
            self._samples.popleft()
        since, pages = self._samples[0]
        self._samples.append((now, self.pages))
        return round((self.pages - pages) / (now - since), 2) if now > since else 0.0

    def counts(self) -> dict[str, Any]:
        """Return what is written to the database."""
        return {
            "pages": self.pages, "requests": self.requests, "bytes": self.wire_bytes, "outcomes": dict(self.outcomes),
            "retries": self.retries, "refused": self.refused, "state": self.state, "trouble": self.trouble,
            "active_domains": self.active_domains, "pages_s": self._rate(), "slow": self.slow,
            "loop_lag_ms": self.lag.figures(),
        }  # fmt: skip
