"""Counts that are kept ready. A request reads what was counted; counting anew is no request's business.

Each request asks whether anything changed, as long as asking is cheap. If so, what is counted in a moment is counted at
once, and the rest beside the requests, which get the last count until then.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock, Thread
from typing import Generic, TypeVar

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from holdfast import log
from holdfast.clock import Clock
from holdfast.db.engine import Database
from holdfast.errors import HoldfastError

_log = log.get()
AT_ONCE_S = 0.05
"""A count that took longer last time is made beside the requests."""
_REST = 10.0
"""Such a count waits ten times what the last one took, so that it never costs more than a tenth of a core; asking
whether it is needed does the same."""
_BEARABLE_S = 1.0
_OLD = 100.0
"""A count of up to a second is waited for if the last one is a hundred times as old as it took: who looks in once an
hour is not told what was true an hour ago."""
_ASKING = 0.2
"""Asking is long from this share of a long count on: 10 ms, or about 100,000 WARC files."""
T = TypeVar("T")


class Counting(Generic[T]):
    """Answers with the newest count; at most one count runs at a time."""

    def __init__(self, database: Database, clock: Clock, *, state: Callable[[Session], object],
                 count: Callable[[Session], T], at_once_s: float = AT_ONCE_S) -> None:  # fmt: skip
        self._database, self._clock, self._at_once_s = database, clock, at_once_s
        self._ask, self._make = state, count
        self._counting = Lock()
        self._thread: Thread | None = None
        self._state: object = None
        self._found: T | None = None
        self._cost_s = self._counted_at = self._asking_s = self._asked_at = 0.0

    def read(self, session: Session) -> T:
        """Return the count: up to date, or of a moment ago while one that takes long is made anew."""
        found = self._found
        if found is not None and self._is_resting():
            return found
        state = self._asked(session)
        if found is None or (state != self._state and self._is_bearable()):
            # On a session of its own: a count may take its time, and the request's other statements may not.
            with self._counting, self._database.read() as own:
                return self._count(own)
        rested = self._clock.monotonic() - self._counted_at >= _REST * self._cost_s
        if state != self._state and rested and self._counting.acquire(blocking=False):
            self._thread = Thread(target=self._recount, name="count beside", daemon=True)
            self._thread.start()
        return found

    def close(self) -> None:
        """Wait for a count that is being made."""
        if self._thread is not None:
            self._thread.join()

    def _is_bearable(self) -> bool:
        """Return whether a request may wait for a count: it is quick, or not slow and the last one is old."""
        if self._cost_s <= self._at_once_s:
            return True
        age_s = self._clock.monotonic() - self._counted_at
        return self._cost_s <= _BEARABLE_S and age_s >= _OLD * self._cost_s

    def _is_resting(self) -> bool:
        """Return whether the last look for changes was a long one, and a short time ago."""
        if self._asking_s <= self._at_once_s * _ASKING:
            return False
        return self._clock.monotonic() - self._asked_at < _REST * self._asking_s

    def _asked(self, session: Session) -> object:
        """Return what changes whenever the count may have, and note what asking took."""
        began = self._clock.monotonic()
        state = self._ask(session)
        self._asked_at = self._clock.monotonic()
        self._asking_s = self._asked_at - began
        return state

    def _recount(self) -> None:
        """Count anew with a session of its own; whoever calls holds the lock."""
        try:
            with self._database.read() as session:
                self._count(session)
        except (HoldfastError, SQLAlchemyError) as exc:
            _log.warning("totals.kept", message=str(exc).splitlines()[0])
        finally:
            self._counting.release()

    def _count(self, session: Session) -> T:
        began = self._clock.monotonic()
        # The state first: what changes while we count is counted again next time.
        state, found = self._ask(session), self._found
        if found is None or state != self._state:
            found = self._found = self._make(session)
            self._counted_at = self._clock.monotonic()
            self._state, self._cost_s = state, self._counted_at - began
        return found
