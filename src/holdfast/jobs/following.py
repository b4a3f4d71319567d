"""Jobs follow their sources: disabled ones wait, enabled ones go on, and every enabled source has a job (NC-051)."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlalchemy.orm import Session

from holdfast import log
from holdfast.clock import Clock
from holdfast.db.models import Source
from holdfast.errors import HoldfastError
from holdfast.jobs.board import queries
from holdfast.jobs.board.board import Board
from holdfast.jobs.journal.events import emit
from holdfast.jobs.moves import move
from holdfast.jobs.specs import JobSpec
from holdfast.jobs.states import Action, State
from holdfast.sources import registry
from holdfast.sources.queries import sources

_log = log.get()
_BY_SOURCE = "source"


def disable_source(session: Session, clock: Clock, code: str) -> int:
    """Disable a source: what is scheduled is paused, what waits for one run waits on; return how many jobs that were.

    What runs goes on to its end and is paused then. SourceNotFound if there is none.
    """
    registry.switch(session, clock, code, enabled=False)
    source, now = registry.find(session, code), clock.now()
    jobs = queries.jobs_of_source(session, source_id=source.id, states=("scheduled", "pending"))
    events = []
    for job in jobs:
        job.next_run_at, job.updated_at = None, now
        if job.state == State.SCHEDULED and queries.open_execution(session, job_id=job.id) is None:
            events.append(move(job, State.PAUSED, now=now, reason="source_disabled"))
            job.paused_by = _BY_SOURCE
    emit(session, events, now=now)
    return len(jobs)


def enable_source(session: Session, clock: Clock, board: Board, code: str) -> int:
    """Enable a source: what it paused is resumed into the emptiest slot; return how many jobs go on.

    A job that somebody paused by hand stays paused. SourceNotFound if there is none.
    """
    registry.switch(session, clock, code, enabled=True)
    source, now = registry.find(session, code), clock.now()
    count = 0
    for job in queries.jobs_of_source(session, source_id=source.id, states=("paused", "pending", "scheduled")):
        if job.state == State.PAUSED and job.paused_by == _BY_SOURCE:
            board.act(session, job.id, Action.RESUME)
            count += 1
        elif job.state != State.PAUSED and job.next_run_at is None:
            count += board.wake(session, job.id, now=now)
    return count


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """What a synchronisation found and did."""

    sources_seen: int
    sources_enabled: int
    created: tuple[str, ...]
    already_has_job: int
    resumed: int
    skipped_disabled: int
    errors: dict[str, str] = field(default_factory=dict)
    """By code of the source."""


def sync_enabled_sources(session: Session, clock: Clock, board: Board, *, interval_minutes: int) -> Synced:
    """Give every enabled source a crawl job that has none, and resume those that its source's absence had paused.

    A source whose configuration cannot be used is told in `errors`, and the rest goes on.
    """
    everything = sources(session, limit=1_000_000)
    enabled = [source for source in everything if source.enabled]
    created: list[str] = []
    errors: dict[str, str] = {}
    there = resumed = 0
    for source in enabled:
        if queries.crawl_job(session, source_id=source.id) is not None:
            there += 1
            resumed += enable_source(session, clock, board, source.code)
            continue
        try:
            _make(session, board, source, interval_minutes)
            created.append(source.code)
        except HoldfastError as exc:
            errors[source.code] = str(exc)
            _log.warning("sync.refused", source=source.code, message=str(exc))
    return Synced(
        sources_seen=len(everything), sources_enabled=len(enabled), created=tuple(created), already_has_job=there,
        resumed=resumed, skipped_disabled=len(everything) - len(enabled), errors=errors,
    )  # fmt: skip


def _make(session: Session, board: Board, source: Source, interval_minutes: int) -> None:
    board.upsert(session, JobSpec(source_id=source.id, interval_minutes=interval_minutes, schedule_enabled=True))
