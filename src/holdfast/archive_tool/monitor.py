"""The watch over one stage: what the log says goes in, and now and then a signal comes out. Pure; time is handed in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from holdfast.archive_tool.lines import Statistics, error_class, read_statistics
from holdfast.archive_tool.state import ERROR_KINDS


class Signal(NamedTuple):
    """Something must be done about the crawl."""

    status: str
    """`stalled` or `error`."""
    reason: str


NO_STATISTICS = Signal("stalled", "no_stats")
NO_PROGRESS = Signal("stalled", "timeout")
TIMEOUTS = Signal("error", "timeout_threshold")
HTTP_ERRORS = Signal("error", "http_threshold")


class Limits(NamedTuple):
    """When there is trouble."""

    stall_s: float
    timeout_errors: int
    http_errors: int


@dataclass(slots=True, kw_only=True)
class Monitor:
    """Counters of one stage. Errors are counted since the last progress or signal."""

    limits: Limits
    started: float
    errors: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ERROR_KINDS, 0))
    last: Statistics | None = None
    progressed: float | None = None
    quiet_since: float = field(init=False)
    """When the wait for the first statistics began: at the start, or at the last signal about them."""

    def __post_init__(self) -> None:
        self.quiet_since = self.started

    def hear(self, line: bytes, now: float) -> None:
        """Take in one line of the log."""
        found = read_statistics(line)
        if found is not None:
            if self.last is None or found.crawled != self.last.crawled:
                self.progressed = now
                self.clear_errors()
            self.last = found
            return
        kind = error_class(line)
        if kind is not None:
            self.errors[kind] += 1

    def check(self, now: float) -> Signal | None:
        """Return what is wrong now, the first of: no statistics, no progress, timeouts, HTTP errors.

        A signal clears the error counters. Only one about a standstill begins its own wait anew: a crawl that stands
        still is noticed even if its errors keep raising other signals.
        """
        signal = self._trouble(now)
        if signal is not None:
            self.clear_errors()
        return signal

    def _trouble(self, now: float) -> Signal | None:
        if self.last is None and now - self.quiet_since > self.limits.stall_s:
            self.quiet_since = now
            return NO_STATISTICS
        waiting = self.last is not None and self.last.pending != 0
        if waiting and self.progressed is not None and now - self.progressed > self.limits.stall_s:
            self.progressed = now
            return NO_PROGRESS
        if self.errors["timeout"] >= self.limits.timeout_errors:
            return TIMEOUTS
        return HTTP_ERRORS if self.errors["http"] >= self.limits.http_errors else None

    def clear_errors(self) -> None:
        """Count errors from nothing again."""
        self.errors = dict.fromkeys(ERROR_KINDS, 0)
