"""The accounts of runs, kept for a while: all attempts of a run are counted, and each open page of it asks anew."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import closing
from threading import Lock
from typing import Any, Final

from cachetools import LRUCache

from holdfast.api.errors import ExecutionNotFound
from holdfast.clock import Clock
from holdfast.db import connect
from holdfast.db.engine import Database
from holdfast.errors import NotFound
from holdfast.jobs.views.listing import execution
from holdfast.jobs.views.run_report import run_report

_KEPT: Final = 32
# A count is shown for ten times what it took, so that the pages that are open cost no more than a tenth of a core.
_REST: Final = 10.0


class _KeptReport:
    """The newest account of one run, and what it cost."""

    def __init__(self) -> None:
        self.counting = Lock()
        self.found: dict[str, Any] | None = None
        self.until = 0.0


class RunReports:
    """Answers with accounts of runs; of each run one is counted at a time, however many ask."""

    def __init__(self, database: Database, clock: Clock, count: Callable[[int], dict[str, Any]] | None = None) -> None:
        self._database, self._clock, self._count = database, clock, count or self._counted
        self._lock = Lock()
        self._kept: LRUCache[Hashable, _KeptReport] = LRUCache(_KEPT)

    def read(self, execution_id: int) -> dict[str, Any]:
        """Return the account of a run, of now or of a moment ago; ExecutionNotFound."""
        with self._database.read() as session:
            row = execution(session, execution_id)
        if row is None:
            raise ExecutionNotFound
        with self._lock:
            # By its state: what was counted while it ran is not its last word.
            kept = self._kept.setdefault((execution_id, row.state, row.finished_at), _KeptReport())
        if kept.found is not None and self._clock.monotonic() < kept.until:
            return kept.found
        # Who has an account to show does not wait for another one that is being made.
        if not kept.counting.acquire(blocking=kept.found is None):
            return kept.found or {}
        try:
            if kept.found is None or self._clock.monotonic() >= kept.until:
                began = self._clock.monotonic()
                kept.found = self._count(execution_id)
                ended = self._clock.monotonic()
                kept.until = ended + _REST * (ended - began)
            return kept.found
        finally:
            kept.counting.release()

    def _counted(self, execution_id: int) -> dict[str, Any]:
        # A connection of its own: the count speaks SQL itself, and may take long.
        with closing(connect(self._database.url)) as raw_db:
            try:
                return run_report(raw_db, self._clock, execution_id)
            except NotFound as exc:
                raise ExecutionNotFound from exc
