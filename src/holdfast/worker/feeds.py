"""Polls the feeds of a source: the native crawl with another plan, plus preparation and follow-up.

Failing feeds do not make the run fail: each feed has its own status. A source that is being crawled is
skipped.
"""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import replace

from holdfast.config import Settings
from holdfast.db.engine import Database
from holdfast.feeds import polling, queries, registry
from holdfast.feeds.registry import PollPlan
from holdfast.jobs.administration.source_jobs import follow_all
from holdfast.jobs.endings import DONE, RunEnding, RunResult, Shortfall
from holdfast.jobs.journal import emit, status
from holdfast.jobs.leases import ExecutionLease
from holdfast.jobs.specs import feed_plan, job_config
from holdfast.jobs.states import State
from holdfast.sources.plan import CrawlPlan, Polled
from holdfast.sources.queries import note_search
from holdfast.warc.queries import files_of
from holdfast.wiring import Runtime, open_runtime
from holdfast.wiring.feeds import open_feeds
from holdfast.wiring.jobs import Jobs
from holdfast.worker.native import NativeRunner, plan_of
from holdfast.worker.runner import RunnerHolding

# How often feed jobs are synchronised with their sources.
_FOLLOW_S = 60.0


class FeedRunner:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def run(self, lease: ExecutionLease, holding: RunnerHolding) -> RunEnding | None:
        settings = self._settings
        with closing(Database(settings.database)) as database, open_runtime(settings) as runtime:
            poll = _Poll(runtime, database, lease, holding)
            # Create no frontier and no process if nothing is due; a resumed run still has claimed items.
            if poll.brief.is_idle and not lease.resumed:
                reason = "crawl_is_running" if poll.brief.crawled_now else "nothing_due"
                return RunEnding(result=RunResult.COMPLETED, reason=reason)
            # Use one process: all items of a source are on one domain, which only one process may request.
            alone = settings.model_copy(update={"worker": settings.worker.model_copy(update={"processes": 1})})
            ending = NativeRunner(alone, plan=poll.begin()).run(lease, holding)
            if ending is None or ending.result is RunResult.CANCELLED:
                return ending
            with runtime.raw_db.read() as tx:
                has_files = bool(files_of(tx, execution_id=lease.execution_id))
            ending = as_poll(ending, has_files=has_files)
            poll.conclude(ending)
            return ending


# Reasons of polls that requested all items, or retried them for long.
_CAME_TO_ITS_END = (DONE, Shortfall.HOSTS_GIVEN_UP, Shortfall.TRUNCATED)


class _Poll:
    def __init__(self, runtime: Runtime, database: Database, lease: ExecutionLease, holding: RunnerHolding) -> None:
        self._runtime, self._database, self._lease, self._holding = runtime, database, lease, holding
        self._settings, self._began = runtime.settings.feeds, runtime.clock.now()
        self._config = job_config(lease.job, lease.source)
        self.brief = self._read()

    def _read(self) -> PollPlan:
        lease = self._lease
        # Requeue items that a poll claimed but did not request: its worker may have been killed.
        if given := polling.recover_items(self._runtime.raw_db, job_id=lease.job.id, source_id=lease.source.id):
            self._holding.note("info", "queue", "items of earlier polls wait again", items=given)
        if gone := polling.forget_items(self._runtime.raw_db, now=self._began):
            self._holding.note("info", "queue", "items that were captured years ago are forgotten", items=gone)
        with self._database.read() as session:
            return registry.plan_poll(session, self._lease.source, self._config, self._settings, now=self._began)

    def begin(self) -> CrawlPlan:
        """Return the plan, after adding items that earlier polls had no room for."""
        brief = self.brief
        self._holding.note(
            "info", "lifecycle", "poll starts", feeds=len(brief.feeds), search=brief.search, items_waiting=brief.waiting
        )
        lists = [Polled(feed.url, feed.etag, feed.last_modified) for feed in brief.feeds]
        plan = replace(plan_of(self._runtime.settings, self._lease), landing=brief.landing)
        plan = feed_plan(plan, lists, search=brief.search)
        book = open_feeds(self._runtime, plan, self._lease.execution_id)
        if book is not None:
            # Take items before the crawl starts: those that earlier polls had no room for precede new ones.
            book.take()
        return plan

    def conclude(self, ending: RunEnding) -> None:
        """Record the feed discovery, count what could not be reached, and publish the state of the feeds."""
        now, lease = self._runtime.clock.now(), self._lease
        over = ending.result is RunResult.COMPLETED and ending.reason in _CAME_TO_ITS_END
        # A stopped poll did not request all feeds: the others did not fail.
        if over:
            ids = [feed.id for feed in self.brief.feeds]
            polling.count_unreached(self._runtime.raw_db, ids, self._settings, since=self._began, now=now)
        with self._database.write() as session:
            if over and self.brief.search:
                note_search(session, source_id=lease.source.id, at=now)
            feeds = queries.feeds_of_source(session, source_id=lease.source.id)
            waiting = queries.waiting_count(session, source_id=lease.source.id)
            disabled = [feed for feed in feeds if feed.disabled_at is not None and feed.disabled_at >= self._began]
            emit(
                session,
                [
                    status(
                        lease.job.id,
                        State.RUNNING,
                        execution_id=lease.execution_id,
                        feed_disabled=feed.id,
                        url=feed.url,
                        error_type=feed.last_error_type,
                    )
                    for feed in disabled
                ],
                now=now,
            )
        for feed in disabled:
            self._holding.note(
                "warning",
                "error",
                f"feed {feed.id} is disabled: {feed.url}",
                feed=feed.id,
                url=feed.url,
                error_type=feed.last_error_type,
                errors=feed.consecutive_errors,
                detail=feed.last_error,
            )
        polled = [feed for feed in feeds if feed.last_polled_at is not None and feed.last_polled_at >= self._began]
        answers = Counter(feed.last_error_type or "ok" for feed in polled)
        found = sum(feed.created_at >= self._began for feed in feeds)
        self._holding.note(
            "info",
            "metrics",
            "poll ends",
            polled=len(polled),
            answers=dict(answers),
            new_feeds=found,
            items_waiting=waiting,
        )


def as_poll(ending: RunEnding, *, has_files: bool) -> RunEnding:
    """Return the ending of a poll: failing feeds do not make it fail, and any responses are indexed."""
    # A feed that fails records this itself and is disabled in time: the job must not fail too.
    if ending.reason not in (Shortfall.NO_SERVER, Shortfall.NOTHING_CAPTURED):
        return ending
    return replace(
        ending,
        result=RunResult.COMPLETED,
        failure=None,
        reason=DONE,
        shortfalls={},
        error=None,
        index_state="pending" if has_files else None,
    )


class FeedJobs:
    """Periodically updates the feed jobs of sources; for the thread that also queues due jobs."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._looked_at: float | None = None

    def look(self) -> int:
        """Create and delete feed jobs according to their sources; return how many, usually 0."""
        now = self._jobs.clock.monotonic()
        # The queueing thread calls this at each poll and must not read all sources each time.
        if self._looked_at is not None and now - self._looked_at < _FOLLOW_S:
            return 0
        self._looked_at = now
        return follow_all(self._jobs.database, self._jobs.actions, self._jobs.settings.feeds)
