"""Turns due jobs into queued executions, and cleans up after silent holders. It runs nothing itself.

Any number of schedulers may work on one database: a due job is claimed by compare-and-set, and the unique
keys of executions (one for each turn of a job, one open for each job) are the authority. Starting one never
affects jobs of live holders.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Protocol

from sqlalchemy.orm import Session

from holdfast import log
from holdfast.clock import Clock
from holdfast.config import Settings
from holdfast.db.engine import Database, moment_in
from holdfast.db.models import JobEvent
from holdfast.errors import Unavailable
from holdfast.events import drop_old_events, has_old_events
from holdfast.jobs import schedule_queries
from holdfast.jobs.alerts import look_for_alerts
from holdfast.jobs.journal import anything_aged, drop_events, emit, has_events, prune_aged, tell_queued
from holdfast.jobs.settling import RunSettler
from holdfast.jobs.slots import Placement
from holdfast.jobs.store import open_execution
from holdfast.jobs.views.listing import SchedulerMetrics, count_metrics
from holdfast.series.queries import count_cleanup
from holdfast.series.thinning import thin_out
from holdfast.values import dataclass

BATCH = 100
"""Maximum number of jobs queued per tick: a transaction of milliseconds, so that other writers get their turn."""

_log = log.get()
# Number of locks that one transaction clears: it limits how long SQLite's writers wait.
_SWEPT = 50
_PRUNED = 100
# Number of transactions of one sweep that delete old rows; the next sweep deletes the rest.
_PORTIONS = 20
# Check rows with a retention of days at most once a minute, however often stale locks are checked.
_PRUNE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    queued: dict[int, int]
    """The new execution of each due job."""
    cleared: int = 0
    pruned: int = 0


class StopEvent(Protocol):
    def wait(self, timeout: float | None = None) -> bool: ...


class Scheduler:
    def __init__(self, database: Database, clock: Clock, settings: Settings, placement: Placement) -> None:
        self._database, self._clock, self._placement = database, clock, placement
        self._settings, self._timings = settings.jobs, settings.timings
        self._settler = RunSettler(settings, placement)
        self._sweep_at = self._prune_at = self._count_at = 0.0
        self._checked_at: datetime | None = None
        self.metrics: SchedulerMetrics | None = None

    def start(self) -> int:
        """Build the slot table from the rows and clear stale locks, as `sweep` does; return how many."""
        with self._database.read() as session:
            self._placement.refresh(session, now=moment_in(session, self._clock))
        return self.sweep(orphans=True)

    def tick(self) -> Tick:
        """Queue due jobs; periodically clear stale locks, prune and count. Raise Unavailable without the database."""
        queued = self._queue_due()
        cleared = pruned = 0
        elapsed = self._clock.monotonic()
        # Use the monotonic clock: after a jump of the wall clock, sweeps would run all the time or never again.
        if elapsed >= self._sweep_at:
            cleared = self.sweep()
            self._sweep_at = elapsed + self._timings.jobs_sweep_s
            if elapsed >= self._prune_at:
                pruned = self._prune()
                self._prune_at = elapsed + max(self._timings.jobs_sweep_s, _PRUNE_S)
        if elapsed >= self._count_at:
            with self._database.read() as session:
                now = moment_in(session, self._clock)
                self.metrics = count_metrics(session, now=now, last_check_at=self._checked_at)
            for warning in self.metrics.warnings:
                _log.warning("scheduler.warning", message=warning)
            look_for_alerts(self._database, self._clock, every_s=self._timings.jobs_metrics_s)
            self._count_at = elapsed + self._timings.jobs_metrics_s
        return Tick(queued=queued, cleared=cleared, pruned=pruned)

    def run(self, stop: StopEvent, *, on_tick: Callable[[], object] = lambda: None) -> None:
        """Tick until `stop` is set, calling `on_tick` after each success. Wait while the database is
        unavailable; log unexpected errors and continue.
        """
        while not stop.wait(self._timings.jobs_poll_s):
            try:
                tick = self.tick()
                on_tick()
            except Unavailable as exc:
                _log.warning("scheduler.waits", message=str(exc))
                continue
            except Exception:
                # The rows of one job must not stop the schedule of all: the next tick retries.
                _log.exception("scheduler.tick_failed")
                continue
            if tick.queued or tick.cleared:
                _log.info("scheduler.tick", queued=len(tick.queued), cleared=tick.cleared, pruned=tick.pruned)

    def _queue_due(self) -> dict[int, int]:
        with self._database.read() as session:
            self._checked_at = now = moment_in(session, self._clock)
            # Check without writing: nearly every tick finds nothing, and SQLite has one writer.
            if not schedule_queries.anything_due(session, now=now):
                return {}
        with self._database.write() as session:
            ids = schedule_queries.claim_due(session, now=now, limit=BATCH)
            if not ids:
                return {}
            queued = schedule_queries.enqueue(session, ids, now=now)
            # The unique key (job, turn) rejected it: this turn has run before. Without a new time the job would wait
            # forever.
            refused = [job_id for job_id in ids if job_id not in queued]
            if refused:
                schedule_queries.unstick(session, refused, moment=now + timedelta(seconds=1))
            tell_queued(session, list(queued.values()), now=now)
        for job_id in ids:
            # Update the table after the commit: a rollback must leave it unchanged.
            self._placement.note(job_id, None, None)
        return queued

    def sweep(self, *, orphans: bool = False, before: datetime | None = None) -> int:
        """Clear stale locks, so that other workers continue the executions; return how many.

        A lock is stale if its holder has ended, or was silent for the stale period, or since `before`. The recovery
        of dead owners ends their rows.
        """
        total = 0
        while True:
            with self._database.read() as session:
                since = moment_in(session, self._clock) - timedelta(seconds=self._timings.jobs_stale_s)
                stale = schedule_queries.stale_locks(before or since, orphans=orphans)
                # Check without a lock first: on SQLite each sweep would otherwise block all writers.
                if not schedule_queries.stale_ids(session, stale, limit=1):
                    return total
            with self._database.write() as session:
                cleared = self._sweep_some(session, stale)
            total += cleared
            if cleared < _SWEPT:
                return total

    def _sweep_some(self, session: Session, stale: schedule_queries.Stale) -> int:
        jobs = schedule_queries.stale_jobs(session, stale, limit=_SWEPT)
        # Read the time after locking: the next worker that leases one of them starts later.
        now = moment_in(session, self._clock)
        events: list[JobEvent] = []
        for job in jobs:
            # Log the holder before clearing the lock: the row has no holder afterwards.
            _log.warning("job.lock_stale", job_id=job.id, owner=job.lock_owner, epoch=job.lock_epoch)
            opened = open_execution(session, job_id=job.id)
            events += self._settler.lose(session, job, opened, now=now)
        if jobs:
            session.flush()
            # The metrics are those of crawls.
            if count := sum(job.source_id is not None for job in jobs):
                schedule_queries.count_hour(session, now, stale_locks=count)
            emit(session, events, now=now)
        return len(jobs)

    def _prune(self) -> int:
        with self._database.read() as session:
            now = moment_in(session, self._clock)
            before = now - timedelta(days=self._settings.history_days)
            events_before = now - timedelta(days=self._settings.events_days)
            has_old = has_events(session, before=events_before) or has_old_events(session, before=events_before)
            waits = has_old or anything_aged(session, before=before)
        thin_out(self._database, now=now, portions=_PORTIONS)
        total = 0
        for _ in range(_PORTIONS if waits else 0):
            with self._database.write() as session:
                stripped, is_all = prune_aged(session, before=before, now=now, limit=_PRUNED)
                dropped = drop_events(session, before=events_before, limit=10 * _PRUNED)
                old_events = drop_old_events(session, before=events_before, limit=10 * _PRUNED)
                removed = {"executions": stripped, "job_events": dropped, "events": old_events}
                count_cleanup(session, removed, now=now)
                dropped = max(dropped, old_events)
            total += stripped
            # Fewer rows than the limit: nothing is left for another transaction.
            if is_all and stripped < _PRUNED and dropped < 10 * _PRUNED:
                break
        return total
