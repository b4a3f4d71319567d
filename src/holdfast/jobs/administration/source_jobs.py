"""Keeps jobs in line with their sources: disabled sources' jobs pause, and every enabled source has a job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from sqlalchemy.orm import Session

from holdfast import log
from holdfast.clock import Clock
from holdfast.config import FeedSettings
from holdfast.db.engine import Database
from holdfast.db.models import Source
from holdfast.errors import Conflict, HoldfastError, Invalid
from holdfast.feeds.queries import feeds_of_source
from holdfast.feeds.registry import make_due
from holdfast.jobs import store
from holdfast.jobs.administration.actions import JobActions
from holdfast.jobs.journal import emit
from holdfast.jobs.kinds import FEED
from holdfast.jobs.specs import JobSpec
from holdfast.jobs.states import JobAction, State, move, state_of
from holdfast.records import Operator, from_row, record
from holdfast.sources import registry
from holdfast.sources.queries import (
    find_source,
    note_search,
    source_by_id,
    source_to_edit,
    sources,
    sources_by_code,
    started_among,
    with_feeds,
)
from holdfast.sources.records import SourceImport, SourceRecord
from holdfast.sources.registry import config_of
from holdfast.sources.schedule import Schedule, read_schedule, words_of

_log = log.get()
_BY_SOURCE = "source"
# Number of sources per transaction: creating their jobs takes about 0.1 s.
_PORTION = 20


def disable_source(session: Session, clock: Clock, code: str) -> int:
    """Disable a source and pause its scheduled jobs; return how many jobs that concerns. Pending one-off jobs wait.

    A running job finishes and is paused then. Raise SourceNotFound.
    """
    registry.switch(session, clock, code, enabled=False)
    source, now = find_source(session, code), clock.now()
    jobs = store.jobs_of_source(session, source_id=source.id, states=("scheduled", "pending"))
    events = []
    for job in jobs:
        # The table of states has no step from pending to paused: remove the job's time, so that it is not queued.
        job.next_run_at, job.updated_at = None, now
        if job.state == State.SCHEDULED and store.open_execution(session, job_id=job.id) is None:
            events.append(move(job, State.PAUSED, now=now, reason="source_disabled"))
            job.paused_by = _BY_SOURCE
    emit(session, events, now=now)
    return len(jobs)


def enable_source(session: Session, clock: Clock, actions: JobActions, code: str) -> int:
    """Enable a source and reschedule the jobs that its disabling paused, in the least busy slots; return how many.

    A job that a person paused stays paused. Raise SourceNotFound.
    """
    registry.switch(session, clock, code, enabled=True)
    source, now = find_source(session, code), clock.now()
    count = 0
    for job in store.jobs_of_source(session, source_id=source.id, states=("paused", "pending", "scheduled")):
        if job.state == State.PAUSED and job.paused_by == _BY_SOURCE:
            actions.act(session, job.id, JobAction.RESUME)
            count += 1
        elif job.state != State.PAUSED and job.next_run_at is None:
            count += actions.wake(session, job.id, now=now)
    return count


@record
class SyncReport:
    """Number of sources that got a job, had one, or were skipped."""

    sources_seen: Operator[int]
    sources_enabled: Operator[int]
    created: Operator[int]
    """Sources that got a job."""
    already_has_job: Operator[int]
    resumed: Operator[int]
    """Sources whose paused jobs were resumed."""
    skipped_disabled: Operator[int]
    skipped_rate_limit_parse_failure: Operator[int]
    """Always 0: a delay must be a number when it is saved."""
    errors: Operator[list[str]]
    """Code and error of each source whose configuration is invalid."""


def sync_enabled_sources(
    write: Callable[[], AbstractContextManager[Session]], clock: Clock, actions: JobActions, *, interval_minutes: int
) -> SyncReport:
    """Create a crawl job for every enabled source without one, and resume jobs that were paused with their source.

    Sources with an invalid configuration are reported, and the rest continues.
    """
    counts, errors, after = Counter[str](), list[str](), ""
    while True:
        with write() as session:
            # Commit each portion separately: a thousand new jobs in one transaction would block SQLite's writers for
            # seconds.
            rows = sources(session, after=after, limit=_PORTION)
            for source in rows:
                counts[_synced(session, clock, actions, source, interval_minutes, errors)] += 1
        if len(rows) < _PORTION:
            break
        after = rows[-1].code
    seen = counts.total()
    return SyncReport(
        sources_seen=seen,
        sources_enabled=seen - counts["disabled"],
        created=counts["created"],
        already_has_job=counts["with_job"],
        resumed=counts["resumed"],
        skipped_disabled=counts["disabled"],
        skipped_rate_limit_parse_failure=0,
        errors=errors,
    )


def _synced(
    session: Session, clock: Clock, actions: JobActions, source: Source, interval_minutes: int, errors: list[str]
) -> str:
    if not source.enabled:
        return "disabled"
    if store.crawl_job(session, source_id=source.id) is not None:
        return "resumed" if enable_source(session, clock, actions, source.code) else "with_job"
    spec = JobSpec(source_id=source.id, interval_minutes=interval_minutes, schedule_enabled=True)
    try:
        actions.upsert(session, spec)
    # One invalid configuration must not prevent jobs for the other sources.
    except HoldfastError as exc:
        _log.warning("sync.refused", source=source.code, message=str(exc))
        errors.append(f"{source.code}: {exc}")
        return "refused"
    return "created"


def source_records(session: Session, rows: Sequence[Source]) -> list[SourceRecord]:
    ids = [row.id for row in rows]
    schedules, started = store.schedules_of_sources(session, ids), started_among(session, ids)
    return [
        from_row(
            SourceRecord,
            row,
            schedule=words_of(schedules.get(row.id)),
            has_run=row.id in started,
            warnings=registry.warnings_of(row),
        )
        for row in rows
    ]


def source_record(session: Session, row: Source) -> SourceRecord:
    return source_records(session, [row])[0]


def take_in_sources(
    session: Session, clock: Clock, actions: JobActions, specs: Sequence[registry.SourceSpec], *, apply: bool = True
) -> SourceImport:
    """Create and update the sources that `registry.read_specs` parsed, and update their jobs."""
    found = sources_by_code(session, [spec.code for spec in specs], to_edit=apply)
    before = {row.code: row.enabled for row in found.values()}
    kept = store.schedules_of_sources(session, [row.id for row in found.values()])
    replanned = {
        spec.code
        for spec in specs
        if spec.code in found and _is_new_schedule(kept.get(found[spec.code].id), spec.schedule, clock)
    }
    done = registry.import_specs(session, clock, specs, apply=apply)
    for spec in specs if apply else ():
        if before.get(spec.code, spec.enabled) != spec.enabled:
            switch_source(session, clock, actions, spec.code, enabled=spec.enabled)
        plan_source(session, clock, actions, spec.code, spec.schedule)
    return replace(
        done,
        updated=[spec.code for spec in specs if spec.code in {*done.updated, *replanned}],
        unchanged=[code for code in done.unchanged if code not in replanned],
    )


def add_source(session: Session, clock: Clock, actions: JobActions, content: Mapping[str, Any]) -> Source:
    """Add a source with its schedule; generate a missing code. Raise SourceRefused naming the field, or
    SourceTaken.
    """
    spec = registry.read_spec(registry.with_code(session, content))
    source = registry.create(session, clock, spec)
    plan_source(session, clock, actions, spec.code, spec.schedule)
    return source


def replace_source(session: Session, clock: Clock, actions: JobActions, spec: registry.SourceSpec) -> None:
    """Replace a source's content, as `registry.replace`, and update its jobs."""
    before = source_to_edit(session, spec.code).enabled
    registry.replace(session, clock, spec)
    if spec.enabled != before:
        switch_source(session, clock, actions, spec.code, enabled=spec.enabled)
    plan_source(session, clock, actions, spec.code, spec.schedule)


def plan_source(session: Session, clock: Clock, actions: JobActions, code: str, words: str | None) -> None:
    """Set the schedule of a source's crawl job; None changes nothing. Neither interrupts nor starts a run."""
    source = find_source(session, code)
    kept = store.schedules_of_sources(session, [source.id]).get(source.id)
    if words is None or not _is_new_schedule(kept, words, clock):
        return
    schedule = read_schedule(words, now=clock.now())
    job = store.crawl_job(session, source_id=source.id)
    if schedule is None:
        if job is not None:
            actions.end_schedule(session, job.id)
        return
    base = JobSpec(source_id=source.id) if job is None else JobSpec.of(job)
    spec = replace(base.at(schedule), adaptive_scheduling=schedule.adapts)
    if job is None:
        actions.upsert(session, spec)
    else:
        actions.edit(session, job.id, spec)


def _is_new_schedule(kept: Schedule | None, words: str | None, clock: Clock) -> bool:
    return words is not None and words_of(read_schedule(words, now=clock.now())) != words_of(kept)


def file_entries(session: Session, codes: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return sources as import entries, as `registry.export`, with their schedules."""
    entries = registry.export(session, codes=codes)
    rows = sources_by_code(session, [entry["code"] for entry in entries])
    kept = store.schedules_of_sources(session, [row.id for row in rows.values()])
    for entry in entries:
        schedule = kept.get(rows[entry["code"]].id)
        if schedule is not None:
            entry["schedule"] = schedule.words()
    return entries


def switch_source(session: Session, clock: Clock, actions: JobActions, code: str, *, enabled: bool) -> int:
    """Enable or disable a source and its jobs; return how many that concerns. Raise SourceNotFound."""
    if enabled:
        return enable_source(session, clock, actions, code)
    return disable_source(session, clock, code)


# Retry a failed poll for days: a feed's answer never fails the run, so only this machine is at fault.
_RETRIES = 100


def follow_feeds(session: Session, actions: JobActions, source: Source, settings: FeedSettings) -> bool:
    """Create, change or delete a source's feed job according to its configuration; return whether that was necessary.

    A running job is left alone until it ends. Raise Invalid if the source cannot be crawled as configured.
    """
    # Lock the source before its jobs, as everywhere (decision 0012).
    store.locked_source(session, source.id)
    job = store.crawl_job(session, source_id=source.id, kind=FEED)
    if not (settings.poll and config_of(source, needs_seeds=False).feeds):
        if job is None or state_of(job) is State.RUNNING:
            return False
        actions.delete(session, job.id)
        return True
    # Most calls end here: the job already matches the settings.
    if job is not None and job.interval_minutes == settings.interval_minutes and job.interval_type == "minutes":
        return False
    spec = JobSpec(
        source_id=source.id,
        name=f"feeds of {source.code}",
        interval_minutes=settings.interval_minutes,
        schedule_enabled=True,
        adaptive_scheduling=False,
        max_retries=_RETRIES,
    )
    actions.upsert(session, spec, kind=FEED)
    return True


def follow_all(database: Database, actions: JobActions, settings: FeedSettings) -> int:
    """Update all feed jobs, each in a short transaction; return how many were created or removed."""
    with database.read() as session:
        wanted = with_feeds(session) if settings.poll else set()
        there = store.intervals_of_kind(session, kind=FEED)
    right = {number for number, interval in there.items() if interval == (settings.interval_minutes, "minutes")}
    count = 0
    # Missing, no longer wanted, or with another interval.
    for source_id in sorted((wanted - right) | (there.keys() - wanted)):
        try:
            with database.write() as session:
                source = source_by_id(session, source_id)
                if source is not None:
                    count += follow_feeds(session, actions, source, settings)
        # Its source cannot be crawled as configured: continue with the others, and retry at the next call.
        except (Invalid, Conflict) as exc:
            _log.warning("feed.job_refused", source=source_id, message=str(exc))
    return count


def run_soon(session: Session, clock: Clock, actions: JobActions, source_id: int) -> str | None:
    """Poll a source's feeds immediately; return the state of their job.

    A scheduled job is forced, a failed one retried; one that is queued, running or paused by hand is unchanged.
    """
    job = store.crawl_job(session, source_id=source_id, kind=FEED)
    if job is None:
        return None
    if state_of(job) is State.SCHEDULED and job.next_run_at is not None and job.next_run_at > clock.now():
        actions.act(session, job.id, JobAction.FORCE_RUN)
    elif state_of(job) is State.FAILED:
        actions.act(session, job.id, JobAction.RETRY)
    return job.state


class FeedsOff(Conflict):
    """The source's feeds are not polled: its configuration disables them, or polling is off for all sources."""

    code = "feeds_off"

    def __init__(self, code: str, *, everywhere: bool) -> None:
        why = "polling is off for all sources (HOLDFAST_FEEDS_POLL)" if everywhere else f"the feeds of {code} are off"
        super().__init__(f"{why}; turn them on with: holdfast source edit {code} --set feeds=true")


def make_feeds_due(
    session: Session, clock: Clock, actions: JobActions, source: Source, settings: FeedSettings, *, search: bool = False
) -> str:
    """Let the next worker poll a source's feeds, or discover new ones; return the state of their job.

    Disabled feeds, and feeds whose server requested a delay, keep their time. Raise FeedsOff.
    """
    follow_feeds(session, actions, source, settings)
    if search:
        note_search(session, source_id=source.id, at=None)
    else:
        make_due(clock, feeds_of_source(session, source_id=source.id), settings)
    state = run_soon(session, clock, actions, source.id)
    if state is None:
        raise FeedsOff(source.code, everywhere=not settings.poll)
    return state
