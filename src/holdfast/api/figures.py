"""Totals of the archive, counted outside of requests, for `/api/stats`, `/api/sources` and the home page."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from threading import Lock, Thread
from typing import Generic, TypeVar

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from holdfast import log
from holdfast.api import queries
from holdfast.clock import Clock
from holdfast.db.engine import Database, moment_in, server_clock, take_time
from holdfast.errors import HoldfastError
from holdfast.jobs.schedule_queries import last_scheduled_at
from holdfast.jobs.views.listing import admin_counts, cleanup_counts, count_metrics, scanned_storage
from holdfast.jobs.views.recorded import read_recorded
from holdfast.metrics import RecordedCrawls, StorageFigures
from holdfast.values import dataclass
from holdfast.withdrawals.viewers import EVERYTHING, PUBLIC, Viewer, seen_by, viewer
from holdfast.withdrawals.visibility import hidden_sources

_log = log.get()
AT_ONCE_S = 0.05
"""If the last count took longer than this, the next one runs outside of requests."""
# Such a count waits ten times what the last one took, so that it never costs more than a tenth of a core; asking
# whether it is needed does the same.
_REST = 10.0
_BEARABLE_S = 1.0
# A count of up to a second is waited for if the last one is a hundred times as old as it took: who looks in once an
# hour does not get what was true an hour ago.
_OLD = 100.0
# Asking is long from this share of a long count on: 10 ms, or about 100,000 WARC files.
_ASKING = 0.2
T = TypeVar("T")


class Counting(Generic[T]):
    """Returns the newest count; at most one count runs at a time."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        *,
        state: Callable[[Session], object],
        count: Callable[[Session], T],
        at_once_s: float = AT_ONCE_S,
    ) -> None:
        self._database, self._clock, self._at_once_s = database, clock, at_once_s
        self._ask, self._make = state, count
        # One count at a time: ten requests at once must not each read the whole archive.
        self._counting = Lock()
        self._thread: Thread | None = None
        self._state: object = None
        self._found: T | None = None
        self._cost_s = self._counted_at = self._asking_s = self._asked_at = 0.0

    def read(self, session: Session) -> T:
        """Return the current count, or a slightly older one while a slow recount runs."""
        found = self._found
        # Even asking whether a count is needed takes long with a hundred thousand files.
        if found is not None and self._is_resting():
            return found
        state = self._asked(session)
        if found is None or (state != self._state and self._is_bearable()):
            # On a session of its own: a count may take its time, and the request's other statements may not.
            with self._counting, self._database.read() as own:
                return self._count(own)
        rested = self._clock.monotonic() - self._counted_at >= _REST * self._cost_s
        # Without waiting: a count that is being made will do for this request, too.
        if state != self._state and rested and self._counting.acquire(blocking=False):
            self._thread = Thread(target=self._recount, name="count beside", daemon=True)
            self._thread.start()
        return found

    def close(self) -> None:
        """Wait for a running count."""
        if self._thread is not None:
            self._thread.join()

    def _is_bearable(self) -> bool:
        """Return whether a request may wait for a count: it is fast, or not slow and the last one is old."""
        if self._cost_s <= self._at_once_s:
            return True
        age_s = self._clock.monotonic() - self._counted_at
        return self._cost_s <= _BEARABLE_S and age_s >= _OLD * self._cost_s

    def _is_resting(self) -> bool:
        """Return whether the last check for changes was slow and recent."""
        if self._asking_s <= self._at_once_s * _ASKING:
            return False
        return self._clock.monotonic() - self._asked_at < _REST * self._asking_s

    def _asked(self, session: Session) -> object:
        """Return a value that changes whenever the count may have changed; records how long the check took."""
        began = self._clock.monotonic()
        state = self._ask(session)
        self._asked_at = self._clock.monotonic()
        self._asking_s = self._asked_at - began
        return state

    def _recount(self) -> None:
        """Count in a new session. The caller holds the lock; this function releases it."""
        try:
            with self._database.read() as session:
                self._count(session)
        except (HoldfastError, SQLAlchemyError) as exc:
            # The old count goes on being shown; a thread that died here would leave it so for ever.
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


# A source for trying things out; it is left out of what readers are shown.
_UNLISTED = "test"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveTotals:
    sources: tuple[queries.SourceTotal, ...]
    representatives: dict[int, queries.RepresentativeCaptures]
    """By source."""
    crawls: queries.CrawlTotals
    documents: int
    """Number of distinct texts."""

    @property
    def snapshots(self) -> int:
        return sum(source.snapshots for source in self.sources)

    @property
    def pages(self) -> int:
        """Number of pages, ignoring query strings."""
        return sum(source.pages for source in self.sources)

    @property
    def latest(self) -> datetime | None:
        return max((source.last for source in self.sources), default=None)

    @property
    def listed(self) -> tuple[queries.SourceTotal, ...]:
        """Sources that readers may see."""
        return tuple(source for source in self.sources if source.code != _UNLISTED)


class CountedTotals:
    """Cached totals of the archive: of everything and, if any source is members-only, of the public part."""

    def __init__(self, database: Database, clock: Clock, *, at_once_s: float = AT_ONCE_S) -> None:
        self._database, self._clock, self._at_once_s = database, clock, at_once_s
        self._lock = Lock()
        self._whole = self._counting(EVERYTHING)
        self._public: tuple[tuple[int, ...], Counting[ArchiveTotals]] | None = None

    def read(self, session: Session) -> ArchiveTotals:
        """Return the totals for the viewer, like `Counting.read`; never includes a source that became members-only."""
        return self._whole.read(session) if viewer().sees_members else self.read_public(session)

    def read_public(self, session: Session) -> ArchiveTotals:
        """Return the public totals, for every viewer."""
        with seen_by(PUBLIC):
            hidden = hidden_sources(session)
            return (self._of_public(hidden) if hidden else self._whole).read(session)

    def close(self) -> None:
        """Wait for running counts."""
        for counting in (self._whole, *([self._public[1]] if self._public else ())):
            counting.close()

    def _of_public(self, hidden: tuple[int, ...]) -> Counting[ArchiveTotals]:
        with self._lock:
            # Another set of sources is another count: an old one is not shown while a new one is made.
            if self._public is None or self._public[0] != hidden:
                self._public = (hidden, self._counting(PUBLIC))
            return self._public[1]

    def _counting(self, looking: Viewer) -> Counting[ArchiveTotals]:
        clock = self._clock

        def count(session: Session) -> ArchiveTotals:
            # Said here: a count is made for the first request that needs it, or on a thread without any.
            with seen_by(looking):
                return _count(session, clock)

        return Counting(
            self._database,
            clock,
            state=lambda session: _state(session, clock),
            count=count,
            at_once_s=self._at_once_s,
        )


def _state(session: Session, clock: Clock) -> object:
    # The workers, too: one that was killed falls silent, and no row changes.
    return queries.state_of_archive(session), tuple(owner.id for owner in queries.active_workers(session, clock))


def _count(session: Session, clock: Clock) -> ArchiveTotals:
    take_time(session)
    sources = tuple(queries.source_totals(session))
    # For all sources at once: source by source it would read the groups as often as there are sources.
    topmost = queries.topmost_by_language(session)
    representatives = {
        one.source_id: queries.representative_captures(
            session, one.source_id, one.base_url, topmost.get(one.source_id, {})
        )
        for one in sources
    }
    return ArchiveTotals(
        sources=sources,
        representatives=representatives,
        crawls=queries.crawl_totals(session, clock),
        documents=queries.document_total(session),
    )


FRESH_S = 5.0
"""Maximum age of a count where counting is fast; monitors poll every 15 to 60 seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkFigures:
    """Jobs by status, clean-up, pages by source, and disk usage."""

    jobs: dict[str, int]
    """By status, named as in `/api/admin/jobs`."""
    public_jobs: dict[str, int]
    """The same for public sources only."""
    cleanups: dict[str, int]
    recorded: RecordedCrawls
    storage: StorageFigures
    scheduler: dict[str, float]


class CountedWork(Counting[WorkFigures]):
    def __init__(self, database: Database, clock: Clock, *, at_once_s: float = AT_ONCE_S) -> None:
        super().__init__(
            database,
            clock,
            state=lambda _session: clock.monotonic() // FRESH_S,
            count=lambda session: _count_work(session, clock),
            at_once_s=at_once_s,
        )


def _count_work(session: Session, clock: Clock) -> WorkFigures:
    take_time(session)
    # One count for all viewers: the request that needs it first must not decide what it holds.
    with seen_by(PUBLIC):
        public_jobs = admin_counts(session)
    with seen_by(EVERYTHING):
        jobs, cleanups = admin_counts(session), cleanup_counts(session)
    scanned, weighed = scanned_storage(session)
    return WorkFigures(
        jobs=jobs,
        public_jobs=public_jobs,
        cleanups=cleanups,
        recorded=read_recorded(session, clock),
        storage=(scanned, {"warc": queries.warc_bytes(session), **weighed}),
        scheduler=_scheduler_figures(session, clock),
    )


def _scheduler_figures(session: Session, clock: Clock) -> dict[str, float]:
    now = moment_in(session, server_clock(clock))
    found = count_metrics(session, now=now, last_check_at=last_scheduled_at(session))
    checked = found.last_check_at
    return {
        **{f"jobs_{state}": count for state, count in found.jobs.items()},
        "executions_total": found.executions.total,
        "average_duration_seconds": found.executions.average_duration_ms / 1000,
        "success_rate": found.executions.success_rate,
        "stale_locks_cleared_total": found.stale_locks_cleared,
        "last_check_timestamp_seconds": checked.timestamp() if checked else 0.0,
    }
