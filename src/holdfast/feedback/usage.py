"""How much the archive is used, by day. Counting writes nothing: a reader never waits for the database's one writer."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from enum import StrEnum
from threading import Lock
from typing import NamedTuple

from holdfast import log
from holdfast.clock import Clock
from holdfast.db.engine import Database
from holdfast.errors import Unavailable
from holdfast.feedback import queries

_log = log.get()


class Use(StrEnum):
    """What is counted."""

    SEARCH = "search_requests"
    DETAIL = "snapshot_detail_views"
    RAW = "raw_snapshot_views"
    REPORT = "report_submissions"


class Day(NamedTuple):
    """What was done on one day."""

    date: str
    counts: dict[Use, int]


class UsageTally:
    """Counts in memory, from any thread, and hands them to the database from time to time."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock
        self._lock, self._pending = Lock(), Counter[tuple[str, str]]()

    def count(self, use: Use) -> None:
        """Note that something was done now."""
        with self._lock:
            self._pending[self._clock.now().date().isoformat(), use.value] += 1

    def flush(self) -> None:
        """Write what was counted; if the database is away, it stays counted here for the next time."""
        with self._lock:
            taken, self._pending = self._pending, Counter()
        if not taken:
            return
        try:
            with self._database.write() as session:
                queries.add_usage(session, taken)
        except Unavailable as exc:
            _log.warning("usage.kept", message=str(exc), counts=taken.total())
            with self._lock:
                self._pending.update(taken)

    def days(self, window_days: int) -> list[Day]:
        """Return the last days, oldest first, today included; what is not written yet counts too."""
        today = self._clock.now().date()
        dates = [(today - timedelta(days=back)).isoformat() for back in reversed(range(window_days))]
        with self._database.read() as session:
            counts = Counter(queries.usage_since(session, day=dates[0]))
        with self._lock:
            counts.update(self._pending)
        return [Day(date, {use: counts[date, use.value] for use in Use}) for date in dates]
