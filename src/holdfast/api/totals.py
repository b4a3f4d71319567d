"""What the archive holds, counted beside the requests; `/api/stats`, `/api/sources` and the first page read it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.orm import Session

from holdfast.api import queries
from holdfast.api.counting import AT_ONCE_S, Counting
from holdfast.clock import Clock
from holdfast.db.engine import Database
from holdfast.db.limits import take_time

_UNLISTED = "test"
"""A source that everybody may use to try things, and nobody is shown (1.6 of the facts)."""


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

    @property
    def listed(self) -> tuple[queries.SourceTotal, ...]:
        """The sources that readers are shown."""
        return tuple(source for source in self.sources if source.code != _UNLISTED)


class Totals(Counting[ArchiveTotals]):
    """The archive's totals, kept ready."""

    def __init__(self, database: Database, clock: Clock, *, at_once_s: float = AT_ONCE_S) -> None:
        super().__init__(
            database,
            clock,
            state=lambda session: _state(session, clock),
            count=lambda session: _count(session, clock),
            at_once_s=at_once_s,
        )


def _state(session: Session, clock: Clock) -> object:
    """Return what changes whenever the totals may have; workers fall silent without a row that says so."""
    return queries.state_of_archive(session), tuple(owner.id for owner in queries.active_workers(session, clock))


def _count(session: Session, clock: Clock) -> ArchiveTotals:
    take_time(session)
    sources = tuple(queries.source_totals(session))
    topmost = queries.topmost_by_language(session)
    faces = {
        one.source_id: queries.faces_of(session, one.source_id, one.base_url, topmost.get(one.source_id, {}))
        for one in sources
    }
    return ArchiveTotals(
        sources=sources, faces=faces, crawls=queries.crawl_totals(session, clock),
        documents=queries.document_total(session),
    )  # fmt: skip
