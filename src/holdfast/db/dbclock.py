"""A clock that agrees with the database server: who holds a lease is decided by one clock, whatever ours says.

Between two readings it runs on the monotonic clock, so a wall clock that jumps takes no lease from anybody. Where the
database is this machine (SQLite) it reads the wall once, at the start, for the same reason.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from holdfast.clock import Clock, SystemClock, from_micros
from holdfast.db.hot import Hot

_QUICK_S = 0.05
_READINGS = 3
"""A round trip that took longer than this is repeated, at most so often."""


class DatabaseClock:
    """The database's time, by offset from our monotonic clock; read by any thread, set right by its connection's."""

    def __init__(self, hot: Hot, base: Clock | None = None) -> None:
        self._hot = hot
        self._base: Clock = base or SystemClock()
        self._reading = self._base.now(), self._base.monotonic()
        """A moment of the server and ours (monotonic), in one attribute: other threads read it at any time."""
        self.synchronise()

    def synchronise(self) -> float:
        """Read the server's clock again; return the seconds by which this one was behind. Unavailable if it cannot.

        The server reads its clock somewhere inside the round trip, so the middle is wrong by half of it at most. A
        process that was frozen in a reading would be wrong for as long: it reads again, and the quickest one counts.
        """
        readings: list[tuple[float, int, float]] = []
        while len(readings) < _READINGS:
            before = self._base.monotonic()
            micros = self._hot.now_micros()
            if micros is None:
                return 0.0
            after = self._base.monotonic()
            readings.append((after - before, micros, (before + after) / 2))
            if after - before <= _QUICK_S:
                break
        _, quickest, mark = min(readings)
        at = from_micros(quickest)
        known, known_mark = self._reading
        behind = at - (known + timedelta(seconds=mark - known_mark))
        self._reading = at, mark
        return behind.total_seconds()

    def now(self) -> datetime:
        """Return the database's time, aware and in UTC."""
        at, mark = self._reading
        return at + timedelta(seconds=self._base.monotonic() - mark)

    def monotonic(self) -> float:
        """Return seconds that never run backwards."""
        return self._base.monotonic()
