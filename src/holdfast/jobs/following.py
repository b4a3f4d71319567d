"""Jobs follow their sources: disabled ones wait, enabled ones go on, and every enabled source has a job (NC-051)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
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
from holdfast.sources.queries import sources, sources_by_code

_log = log.get()
_BY_SOURCE = "source"
_PORTION = 20
"""Sources of one transaction: making a job for each of them takes about 0.1 s."""


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
    """What a synchronisation found and did; sources by their code."""

    sources_seen: int = 0
    created: tuple[str, ...] = ()
    with_job: tuple[str, ...] = ()
    """Who had a job before, and it waits or runs as it should."""
    woken: tuple[str, ...] = ()
    """Whose jobs go on."""
    disabled: tuple[str, ...] = ()
    errors: dict[str, str] = field(default_factory=dict)

    @property
    def sources_enabled(self) -> int:
        """How many sources are enabled."""
        return self.sources_seen - len(self.disabled)

    @property
    def already_has_job(self) -> int:
        """How many sources had a job that needed nothing."""
        return len(self.with_job)

    @property
    def resumed(self) -> int:
        """How many sources' jobs go on."""
        return len(self.woken)

    @property
    def skipped_disabled(self) -> int:
        """How many sources are disabled."""
        return len(self.disabled)

    def __add__(self, other: Synced) -> Synced:
        """Return both together."""
        return Synced(
            sources_seen=self.sources_seen + other.sources_seen, created=self.created + other.created,
            with_job=self.with_job + other.with_job, woken=self.woken + other.woken,
            disabled=self.disabled + other.disabled, errors=self.errors | other.errors,
        )  # fmt: skip


def sync_enabled_sources(session: Session, clock: Clock, board: Board, *, interval_minutes: int, after: str = "",
                         limit: int = 1_000_000) -> Synced:  # fmt: skip
    """Give every enabled source a crawl job that has none, and resume those that its source's absence had paused.

    A source whose configuration cannot be used is told in `errors`, and the rest goes on. `after` and `limit` take the
    sources in portions, by code: a transaction stays short however many there are.
    """
    done = Synced()
    for source in sources(session, after=after, limit=limit):
        done += _synced(session, clock, board, source, interval_minutes)
    return done


def sync_in_portions(write: Callable[[], AbstractContextManager[Session]], clock: Clock, board: Board, *,
                     interval_minutes: int) -> Synced:  # fmt: skip
    """Do the same for all sources, however many: each portion in a short transaction of its own."""
    done, after = Synced(), ""
    while True:
        with write() as session:
            rows = sources(session, after=after, limit=_PORTION)
            done += sync_enabled_sources(
                session, clock, board, interval_minutes=interval_minutes, after=after, limit=_PORTION
            )
        if len(rows) < _PORTION:
            return done
        after = rows[-1].code


def _synced(session: Session, clock: Clock, board: Board, source: Source, interval_minutes: int) -> Synced:
    code = source.code
    if not source.enabled:
        return Synced(sources_seen=1, disabled=(code,))
    if queries.crawl_job(session, source_id=source.id) is not None:
        woken = enable_source(session, clock, board, code)
        return Synced(sources_seen=1, woken=(code,)) if woken else Synced(sources_seen=1, with_job=(code,))
    try:
        board.upsert(session, JobSpec(source_id=source.id, interval_minutes=interval_minutes, schedule_enabled=True))
    except HoldfastError as exc:
        _log.warning("sync.refused", source=code, message=str(exc))
        return Synced(sources_seen=1, errors={code: str(exc)})
    return Synced(sources_seen=1, created=(code,))


def take_in_sources(session: Session, clock: Clock, board: Board, specs: Sequence[registry.SourceSpec], *,
                    apply: bool = True) -> registry.Imported:  # fmt: skip
    """Create and update sources that `registry.read_specs` has read, and let their jobs follow."""
    before = {row.code: row.enabled for row in sources_by_code(session, [spec.code for spec in specs]).values()}
    done = registry.take_in(session, clock, specs, apply=apply)
    for spec in specs if apply else ():
        if before.get(spec.code, spec.enabled) != spec.enabled:
            _follow(session, clock, board, spec.code, enabled=spec.enabled)
    return done


def replace_source(session: Session, clock: Clock, board: Board, spec: registry.SourceSpec) -> None:
    """Write a source anew, as `registry.replace`, and let its jobs follow."""
    before = registry.find(session, spec.code).enabled
    registry.replace(session, clock, spec)
    if spec.enabled != before:
        _follow(session, clock, board, spec.code, enabled=spec.enabled)


def _follow(session: Session, clock: Clock, board: Board, code: str, *, enabled: bool) -> None:
    if enabled:
        enable_source(session, clock, board, code)
    else:
        disable_source(session, clock, code)
