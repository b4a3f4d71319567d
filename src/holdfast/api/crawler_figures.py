"""Frontier figures that are slow to compute for a large crawl: cached, and counted outside of requests."""

from __future__ import annotations

from threading import Lock

from cachetools import LRUCache
from sqlalchemy.orm import Session

from holdfast.api.figures import Counting
from holdfast.clock import Clock
from holdfast.db.engine import Database, moment_in, server_clock, take_time
from holdfast.jobs.views.frontier_queries import FrontierFigures, SelectedFrontier, frontier_figures
from holdfast.jobs.views.host_queries import largest_domains, newest_page

_FRESH_S = 1.0
_KEPT = 32
"""Number of executions whose figures are cached."""
_PAGES = 1000
"""Domains are counted again after this many new pages."""


class FrontierCounts:
    """Cached figures of executions, at most a second old where counting is fast."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock
        self._lock = Lock()
        self._counts: LRUCache[int, Counting[FrontierFigures]] = LRUCache(_KEPT)
        self._domains = Counting(
            database, clock, state=lambda session: newest_page(session) // _PAGES, count=_count_domains
        )

    def figures(self, session: Session, selected: SelectedFrontier) -> FrontierFigures:
        """Return the figures of an execution; counting reads one row per domain, and a crawl may have a million."""
        with self._lock:
            counting = self._counts.get(selected.execution_id)
            if counting is None:
                counting = self._counts[selected.execution_id] = Counting(
                    self._database,
                    self._clock,
                    state=lambda _session: self._clock.monotonic() // _FRESH_S,
                    count=lambda own: frontier_figures(own, selected, now=moment_in(own, server_clock(self._clock))),
                )
        return counting.read(session)

    def largest_domains(self, session: Session) -> list[tuple[int, int]]:
        return self._domains.read(session)

    def close(self) -> None:
        """Wait for running counts."""
        self._domains.close()
        for counting in list(self._counts.values()):
            counting.close()


def _count_domains(session: Session) -> list[tuple[int, int]]:
    take_time(session)
    return largest_domains(session)
