"""What a running `archive-tool` says, told on: its events as lines of the execution's log, statistics as progress."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from holdfast.archive_tool.lines import MAX_LINE_BYTES, Statistics
from holdfast.archive_tool.logs import last_statistics, newest_log
from holdfast.clock import Clock
from holdfast.jobs.endings import Counts
from holdfast.worker.running import Holding, Progress

_STATISTICS_S = 30.0
"""How often statistics become a line of the log; progress is told more often, and bounded where it is heard."""
_PLAIN = ("event", "level", "timestamp")
_PIECE = 256 * 1024


class ToolFollower:
    """Follows one run; used by one thread."""

    def __init__(self, output_dir: Path, said: Path | None, holding: Holding, clock: Clock) -> None:
        self._output_dir, self._said, self._holding, self._clock = output_dir, said, holding, clock
        self._at = 0
        self._rest = b""
        self._log: Path | None = None
        self._last: Statistics | None = None
        self._told_at: float | None = None

    def look(self) -> None:
        """Tell on what is new."""
        for line in self._new_lines():
            self._tell(line)
        newest = newest_log(self._output_dir)
        if newest is None:
            return
        if newest != self._log:
            self._log, self._told_at = newest, None
            self._holding.note("info", "lifecycle", "a stage writes its log", log=newest.name)
        self._tell_statistics(newest)

    def _new_lines(self) -> list[bytes]:
        """Return the whole lines that were written since the last look; one that is over long is dropped."""
        if self._said is None:
            return []
        try:
            with self._said.open("rb") as file:
                file.seek(self._at)
                data = file.read(_PIECE)
        except OSError:
            return []
        self._at += len(data)
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()[-MAX_LINE_BYTES:]
        return lines

    def _tell(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace").strip()
        if not text:
            return
        entry = _object(text)
        if entry is None:
            self._holding.note("info", "lifecycle", text)
            return
        level = str(entry.get("level", "info"))
        fields = {name: value for name, value in entry.items() if name not in _PLAIN}
        category = "error" if level in ("error", "critical") else "lifecycle"
        self._holding.note(level, category, str(entry["event"]), **{f"tool_{name}": v for name, v in fields.items()})

    def _tell_statistics(self, log: Path) -> None:
        found = last_statistics(log)
        if found is None or found == self._last:
            return
        self._last = found
        self._holding.progress(Progress(counts=counts_of(found), metrics=found.as_json()))
        now = self._clock.monotonic()
        if self._told_at is None or now - self._told_at >= _STATISTICS_S:
            self._told_at = now
            self._holding.note("info", "metrics", "crawl statistics", **found.as_json())


def counts_of(found: Statistics | None) -> Counts:
    """Return what an execution keeps of a crawl's statistics (HA-035)."""
    if found is None:
        return Counts()
    return Counts(items_crawled=found.crawled, items_failed=max(found.failed, 0), items_total=found.total)


def _object(text: str) -> dict[str, Any] | None:
    if not text.startswith("{"):
        return None
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) and "event" in entry else None
