"""A clock that agrees with the database server: who holds a lease is decided by one clock, whatever ours says.

Between two readings it runs on the monotonic clock, so a wall clock that jumps takes no lease from anybody. Where the
database is this machine (SQLite) it reads the wall once, at the start, for the same reason.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from holdfast.clock import Clock, SystemClock, from_micros
from holdfast.db.hot import Hot


class DatabaseClock:
    """The database's time, by offset from our monotonic clock. Used by one thread with its connection."""

    def __init__(self, hot: Hot, base: Clock | None = None) -> None:
        self._hot = hot
        self._base: Clock = base or SystemClock()
        self._at = self._base.now()
        self._mark = self._base.monotonic()
        self.synchronise()

    def synchronise(self) -> float:
        """Read the server's clock again; return the seconds by which this one was behind. Unavailable if it cannot."""
        before = self._base.monotonic()
        micros = self._hot.now_micros()
        if micros is None:
            return 0.0
        # The server read its clock somewhere inside the round trip: the middle is wrong by half of it at most.
        mark = (before + self._base.monotonic()) / 2
        at = from_micros(micros)
        behind = at - (self._at + timedelta(seconds=mark - self._mark))
        self._at, self._mark = at, mark
        return behind.total_seconds()

    def now(self) -> datetime:
        """Return the database's time, aware and in UTC."""
        return self._at + timedelta(seconds=self._base.monotonic() - self._mark)

    def monotonic(self) -> float:
        """Return seconds that never run backwards."""
        return self._base.monotonic()
