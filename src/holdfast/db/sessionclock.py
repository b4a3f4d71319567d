"""The database server's clock for whoever works through sessions, apart from `dbclock`: a crawl loads no such thing."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import text
from sqlalchemy.orm import Session

from holdfast.clock import Clock, from_micros
from holdfast.db.dbclock import DatabaseClock

_SERVER = text("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")


class SessionClock:
    """For many threads, without a connection of its own: each transaction reads the time as its first step."""

    def __init__(self, base: Clock) -> None:
        self._base = base
        self._read: tuple[datetime, float] = (base.now(), base.monotonic())

    def look(self, session: Session) -> datetime:
        """Read the server's clock and return it; where the database is this machine, ours is the server's."""
        at = _server_time(session) or self._base.now()
        self._read = (at, self._base.monotonic())
        return at

    def now(self) -> datetime:
        """Return the time of the last look and what has passed since, aware and in UTC."""
        at, mark = self._read
        return at + timedelta(seconds=self._base.monotonic() - mark)

    def monotonic(self) -> float:
        """Return seconds that never run backwards."""
        return self._base.monotonic()


def moment_in(session: Session, clock: Clock) -> datetime:
    """Return the moment of this step of a transaction: the server's own reading, not one that was kept.

    Asked for after a row was locked, it is never before what the last transaction read that had the row, in whichever
    process that was. A clock that does not stand for the server's (a test's, or SQLite's, which is this machine's) is
    read as it is.
    """
    if isinstance(clock, SessionClock):
        return clock.look(session)
    return (_server_time(session) if isinstance(clock, DatabaseClock) else None) or clock.now()


def _server_time(session: Session) -> datetime | None:
    if session.get_bind().dialect.name != "postgresql":
        return None
    micros = session.scalar(_SERVER)
    return None if micros is None else from_micros(int(micros))
