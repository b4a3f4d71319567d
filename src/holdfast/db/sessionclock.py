"""The database server's clock for whoever works through sessions, apart from `dbclock`: a crawl loads no such thing."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import text
from sqlalchemy.orm import Session

from holdfast.clock import Clock, from_micros


class SessionClock:
    """For many threads, without a connection of its own: each transaction reads the time as its first step."""

    def __init__(self, base: Clock) -> None:
        self._base = base
        self._read: tuple[datetime, float] = (base.now(), base.monotonic())

    def look(self, session: Session) -> None:
        """Read the server's clock; where the database is this machine there is nothing to read."""
        if session.get_bind().dialect.name == "postgresql":
            micros = session.scalar(text("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"))
            self._read = (from_micros(int(micros or 0)), self._base.monotonic())
        else:
            self._read = (self._base.now(), self._base.monotonic())

    def now(self) -> datetime:
        """Return the time of the last look and what has passed since, aware and in UTC."""
        at, mark = self._read
        return at + timedelta(seconds=self._base.monotonic() - mark)

    def monotonic(self) -> float:
        """Return seconds that never run backwards."""
        return self._base.monotonic()
