"""Jobs follow their sources: disabled ones wait, enabled ones go on, and every enabled source has a job."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from sqlalchemy.orm import Session

from holdfast import log
from holdfast.clock import Clock
from holdfast.config import FeedSettings
from holdfast.db.engine import Database
from holdfast.db.models import Job, Source
from holdfast.errors import Conflict, HoldfastError, Invalid
from holdfast.feeds.queries import feeds_of_source
from holdfast.feeds.registry import make_due
from holdfast.jobs import store
from holdfast.jobs.administration.actions import JobActions
from holdfast.jobs.journal import emit
from holdfast.jobs.specs import JobSpec
from holdfast.jobs.states import JobAction, State, move, state_of
from holdfast.sources import registry
from holdfast.sources.queries import (
    find_source,
    note_search,
    source_by_id,
    source_to_edit,
    sources,
    sources_by_code,
    with_feeds,
)
from holdfast.sources.registry import config_of
from holdfast.sources.schedule import Schedule, read_schedule, words_of

_log = log.get()
_BY_SOURCE = "source"
# Sources of one transaction: making a job for each of them takes about 0.1 s.
_PORTION = 20


def disable_source(session: Session, clock: Clock, code: str) -> int:
    """Disable a source: what is scheduled is paused, what waits for one run waits on; return how many jobs that were.

    What runs goes on to its end and is paused then. SourceNotFound if there is none.
    """
    registry.switch(session, clock, code, enabled=False)
    source, now = find_source(session, code), clock.now()
    jobs = store.jobs_of_source(session, source_id=source.id, states=("scheduled", "pending"))
    events = []
    for job in jobs:
        # A pending job has no state to pause into (the table has no way): without a time it is not queued.
        job.next_run_at, job.updated_at = None, now
        if job.state == State.SCHEDULED and store.open_execution(session, job_id=job.id) is None:
            events.append(move(job, State.PAUSED, now=now, reason="source_disabled"))
            job.paused_by = _BY_SOURCE
    emit(session, events, now=now)
    return len(jobs)


def enable_source(session: Session, clock: Clock, actions: JobActions, code: str) -> int:
    """Enable a source: what it paused is resumed into the emptiest slot; return how many jobs go on.

    A job that a person paused stays paused. SourceNotFound if there is none.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """What a synchronisation found and did; sources by their code."""

    sources_seen: int = 0
    created: tuple[str, ...] = ()
    with_job: tuple[str, ...] = ()
    """Those that had a job before, and it waits or runs as it should."""
    woken: tuple[str, ...] = ()
    """Those whose jobs go on."""
    disabled: tuple[str, ...] = ()
    errors: dict[str, str] = field(default_factory=dict)

    @property
    def sources_enabled(self) -> int:
        """How many sources are enabled."""
        return self.sources_seen - len(self.disabled)

    @property
    def skipped_disabled(self) -> int:
        """How many sources are disabled."""
        return len(self.disabled)

    def __add__(self, other: Synced) -> Synced:
        """Return both together."""
        return Synced(
            sources_seen=self.sources_seen + other.sources_seen,
            created=self.created + other.created,
            with_job=self.with_job + other.with_job,
            woken=self.woken + other.woken,
            disabled=self.disabled + other.disabled,
            errors=self.errors | other.errors,
        )


def sync_enabled_sources(
    session: Session,
    clock: Clock,
    actions: JobActions,
    *,
    interval_minutes: int,
    after: str = "",
    limit: int = 1_000_000,
) -> Synced:
    """Give every enabled source a crawl job that has none, and resume those that its source's absence had paused.

    A source whose configuration cannot be used is told in `errors`, and the rest goes on. `after` and `limit` take the
    sources in portions, by code: a transaction stays short however many there are.
    """
    done = Synced()
    for source in sources(session, after=after, limit=limit):
        done += _synced(session, clock, actions, source, interval_minutes)
    return done


def sync_in_portions(
    write: Callable[[], AbstractContextManager[Session]], clock: Clock, actions: JobActions, *, interval_minutes: int
) -> Synced:
    """Do the same for all sources, however many: each portion in a short transaction of its own."""
    done, after = Synced(), ""
    while True:
        with write() as session:
            # Each portion in a transaction of its own: a thousand new jobs in one would hold SQLite's writers for
            # seconds.
            rows = sources(session, after=after, limit=_PORTION)
            done += sync_enabled_sources(
                session, clock, actions, interval_minutes=interval_minutes, after=after, limit=_PORTION
            )
        if len(rows) < _PORTION:
            return done
        after = rows[-1].code


def _synced(session: Session, clock: Clock, actions: JobActions, source: Source, interval_minutes: int) -> Synced:
    code = source.code
    if not source.enabled:
        return Synced(sources_seen=1, disabled=(code,))
    if store.crawl_job(session, source_id=source.id) is not None:
        woken = enable_source(session, clock, actions, code)
        return Synced(sources_seen=1, woken=(code,)) if woken else Synced(sources_seen=1, with_job=(code,))
    try:
        actions.upsert(session, JobSpec(source_id=source.id, interval_minutes=interval_minutes, schedule_enabled=True))
    # One source whose configuration cannot be used must not keep the others from having a job.
    except HoldfastError as exc:
        _log.warning("sync.refused", source=code, message=str(exc))
        return Synced(sources_seen=1, errors={code: str(exc)})
    return Synced(sources_seen=1, created=(code,))


def take_in_sources(
    session: Session, clock: Clock, actions: JobActions, specs: Sequence[registry.SourceSpec], *, apply: bool = True
) -> registry.ImportedSources:
    """Create and update sources that `registry.read_specs` has read, and let their jobs follow."""
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
            _follow(session, clock, actions, spec.code, enabled=spec.enabled)
        plan_source(session, clock, actions, spec.code, spec.schedule)
    return replace(
        done,
        updated=tuple(spec.code for spec in specs if spec.code in {*done.updated, *replanned}),
        unchanged=tuple(code for code in done.unchanged if code not in replanned),
    )


def add_source(session: Session, clock: Clock, actions: JobActions, content: Mapping[str, Any]) -> Source:
    """Add a source with its schedule; without a code it gets one. SourceRefused names the field; SourceTaken."""
    spec = registry.read_spec(registry.with_code(session, content))
    source = registry.create(session, clock, spec)
    plan_source(session, clock, actions, spec.code, spec.schedule)
    return source


def replace_source(session: Session, clock: Clock, actions: JobActions, spec: registry.SourceSpec) -> None:
    """Write a source anew, as `registry.replace`, and let its jobs follow."""
    before = source_to_edit(session, spec.code).enabled
    registry.replace(session, clock, spec)
    if spec.enabled != before:
        _follow(session, clock, actions, spec.code, enabled=spec.enabled)
    plan_source(session, clock, actions, spec.code, spec.schedule)


def plan_source(session: Session, clock: Clock, actions: JobActions, code: str, words: str | None) -> None:
    """Give a source's crawl job this schedule; None leaves it alone. A run is not interrupted, and none is started."""
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
    """Return sources as entries of a file, as `registry.export`, each with its schedule where it has one."""
    entries = registry.export(session, codes=codes)
    rows = sources_by_code(session, [entry["code"] for entry in entries])
    kept = store.schedules_of_sources(session, [row.id for row in rows.values()])
    for entry in entries:
        schedule = kept.get(rows[entry["code"]].id)
        if schedule is not None:
            entry["schedule"] = schedule.words()
    return entries


def _follow(session: Session, clock: Clock, actions: JobActions, code: str, *, enabled: bool) -> None:
    if enabled:
        enable_source(session, clock, actions, code)
    else:
        disable_source(session, clock, code)


# A run that fails is tried again for days: what feeds answer is no failure of the run, so only we are at fault.
_RETRIES = 100


class Followed(StrEnum):
    """What became of a source's feed job."""

    MADE = "made"
    CHANGED = "changed"
    REMOVED = "removed"
    AS_IT_WAS = "as_it_was"


def follow_feeds(session: Session, actions: JobActions, source: Source, settings: FeedSettings) -> Followed:
    """Bring a source's feed job in line with its configuration: one if feeds are on, none if they are off.

    One that runs is left alone until it has ended. Invalid if the source cannot be crawled as it is.
    """
    # Before its jobs, as everywhere (decision 0012).
    store.locked_source(session, source.id)
    job = feed_job(session, source_id=source.id)
    if not (settings.poll and config_of(source, needs_seeds=False).feeds):
        if job is None or state_of(job) is State.RUNNING:
            return Followed.AS_IT_WAS
        actions.delete(session, job.id)
        return Followed.REMOVED
    # Most looks end here: the job is as the settings want it.
    if job is not None and job.interval_minutes == settings.interval_minutes and job.interval_type == "minutes":
        return Followed.AS_IT_WAS
    spec = JobSpec(
        source_id=source.id,
        name=f"feeds of {source.code}",
        interval_minutes=settings.interval_minutes,
        schedule_enabled=True,
        adaptive_scheduling=False,
        max_retries=_RETRIES,
    )
    actions.upsert(session, spec, kind=store.FEED)
    return Followed.CHANGED if job is not None else Followed.MADE


def lagging(session: Session, settings: FeedSettings) -> list[int]:
    """Return the sources whose feed job is missing, is not wanted any more, or has another interval."""
    wanted = with_feeds(session) if settings.poll else set()
    there = store.intervals_of_kind(session, kind=store.FEED)
    right = {number for number, interval in there.items() if interval == (settings.interval_minutes, "minutes")}
    return sorted((wanted - right) | (there.keys() - wanted))


def follow_all(database: Database, actions: JobActions, settings: FeedSettings) -> int:
    """Let all feed jobs follow their sources, each in a short transaction; return how many were made or removed."""
    with database.read() as session:
        behind = lagging(session, settings)
    count = 0
    for source_id in behind:
        try:
            with database.write() as session:
                source = source_by_id(session, source_id)
                if source is not None:
                    count += follow_feeds(session, actions, source, settings) is not Followed.AS_IT_WAS
        # Its source cannot be crawled as it is: the rest is followed all the same, and the next look tries again.
        except (Invalid, Conflict) as exc:
            _log.warning("feed.job_refused", source=source_id, message=str(exc))
    return count


def feed_job(session: Session, *, source_id: int) -> Job | None:
    """Return the job that polls a source's feeds, locked; None if it has none."""
    return store.crawl_job(session, source_id=source_id, kind=store.FEED)


def run_soon(session: Session, clock: Clock, actions: JobActions, source_id: int) -> str | None:
    """Let a source's feeds be polled at once; return the state of their job, None if there is none.

    A job that waits is forced; one that is queued, runs or was paused by hand stays as it is.
    """
    job = feed_job(session, source_id=source_id)
    if job is None:
        return None
    if state_of(job) is State.SCHEDULED and job.next_run_at is not None and job.next_run_at > clock.now():
        actions.act(session, job.id, JobAction.FORCE_RUN)
    elif state_of(job) is State.FAILED:
        actions.act(session, job.id, JobAction.RETRY)
    return job.state


class FeedsOff(Conflict):
    """A source's feeds are not polled: its configuration leaves them alone, or polling is off for all."""

    code = "feeds_off"

    def __init__(self, code: str, *, everywhere: bool) -> None:
        why = "polling is off for all sources (HOLDFAST_FEEDS_POLL)" if everywhere else f"the feeds of {code} are off"
        super().__init__(f"{why}; turn them on with: holdfast source edit {code} --set feeds=true")


def make_feeds_due(
    session: Session, clock: Clock, actions: JobActions, source: Source, settings: FeedSettings, *, search: bool = False
) -> str:
    """Have a source's feeds polled, or looked for, by the next worker; return the state of their job.

    Those that are disabled, or told us to stay away, keep their time. FeedsOff.
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
