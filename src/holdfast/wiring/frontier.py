"""Frontier access of a server process: one connection, opened on first use, one call at a time."""

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
    """Frontier changes by operators over HTTP; thread-safe, one caller at a time."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings, self._clock = settings, clock
        self._lock = Lock()
        self._raw_db: RawDatabase | None = None
        self._runtime: Runtime | None = None

    @contextmanager
    def open(self, actor: str) -> Iterator[Runtime]:
        """Lock the frontier for one caller, in a client's name; raise Unavailable if others hold it for too long."""
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
            # The database's clock, by which leases are judged, replaces the machine's, but not a test's.
            clock: Clock = DatabaseClock(raw_db) if isinstance(self._clock, SystemClock) else self._clock
            frontier = Frontier(raw_db, clock, FrontierSettings(lease_s=self._settings.timings.lease_seconds))
            self._runtime = Runtime(settings=self._settings, raw_db=raw_db, clock=clock, frontier=frontier)
        else:
            synchronise(self._runtime.clock)
        return self._runtime

    def _let_go(self) -> None:
        if self._raw_db is not None:
            self._raw_db.close()
        self._raw_db = self._runtime = None

    def close(self) -> None:
        with self._lock:
            self._let_go()
