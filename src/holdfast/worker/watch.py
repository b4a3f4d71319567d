"""What a native crawl tells while a worker runs it: lines for its log, and its progress; only what is new."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from holdfast.jobs.endings import Counts
from holdfast.jobs.status import Status
from holdfast.jobs.tally import counts_of
from holdfast.worker.child import Cost
from holdfast.worker.running import Holding, Progress

_METRICS_S: Final = 30.0
_LINE_BYTES: Final = 64 * 1024
_RATE_EVENTS: Final = ("crawl.retry_after_clamped", "robots.delay_capped", "crawl.lane_waits")
_QUEUE_EVENTS: Final = ("crawl.lease_expires", "crawl.lease_over", "crawl.stray_leases", "crawl.release_later")
_TROUBLE: Final = ("failed", "timeout", "blocked_4xx", "blocked_5xx", "blocked_robots")
_PLAIN: Final = ("event", "level", "timestamp")


class Watch:
    """Passes on what the supervisor shows and what the processes write to their log; used by the runner's thread."""

    def __init__(self, holding: Holding, log_path: Path, *, now: float) -> None:
        self._holding, self._log_path = holding, log_path
        self._position = _size(log_path)
        self._outcomes: dict[str, int] = {}
        self._slow: set[str] = set()
        self._condition = "running"
        self._metrics_at = now

    def look(self, status: Status, cost: Cost, *, now: float) -> None:
        """Tell what is new since the last look, with what it has cost so far."""
        self.read_log()
        if status.condition != self._condition:
            self._condition = status.condition
            level = "error" if status.condition == "no_space" else "info"
            trouble = f": {status.trouble}" if status.trouble else ""
            self._holding.note(level, "lifecycle", f"the crawl is {status.condition}{trouble}")
        worse = {word: status.outcomes.get(word, 0) - self._outcomes.get(word, 0) for word in _TROUBLE}
        if new := {word: count for word, count in worse.items() if count > 0}:
            self._holding.note("warning", "fetch", "pages that could not be captured", **new)
        self._outcomes = dict(status.outcomes)
        self._note_slow(status)
        if now - self._metrics_at >= _METRICS_S:
            self._metrics_at = now
            self.note_metrics(status)
        self._holding.progress(Progress(counts=with_cost(status, cost)))

    def note_metrics(self, status: Status) -> None:
        """Tell how it stands, in numbers."""
        self._holding.note(
            "info", "metrics", "totals so far", pages=status.pages, requests=status.requests, bytes=status.bytes,
            pages_s=round(status.pages_s, 2), outcomes=status.outcomes,
        )  # fmt: skip
        self._holding.note("info", "queue", "queue", open=status.queue, active_domains=status.active_domains)

    def _note_slow(self, status: Status) -> None:
        slow = {str(row["domain"]): row for row in status.slow}
        for domain in sorted(slow.keys() - self._slow):
            row = slow[domain]
            self._holding.note("info", "rate_limit", f"{domain}: {row['why']}", domain=domain, seconds=row["seconds"])
        self._slow = set(slow)

    def read_log(self) -> None:
        """Pass on the events that the processes have written up to now; half a line waits, one over long is dropped."""
        with suppress(OSError), self._log_path.open("rb") as file:
            end = os.fstat(file.fileno()).st_size
            while self._position < end:
                file.seek(self._position)
                piece = file.read(min(_LINE_BYTES, end - self._position))
                whole, newline, _ = piece.rpartition(b"\n")
                if not newline and len(piece) < _LINE_BYTES:
                    return
                self._position += len(whole) + 1 if newline else len(piece)
                for line in whole.splitlines():
                    if (event := _event(line)) is not None:
                        self._pass_on(event)

    def _pass_on(self, event: Mapping[str, Any]) -> None:
        name = str(event["event"])
        if name in _RATE_EVENTS:
            category = "rate_limit"
        elif name in _QUEUE_EVENTS:
            category = "queue"
        elif event.get("level") == "error":
            category = "error"
        else:
            category = "fetch" if name.startswith(("robots.", "crawl.seed", "crawl.domain")) else "lifecycle"
        fields = {key: value for key, value in event.items() if key not in _PLAIN}
        self._holding.note(
            str(event.get("level", "info")), category, name, **{"event_fields": fields} if fields else {}
        )


def with_cost(status: Status, cost: Cost) -> Counts:
    """Return the counts of a crawl, and what its processes have cost."""
    counts = counts_of(status.outcomes, pages=status.pages, queue=status.queue)
    return replace(counts, cpu_ms=round(cost.cpu_s * 1000), peak_memory_bytes=cost.peak_bytes or None)


def _event(line: bytes) -> Mapping[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and "event" in found else None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
