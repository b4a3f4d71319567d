"""Figures of the frontier that take long for a large crawl: kept ready, counted beside the requests."""

from __future__ import annotations

from threading import Lock

from cachetools import LRUCache
from sqlalchemy.orm import Session

from holdfast.api.figures import Counting
from holdfast.clock import Clock
from holdfast.db.engine import Database, moment_in, server_clock, take_time
from holdfast.jobs.views.frontier_queries import MeantFrontier, QueueFigures, queue_figures
from holdfast.jobs.views.host_queries import largest_domains, newest_page

_FRESH_S = 1.0
_KEPT = 32
"""Executions whose figures are kept."""
_PAGES = 1000
"""Domains are counted anew when so many pages have come."""


class FrontierCounts:
    """The figures of executions, each at most a second old where counting is quick."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock
        self._lock = Lock()
        self._counts: LRUCache[int, Counting[QueueFigures]] = LRUCache(_KEPT)
        self._domains = Counting(
            database, clock, state=lambda session: newest_page(session) // _PAGES, count=_count_domains
        )

    def figures(self, session: Session, meant: MeantFrontier) -> QueueFigures:
        """Return the figures of an execution: one row a domain is read, and a crawl may have met a million."""
        with self._lock:
            counting = self._counts.get(meant.execution_id)
            if counting is None:
                counting = self._counts[meant.execution_id] = Counting(
                    self._database,
                    self._clock,
                    state=lambda _session: self._clock.monotonic() // _FRESH_S,
                    count=lambda own: queue_figures(own, meant, now=moment_in(own, server_clock(self._clock))),
                )
        return counting.read(session)

    def largest_domains(self, session: Session) -> list[tuple[int, int]]:
        """Return the domains with the most pages, and how many."""
        return self._domains.read(session)

    def close(self) -> None:
        """Wait for counts that are being made."""
        self._domains.close()
        for counting in list(self._counts.values()):
            counting.close()


def _count_domains(session: Session) -> list[tuple[int, int]]:
    take_time(session)
    return largest_domains(session)
