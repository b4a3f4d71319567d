"""What deserves a look: runs that failed or were left out, what waits and why, and workers that fell silent."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from holdfast.clock import Clock, from_micros, to_micros
from holdfast.config import Settings
from holdfast.coordination.disk import low_volume
from holdfast.coordination.owners import OwnerSeen, seen_owners
from holdfast.db.hot import Hot
from holdfast.db.room import Refusal, last_refusal
from holdfast.jobs.standing import queries
from holdfast.jobs.standing.queries import FailedRun, QueuedRun, SkippedRun

LATELY: Final = timedelta(days=7)
_WORKERS: Final = ("worker", "runner")
"""Owners that run jobs: with a scheduler of their own, or without."""
_SHOWN: Final = 5
_LOOKED_AT: Final = 500
_MOST: Final = 10_000
_OVERDUE_POLLS: Final = 6
"""Looks of a scheduler after which a job that is due and not queued says that none is at work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A queued execution, and what it waits for."""

    run: QueuedRun
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AtWork:
    """A worker that has not said goodbye."""

    name: str
    seen: OwnerSeen
    jobs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How the jobs stand altogether."""

    failed: tuple[FailedRun, ...]
    """Those that nobody has made good first."""
    skipped: tuple[SkippedRun, ...]
    waiting: tuple[Waiting, ...]
    """The first few, in the order in which they will be taken."""
    queued: int
    overdue: int
    """Jobs that are due and that no scheduler has queued."""
    unindexed: int
    workers: tuple[AtWork, ...]
    low_disk: bool
    low_volume: Path | None = None
    """Which of the volumes has too little room."""
    refusal: Refusal | None = None
    """The last write, if the database refused it for want of room."""

    @property
    def stale(self) -> tuple[AtWork, ...]:
        """Workers that died or fell silent."""
        return tuple(worker for worker in self.workers if worker.seen.is_gone)


def read_standing(hot: Hot, clock: Clock, settings: Settings, *, run_folder: Path) -> Standing:
    """Return how the jobs stand now; what it costs does not grow with the history."""
    now = clock.now()
    since, due = to_micros(now - LATELY), now - timedelta(seconds=_OVERDUE_POLLS * settings.jobs.poll_s)
    with hot.read() as tx:
        failed = queries.failed_runs(tx, since=since, limit=_SHOWN, mended=False)
        failed += queries.failed_runs(tx, since=since, limit=_SHOWN - len(failed), mended=True)
        skipped = queries.skipped_runs(tx, since=since, looked_at=_LOOKED_AT)[:_SHOWN]
        first = queries.queued_runs(tx, limit=_SHOWN)
        queued = queries.queued_count(tx, most=_MOST)
        overdue = queries.overdue_count(tx, before=to_micros(due), most=_MOST)
        unindexed = queries.unindexed_count(tx, most=_MOST)
        locks = queries.locked_by(tx)
    workers = tuple(
        AtWork(name=f"{seen.host}/{seen.id}", seen=seen, jobs=locks.get(f"{seen.host}/{seen.id}", 0))
        for kind in _WORKERS
        for seen in seen_owners(hot, clock, kind=kind, folder=run_folder)
    )
    full = low_volume(settings)
    low = full is not None
    alive = [worker for worker in workers if not worker.seen.is_gone]
    waiting = tuple(Waiting(run=run, why=_why(run, now, low=low, alive=alive)) for run in first)
    return Standing(
        failed=tuple(failed), skipped=tuple(skipped), waiting=waiting, queued=queued, overdue=overdue,
        unindexed=unindexed, workers=workers, low_disk=low, low_volume=full,
        refusal=last_refusal(settings.home),
    )  # fmt: skip


def _why(run: QueuedRun, now: datetime, *, low: bool, alive: list[AtWork]) -> str:
    at = from_micros(run.queued_at)
    if at > now:
        return f"not before {at:%Y-%m-%d %H:%M}"
    if not run.enabled:
        return "its source is disabled"
    if low:
        return "the disk is too full for new work"
    if not alive:
        return "no worker runs"
    return "all workers are busy" if all(worker.jobs for worker in alive) else "its turn is next"
