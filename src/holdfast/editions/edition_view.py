"""An edition with everything that belongs to it, read in one short session: its source, its shards, what they ran."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from holdfast.db.engine import Database
from holdfast.db.models import Edition, Execution, Source
from holdfast.editions import queries
from holdfast.editions import shard_queries as shards
from holdfast.editions.campaign import FIRST_YEAR, LAST_YEAR
from holdfast.editions.errors import EditionNotFound
from holdfast.editions.queries import CaptureRow, WantedCaptures
from holdfast.editions.readiness import Acceptance, ShardReadiness
from holdfast.editions.shard_queries import ShardState
from holdfast.errors import HoldfastError
from holdfast.jobs.endings import rule_of
from holdfast.sources.config import SourceConfig, merged
from holdfast.sources.registry import config_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardRun:
    """One execution of a shard."""

    id: int
    state: str
    reason: str | None
    finished_at: datetime | None
    items_failed: int
    items_total: int
    items_crawled: int
    shortfalls: dict[str, int]
    """What it fell short of, by word and count."""
    seeds: tuple[str, ...]
    landing: tuple[str, ...]
    """Where its seeds led: those hosts were in scope too."""

    @property
    def ended(self) -> str:
        """Why it ended, or how it stands, in a word."""
        if self.state in ("running", "queued"):
            return self.state
        return self.reason or self.state

    @property
    def is_whole(self) -> bool:
        """Whether it fell short of nothing."""
        return rule_of(self.state, self.reason).is_ready and not self.shortfalls


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """A job as a part of an edition."""

    job_id: int
    name: str
    key: str
    kind: str
    status: str
    """The operators' word for the job and its latest execution."""
    acceptance: str | None
    reason: str | None
    """Why somebody accepted it as it is."""
    backend: str
    retries: int
    seeds: tuple[str, ...]
    runs: tuple[ShardRun, ...]
    indexed_pages: int

    @property
    def state(self) -> ShardReadiness:
        """What decides about it: its last run tells what it is, for a retry goes on with what was left."""
        is_whole = not self.runs or self.runs[-1].is_whole
        return ShardReadiness(self.status, self.acceptance, is_whole)

    @property
    def counts(self) -> bool:
        """Whether it is part of the edition; somebody may have excluded it."""
        return self.acceptance != Acceptance.EXCLUDED


@dataclass(frozen=True, slots=True, kw_only=True)
class EditionView:
    """One edition, open for reading."""

    edition: Edition
    source: Source
    config: SourceConfig
    shards: tuple[Shard, ...]

    @property
    def runs(self) -> list[tuple[Shard, ShardRun]]:
        """Every execution of the shards that count, oldest first."""
        found = [(shard, run) for shard in self.shards if shard.counts for run in shard.runs]
        return sorted(found, key=lambda pair: pair[1].id)

    @property
    def seeds(self) -> dict[str, list[Shard]]:
        """The seeds that the edition was planned with and those of its shards, with every shard that has each."""
        found: dict[str, list[Shard]] = {str(seed): [] for seed in self.edition.coverage_summary.get("seeds", ())}
        for shard in self.shards:
            for seed in shard.seeds:
                found.setdefault(seed, []).append(shard)
        return found


def find_edition(session: Session, source: Source, year: int) -> Edition:
    """Return the edition of a source and a year; EditionNotFound."""
    found = queries.edition(session, source_id=source.id, year=year) if FIRST_YEAR <= year <= LAST_YEAR else None
    if found is None:
        raise EditionNotFound(
            f"there is no edition of {source.code} for {year}; make one with: holdfast schedule-annual --year {year}"
        )
    return found


def read_volume(session: Session, edition_id: int) -> EditionView:
    """Return an edition with its shards and their executions; EditionNotFound."""
    found = queries.edition_by_id(session, edition_id) if 0 <= edition_id < 1 << 63 else None
    if found is None:
        raise EditionNotFound(f"there is no edition {edition_id}; see them with: holdfast edition list")
    edition, source = found
    standings = shards.of_edition(session, edition.id)
    ran: dict[int, list[Execution]] = {}
    for execution in shards.executions_of(session, [one.job.id for one in standings]):
        ran.setdefault(execution.job_id, []).append(execution)
    base = _base(source)
    made = tuple(_shard(one, ran.get(one.job.id, []), base) for one in standings)
    return EditionView(edition=edition, source=source, config=base, shards=made)


def _shard(standing: ShardState, executions: list[Execution], base: SourceConfig) -> Shard:
    job = standing.job
    config = _config(base, job.config)
    runs = tuple(_run(execution) for execution in executions)
    asked: tuple[str, ...] = tuple(dict.fromkeys(seed for run in runs for seed in run.seeds))
    own = tuple(str(seed) for seed in job.config.get("seeds") or ())
    told = job.details.get("operator_acceptance") or {}
    return Shard(
        job_id=job.id,
        name=job.name or f"job-{job.id}",
        key=job.shard_key or f"job-{job.id}",
        kind=job.shard_kind or "full_site",
        status=standing.status,
        acceptance=job.acceptance_state,
        reason=told.get("reason"),
        backend=config.backend,
        retries=job.current_retry_count,
        seeds=own or asked or base.seeds,
        runs=runs,
        indexed_pages=sum(execution.items_indexed for execution in executions),
    )


def _base(source: Source) -> SourceConfig:
    """Return a source's configuration; one that names no seeds, as an import's, or is no longer accepted, is empty."""
    try:
        return config_of(source)
    except HoldfastError:
        return SourceConfig()


def _config(base: SourceConfig, overrides: dict[str, Any]) -> SourceConfig:
    """Return a job's configuration; one that is no longer accepted leaves its source's."""
    try:
        return merged(base, overrides=overrides)
    except HoldfastError:
        return base


def _run(execution: Execution) -> ShardRun:
    return ShardRun(
        id=execution.id,
        state=execution.state,
        reason=execution.reason,
        finished_at=execution.finished_at,
        items_failed=execution.items_failed,
        items_total=execution.items_total,
        items_crawled=execution.items_crawled,
        shortfalls={str(word): int(count) for word, count in execution.shortfalls.items()},
        seeds=tuple(str(seed) for seed in execution.config.get("seeds") or ()),
        landing=tuple(str(place) for place in execution.config.get("landing") or ()),
    )


def captures_of(
    database: Database, volume: EditionView, *, which: WantedCaptures = WantedCaptures.PAGES
) -> Iterator[tuple[Shard, CaptureRow]]:
    """Yield the captures of an edition's executions; withdrawn ones are marked."""
    for shard, run in volume.runs:
        after = -1
        while True:
            with database.read() as session:
                rows = queries.captures(session, run.id, after=after, which=which)
            yield from ((shard, row) for row in rows)
            if len(rows) < queries.STRETCH:
                break
            after = rows[-1].id
