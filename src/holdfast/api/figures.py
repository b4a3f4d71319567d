"""Cached counts: totals of the archive, figures of jobs and frontiers, reports of runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from threading import Lock, Thread
from typing import Final, Generic, TypeVar

from cachetools import LRUCache
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from holdfast import log
from holdfast.clock import Clock
from holdfast.db import connect
from holdfast.db.engine import Database, moment_in, server_clock, take_time
from holdfast.errors import HoldfastError, NotFound
from holdfast.frontier.domains import largest_domains, newest_page
from holdfast.frontier.figures import FrontierFigures, SelectedFrontier, frontier_figures
from holdfast.index import capture_queries
from holdfast.index.capture_queries import RepresentativeCaptures, SourceTotal
from holdfast.index.stored_files import kept_by_source
from holdfast.jobs.schedule_queries import last_scheduled_at
from holdfast.jobs.store import ExecutionNotFound
from holdfast.jobs.views.listing import admin_counts, cleanup_counts, count_metrics, execution, scanned_storage
from holdfast.jobs.views.recorded import CrawlTotals, active_workers, crawl_totals, read_recorded
from holdfast.jobs.views.run_report import RunReport, run_report
from holdfast.metrics import RecordedCrawls, StorageFigures
from holdfast.values import dataclass
from holdfast.withdrawals.viewers import EVERYTHING, PUBLIC, Viewer, seen_by, viewer
from holdfast.withdrawals.visibility import hidden_sources

_log = log.get()
AT_ONCE_S = 0.05
"""If the last count took longer than this, the next one runs outside of requests."""
# A count waits ten times the duration of the last one, so that it never costs more than a tenth of a core; the check
# whether it is needed does the same.
_REST = 10.0
_BEARABLE_S = 1.0
# A request waits for a count of up to a second if the last one is a hundred times as old as it took: a user who looks
# once an hour must not get an hour-old count.
_OLD = 100.0
# From this share of a long count on, the check itself counts as long: 10 ms, or about 100,000 WARC files.
_ASKING = 0.2
T = TypeVar("T")


class _Kept(Generic[T]):
    """One count of a cache."""

    def __init__(self) -> None:
        # One count at a time: ten requests at once must not each read the whole archive.
        self.counting = Lock()
        self.thread: Thread | None = None
        self.found: T | None = None
        self.state: object = None
        self.cost_s = self.counted_at = self.asking_s = self.asked_at = 0.0


class CountCache(Generic[T]):
    """The newest counts of a process by key, evicted least recently used first.

    One thread at a time makes each count; meanwhile all others get the previous one.
    """

    def __init__(self, database: Database, clock: Clock, *, kept: int = 1, at_once_s: float = AT_ONCE_S) -> None:
        self._database, self._clock, self._at_once_s = database, clock, at_once_s
        self._lock = Lock()
        self._kept: LRUCache[Hashable, _Kept[T]] = LRUCache(kept)

    def cached(
        self,
        session: Session,
        key: Hashable,
        count: Callable[[Session], T],
        *,
        state: Callable[[Session], object] | None = None,
    ) -> T:
        """Return the current count, or a slightly older one while a slow recount runs.

        `state` returns a value that changes whenever the count may have; slow recounts then run outside of requests.
        Without it, a count is current for ten times as long as it took, and recounts use the session of the request:
        cheap ones are never stale, and expensive ones cost at most a tenth of a core.
        """
        with self._lock:
            kept = self._kept.setdefault(key, _Kept())
        found = kept.found
        # Even the check whether a count is needed takes long with a hundred thousand files.
        if found is not None and (self._is_resting(kept) or self._asked(kept, session, state) == kept.state):
            return found
        if state is None:
            if found is None:
                with kept.counting:
                    return self._count(kept, session, count, state)
            if kept.counting.acquire(blocking=False):
                try:
                    return self._count(kept, session, count, state)
                finally:
                    kept.counting.release()
            return found
        if found is None or self._is_bearable(kept):
            # Use a separate session: a count may take long, and the request's other statements may not.
            with kept.counting, self._database.read() as own:
                return self._count(kept, own, count, state)
        rested = self._clock.monotonic() - kept.counted_at >= _REST * kept.cost_s
        # Do not wait: the result of a running count serves this request, too.
        if rested and kept.counting.acquire(blocking=False):
            kept.thread = Thread(target=self._recount, args=(kept, count, state), name="count beside", daemon=True)
            kept.thread.start()
        return found

    def close(self) -> None:
        """Wait for running counts."""
        for kept in list(self._kept.values()):
            if kept.thread is not None:
                kept.thread.join()

    def _is_bearable(self, kept: _Kept[T]) -> bool:
        """Return whether a request may wait for a count: it is fast, or not slow and the last one is old."""
        if kept.cost_s <= self._at_once_s:
            return True
        age_s = self._clock.monotonic() - kept.counted_at
        return kept.cost_s <= _BEARABLE_S and age_s >= _OLD * kept.cost_s

    def _is_resting(self, kept: _Kept[T]) -> bool:
        """Return whether the last check for changes was slow and recent."""
        if kept.asking_s <= self._at_once_s * _ASKING:
            return False
        return self._clock.monotonic() - kept.asked_at < _REST * kept.asking_s

    def _asked(self, kept: _Kept[T], session: Session, state: Callable[[Session], object] | None) -> object:
        """Return a value that changes whenever the count may have changed; records how long the check took."""
        began = self._clock.monotonic()
        if state is None:
            return kept.state if began < kept.counted_at + _REST * kept.cost_s else object()
        found = state(session)
        kept.asked_at = self._clock.monotonic()
        kept.asking_s = kept.asked_at - began
        return found

    def _recount(self, kept: _Kept[T], count: Callable[[Session], T], state: Callable[[Session], object]) -> None:
        """Count in a new session. The caller holds the lock; this function releases it."""
        try:
            with self._database.read() as session:
                self._count(kept, session, count, state)
        except (HoldfastError, SQLAlchemyError) as exc:
            # The old count stays in use; if the thread died here, it would stay forever.
            _log.warning("totals.kept", message=str(exc).splitlines()[0])
        finally:
            kept.counting.release()

    def _count(
        self, kept: _Kept[T], session: Session, count: Callable[[Session], T], state: Callable[[Session], object] | None
    ) -> T:
        began = self._clock.monotonic()
        # Read the state first: a change during the count then triggers another count.
        current, found = self._asked(kept, session, state), kept.found
        if found is None or current != kept.state:
            found = kept.found = count(session)
            kept.counted_at = self._clock.monotonic()
            kept.state, kept.cost_s = current, kept.counted_at - began
        return found


# A source for tests; figures for readers exclude it.
_UNLISTED = "test"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveTotals:
    sources: tuple[SourceTotal, ...]
    representatives: dict[int, RepresentativeCaptures]
    """By source."""
    crawls: CrawlTotals
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
    def listed(self) -> tuple[SourceTotal, ...]:
        """Sources that readers may see."""
        return tuple(source for source in self.sources if source.code != _UNLISTED)


class CountedTotals(CountCache[ArchiveTotals]):
    """Cached totals of the archive: of everything and, if any source is members-only, of the public part."""

    def __init__(self, database: Database, clock: Clock, *, at_once_s: float = AT_ONCE_S) -> None:
        # One count each for everything, for the public part, and for the public part before sources were hidden or
        # shown.
        super().__init__(database, clock, kept=3, at_once_s=at_once_s)

    def read(self, session: Session) -> ArchiveTotals:
        """Return the totals for the viewer; never includes a source that became members-only."""
        return self._read(session, EVERYTHING, None) if viewer().sees_members else self.read_public(session)

    def read_public(self, session: Session) -> ArchiveTotals:
        """Return the public totals, for every viewer."""
        with seen_by(PUBLIC):
            # Another set of sources needs another count: do not show the old one meanwhile.
            hidden = hidden_sources(session)
            return self._read(session, PUBLIC, hidden) if hidden else self._read(session, EVERYTHING, None)

    def _read(self, session: Session, looking: Viewer, hidden: tuple[int, ...] | None) -> ArchiveTotals:
        def count(own: Session) -> ArchiveTotals:
            # Declare it here: the first request that needs the count makes it, or a thread without a request.
            with seen_by(looking):
                return _count(own, self._clock)

        return self.cached(session, hidden, count, state=lambda own: _state(own, self._clock))


def _state(session: Session, clock: Clock) -> object:
    # Include the workers: a killed one falls silent, and no row changes.
    return capture_queries.state_of_archive(session), tuple(owner.id for owner in active_workers(session, clock))


def _count(session: Session, clock: Clock) -> ArchiveTotals:
    take_time(session)
    sources = tuple(capture_queries.source_totals(session))
    # Count all sources at once: one query per source would read the groups once for each.
    topmost = capture_queries.topmost_by_language(session)
    representatives = {
        one.source_id: capture_queries.representative_captures(
            session, one.source_id, one.base_url, topmost.get(one.source_id, {})
        )
        for one in sources
    }
    return ArchiveTotals(
        sources=sources,
        representatives=representatives,
        crawls=crawl_totals(session, clock),
        documents=capture_queries.document_total(session),
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


class CountedWork(CountCache[WorkFigures]):
    def read(self, session: Session) -> WorkFigures:
        """Return the figures, at most five seconds old where counting is fast."""
        clock = self._clock
        return self.cached(
            session, None, lambda own: _count_work(own, clock), state=lambda _own: clock.monotonic() // FRESH_S
        )


def _count_work(session: Session, clock: Clock) -> WorkFigures:
    take_time(session)
    # Make one count for all viewers: its content must not depend on the first request that needs it.
    with seen_by(PUBLIC):
        public_jobs = admin_counts(session)
    with seen_by(EVERYTHING):
        jobs, cleanups = admin_counts(session), cleanup_counts(session)
    scanned, weighed = scanned_storage(session)
    warc_bytes = {one.source: one.bytes for one in kept_by_source(session)}
    return WorkFigures(
        jobs=jobs,
        public_jobs=public_jobs,
        cleanups=cleanups,
        recorded=read_recorded(session, clock),
        storage=(scanned, {"warc": warc_bytes, **weighed}),
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


_FRONTIER_FRESH_S = 1.0
_RUNS: Final = 32
"""Number of executions whose figures, or reports, are cached."""
_PAGES = 1000
"""Domains are counted again after this many new pages."""


class FrontierCounts:
    """Frontier figures, which are slow to count for a large crawl; at most a second old where counting is fast."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._clock = clock
        self._figures: CountCache[FrontierFigures] = CountCache(database, clock, kept=_RUNS)
        self._domains: CountCache[list[tuple[int, int]]] = CountCache(database, clock)

    def figures(self, session: Session, selected: SelectedFrontier) -> FrontierFigures:
        """Return the figures of an execution; counting reads one row per domain, and a crawl may have a million."""
        return self._figures.cached(
            session,
            selected.execution_id,
            lambda own: frontier_figures(own, selected, now=moment_in(own, server_clock(self._clock))),
            state=lambda _own: self._clock.monotonic() // _FRONTIER_FRESH_S,
        )

    def largest_domains(self, session: Session) -> list[tuple[int, int]]:
        """Return the domains with the most pages, each with their number."""
        return self._domains.cached(session, None, _count_domains, state=lambda own: newest_page(own) // _PAGES)

    def close(self) -> None:
        """Wait for running counts."""
        self._domains.close()
        self._figures.close()


def _count_domains(session: Session) -> list[tuple[int, int]]:
    take_time(session)
    return largest_domains(session)


# A run may have a million hosts; `/api/frontier/hosts` lists them all.
_MOST_HOSTS: Final = 200


class RunReports(CountCache[RunReport]):
    """Reports of runs, current or slightly older: a report counts all attempts, and each open page polls it."""

    def __init__(self, database: Database, clock: Clock) -> None:
        super().__init__(database, clock, kept=_RUNS)

    def read(self, execution_id: int) -> RunReport:
        """Return the report of a run; raises ExecutionNotFound."""
        with self._database.read() as session:
            row = execution(session, execution_id)
            if row is None:
                raise ExecutionNotFound
            # The key has the state: a count of a running run is not final.
            key = (execution_id, row.state, row.finished_at)
        # Count outside the transaction, whose idle time PostgreSQL limits: a count may take longer.
        return self.cached(session, key, lambda _session: self._counted(execution_id))

    def _counted(self, execution_id: int) -> RunReport:
        # Use a separate connection: the count runs plain SQL, and may take long.
        with closing(connect(self._database.url)) as raw_db:
            try:
                found = run_report(raw_db, self._clock, execution_id)
            except NotFound as exc:
                raise ExecutionNotFound from exc
        return replace(found, domains=dict(Counter(found.domains).most_common(_MOST_HOSTS)))
