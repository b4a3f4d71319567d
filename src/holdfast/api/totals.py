"""The archive's totals, kept ready. A request reads what was counted; counting anew is no request's business.

Each request asks a few small rows whether anything changed. If so, a small archive is counted at once, and a large one
beside the requests, which get the last count until then.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from threading import Lock, Thread

from sqlalchemy.orm import Session

from holdfast import log
from holdfast.api import queries
from holdfast.clock import Clock
from holdfast.db.engine import Database
from holdfast.errors import HoldfastError

_log = log.get()
AT_ONCE_S = 0.05
"""A count that took longer last time is made beside the requests."""
_REST = 10.0
"""Such a count waits ten times what the last one took, so that it never costs more than a tenth of a core."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveTotals:
    """What the archive holds, and what its crawls did."""

    sources: tuple[queries.SourceTotal, ...]
    faces: dict[int, queries.Faces]
    """By source."""
    crawls: queries.CrawlTotals
    documents: int
    """Distinct texts."""

    @property
    def snapshots(self) -> int:
        """Captures of pages."""
        return sum(source.snapshots for source in self.sources)

    @property
    def pages(self) -> int:
        """Pages, whatever their query."""
        return sum(source.pages for source in self.sources)

    @property
    def latest(self) -> datetime | None:
        """When the newest page was captured."""
        return max((source.last for source in self.sources), default=None)


class Totals:
    """Answers with the newest count; at most one count runs at a time."""

    def __init__(self, database: Database, clock: Clock, *, at_once_s: float = AT_ONCE_S) -> None:
        self._database, self._clock, self._at_once_s = database, clock, at_once_s
        self._counting = Lock()
        self._thread: Thread | None = None
        self._state: tuple[object, ...] | None = None
        self._found: ArchiveTotals | None = None
        self._cost_s = self._counted_at = 0.0

    def read(self, session: Session) -> ArchiveTotals:
        """Return the totals: up to date, or of a moment ago while a large archive is counted anew."""
        state, found = queries.state_of_archive(session), self._found
        if found is None or (state != self._state and self._cost_s <= self._at_once_s):
            with self._counting:
                return self._count(session)
        rested = self._clock.monotonic() - self._counted_at >= _REST * self._cost_s
        if state != self._state and rested and self._counting.acquire(blocking=False):
            self._thread = Thread(target=self._recount, name="count totals", daemon=True)
            self._thread.start()
        return found

    def close(self) -> None:
        """Wait for a count that is being made."""
        if self._thread is not None:
            self._thread.join()

    def _recount(self) -> None:
        """Count anew with a session of its own; whoever calls holds the lock."""
        try:
            with self._database.read() as session:
                self._count(session)
        except HoldfastError as exc:
            _log.warning("totals.kept", message=str(exc))
        finally:
            self._counting.release()

    def _count(self, session: Session) -> ArchiveTotals:
        began = self._clock.monotonic()
        # The state first: what changes while we count is counted again next time.
        state = queries.state_of_archive(session)
        if self._found is None or state != self._state:
            queries.take_time(session)
            sources = tuple(queries.source_totals(session))
            faces = {one.source_id: queries.faces_of(session, one.source_id, one.base_url) for one in sources}
            self._found = ArchiveTotals(
                sources=sources, faces=faces, crawls=queries.crawl_totals(session),
                documents=queries.document_total(session),
            )  # fmt: skip
            self._counted_at = self._clock.monotonic()
            self._state, self._cost_s = state, self._counted_at - began
        return self._found
