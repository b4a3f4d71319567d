"""The frontier as a serving process writes to it: one connection, opened at the first use, one call at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from holdfast.clock import Clock, SystemClock
from holdfast.config import Settings
from holdfast.db import connect
from holdfast.db.audit_events import acting
from holdfast.db.raw import DatabaseClock, RawDatabase, synchronise
from holdfast.errors import Unavailable
from holdfast.frontier import Frontier, FrontierSettings
from holdfast.wiring import Runtime

_WAIT_S = 10.0


class ServedFrontier:
    """What operators change over HTTP; for any thread, one after the other."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings, self._clock = settings, clock
        self._lock = Lock()
        self._raw_db: RawDatabase | None = None
        self._runtime: Runtime | None = None

    @contextmanager
    def open(self, actor: str) -> Iterator[Runtime]:
        """Give the frontier to one caller, in a client's name; Unavailable if others have it for too long."""
        if not self._lock.acquire(timeout=_WAIT_S):
            raise Unavailable("other changes are still being written; try again in a moment")
        try:
            with acting(actor):
                yield self._opened()
        except Unavailable:
            # The connection may be lost: the next caller opens another.
            self._let_go()
            raise
        finally:
            self._lock.release()

    def _opened(self) -> Runtime:
        if self._runtime is None:
            raw_db = self._raw_db = connect(self._settings.database)
            # The machine's clock gives way to the database's, by which leases are judged; a test's does not.
            clock: Clock = DatabaseClock(raw_db) if isinstance(self._clock, SystemClock) else self._clock
            frontier = Frontier(raw_db, clock, FrontierSettings(lease_s=self._settings.lease.seconds))
            self._runtime = Runtime(settings=self._settings, raw_db=raw_db, clock=clock, frontier=frontier)
        else:
            synchronise(self._runtime.clock)
        return self._runtime

    def _let_go(self) -> None:
        if self._raw_db is not None:
            self._raw_db.close()
        self._raw_db = self._runtime = None

    def close(self) -> None:
        """Let go of the connection."""
        with self._lock:
            self._let_go()
