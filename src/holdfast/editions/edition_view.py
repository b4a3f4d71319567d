"""An edition with its source, shards and their executions, read in one short session.

Also decides its readiness. A shard blocks until it is indexed or a person has accepted its gap. An edition is
ready for search when none blocks; for research when, besides, its coverage is documented, it has seeds, every
one of them was captured, and no shard's last run had a shortfall (`jobs.endings`); or when the gaps were
accepted with a reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from holdfast.db.engine import Database
from holdfast.db.models import Edition, Execution, Job, Source
from holdfast.editions import queries
from holdfast.editions.campaign import FIRST_YEAR, FULL_SITE, LAST_YEAR
from holdfast.editions.edition_files import EditionDraft, draft, edition_folder
from holdfast.editions.queries import CaptureRow, ShardState, WantedCaptures
from holdfast.errors import Conflict, HoldfastError, NotFound
from holdfast.jobs.endings import rule_of
from holdfast.sources.config import SourceConfig, merged
from holdfast.sources.registry import config_of
from holdfast.urls import parse_seed
from holdfast.values import dataclass


class EditionNotFound(NotFound):
    """The source has no edition of this year."""

    code = "edition_not_found"


class EditionNotReady(Conflict):
    """The edition has not progressed far enough for this."""

    code = "edition_not_ready"


class EditionStatus(StrEnum):
    """The status of an edition."""

    PLANNED = "planned"
    IN_PROGRESS = "in_progress"
    NEEDS_REVIEW = "needs_review"
    SEARCH_READY = "search_ready"
    RESEARCH_READY = "research_ready"


class Acceptance(StrEnum):
    """A decision about a shard."""

    PENDING = "pending"
    NEEDS_REVIEW = "needs_review"
    ACCEPTED = "accepted"
    ACCEPTED_GAP = "accepted_gap"
    EXCLUDED = "excluded"


_SETTLED = frozenset({Acceptance.ACCEPTED, Acceptance.ACCEPTED_GAP, Acceptance.EXCLUDED})
INDEXED = "indexed"
_BROKEN = frozenset({"failed", "index_failed", "cancelled"})


class PageDecision(NamedTuple):
    url: str
    state: str
    """accepted (it may be missing) or excluded (it does not belong to the edition)."""
    reason: str
    decided_at: str
    decided_by: str | None = None


class ShardReadiness(NamedTuple):
    """The state of a shard: its job's status for operators, and operators' decisions."""

    status: str
    acceptance: str | None = None
    is_whole: bool = True
    """Whether its last run had no shortfalls: no host given up, no limit, no truncated body, not stopped."""

    @property
    def is_accepted(self) -> bool:
        """Whether an operator has accepted or excluded it, whatever its job did."""
        return self.acceptance in _SETTLED

    @property
    def is_blocking(self) -> bool:
        """Whether it prevents the edition from being ready for search."""
        return not self.is_accepted and self.status != INDEXED

    @property
    def falls_short(self) -> bool:
        """Whether a person has to accept its gap before an edition can be ready for research."""
        return not self.is_accepted and not self.is_whole

    @property
    def needs_review(self) -> bool:
        """Whether it will not continue by itself."""
        return not self.is_accepted and self.status in _BROKEN


class Readiness(NamedTuple):
    status: EditionStatus
    search_ready: bool
    research_ready: bool

    def as_object(self) -> dict[str, object]:
        return {"status": self.status.value, "search_ready": self.search_ready, "research_ready": self.research_ready}


def judge(
    shards: Sequence[ShardReadiness], *, captured: int, missing_seeds: int | None, seeds: int | None = None
) -> Readiness:
    """Return how ready an edition is; `missing_seeds` is None while no report has counted them.

    `seeds` is how many it has: without any, the intended content is unknown, so it is ready for research only if
    every shard was accepted.
    """
    indexed = any(shard.status == INDEXED for shard in shards)
    blocking = any(shard.is_blocking for shard in shards)
    review = any(shard.needs_review for shard in shards)
    search_ready = indexed and not blocking and captured > 0
    is_meant = bool(seeds) or all(shard.is_accepted for shard in shards)
    research_ready = search_ready and missing_seeds == 0 and is_meant and not any(one.falls_short for one in shards)
    if research_ready:
        status = EditionStatus.RESEARCH_READY
    # Check this before "in progress": a failed shard does not continue by itself, whatever the others do.
    elif review:
        status = EditionStatus.NEEDS_REVIEW
    elif blocking:
        status = EditionStatus.IN_PROGRESS
    elif search_ready:
        status = EditionStatus.SEARCH_READY
    else:
        status = EditionStatus.IN_PROGRESS if shards else EditionStatus.PLANNED
    return Readiness(status, search_ready, research_ready)


def ended_as(run: Execution) -> str:
    """Return the reason why an execution ended, or its state while it has not."""
    return run.state if run.state in ("running", "queued") else run.reason or run.state


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """A job of an edition, and its executions, oldest first."""

    job: Job
    status: str
    """Status of the job and its latest execution, as operators see it."""
    backend: str
    seeds: tuple[str, ...]
    runs: tuple[Execution, ...]

    @property
    def name(self) -> str:
        return self.job.name or f"job-{self.job.id}"

    @property
    def key(self) -> str:
        return self.job.shard_key or f"job-{self.job.id}"

    @property
    def kind(self) -> str:
        return self.job.shard_kind or FULL_SITE

    @property
    def reason(self) -> str | None:
        """Why an operator accepted it as it is."""
        return (self.job.details.get("operator_acceptance") or {}).get("reason")

    @property
    def state(self) -> ShardReadiness:
        """Its state. Only the last run counts, because a retry continues the runs before it."""
        last = self.runs[-1] if self.runs else None
        is_whole = last is None or (rule_of(last.state, last.reason).is_ready and not last.shortfalls)
        return ShardReadiness(self.status, self.job.acceptance_state, is_whole)


@dataclass(frozen=True, slots=True, kw_only=True)
class EditionView:
    """A read-only view of one edition."""

    edition: Edition
    source: Source
    config: SourceConfig
    shards: tuple[Shard, ...]

    @property
    def runs(self) -> list[tuple[Shard, Execution]]:
        """Every execution of the shards that no operator excluded, oldest first."""
        counting = (shard for shard in self.shards if shard.job.acceptance_state != Acceptance.EXCLUDED)
        found = [(shard, run) for shard in counting for run in shard.runs]
        return sorted(found, key=lambda pair: pair[1].id)

    @property
    def decisions(self) -> dict[int, PageDecision]:
        """Operators' decisions about single addresses, by the hash of the address."""
        kept = (PageDecision(**one) for one in self.edition.coverage_summary.get("decisions", ()))
        return {parse_seed(one.url).hash64: one for one in kept}

    @property
    def seeds(self) -> dict[str, list[Shard]]:
        """The edition's planned seeds and those of its shards, with every shard that has each."""
        # Start with the plan's seeds: one without a shard is still intended and counts as missing.
        found: dict[str, list[Shard]] = {str(seed): [] for seed in self.edition.coverage_summary.get("seeds", ())}
        for shard in self.shards:
            for seed in shard.seeds:
                found.setdefault(seed, []).append(shard)
        return found


def find_edition(session: Session, source: Source, year: int) -> Edition:
    found = queries.edition(session, source_id=source.id, year=year) if FIRST_YEAR <= year <= LAST_YEAR else None
    if found is None:
        raise EditionNotFound(
            f"there is no edition of {source.code} for {year}; make one with: holdfast schedule-annual --year {year}"
        )
    return found


def view_edition(session: Session, edition_id: int) -> EditionView:
    """Return an edition with its shards and their executions; raise EditionNotFound."""
    # A number beyond BIGINT would be a database error, not a missing edition.
    found = queries.edition_by_id(session, edition_id) if 0 <= edition_id < 1 << 63 else None
    if found is None:
        raise EditionNotFound(f"there is no edition {edition_id}; see them with: holdfast edition list")
    edition, source = found
    states = queries.shards_of_edition(session, edition.id)
    ran: dict[int, list[Execution]] = {}
    for execution in queries.executions_of(session, [one.job.id for one in states]):
        ran.setdefault(execution.job_id, []).append(execution)
    base = _base(source)
    made = tuple(_shard(one, ran.get(one.job.id, []), base) for one in states)
    return EditionView(edition=edition, source=source, config=base, shards=made)


@contextmanager
def draft_of(database: Database, home: Path, edition_id: int) -> Iterator[tuple[EditionDraft, EditionView]]:
    """Open a draft of an edition's files; yield it with the edition. Raise EditionNotFound, EditionBusy, NoSpace."""
    with database.read() as session:
        known = view_edition(session, edition_id)
    with draft(edition_folder(home, known.source.code, known.edition.year)) as made:
        # Read again while holding the files' lock: a shard may have been added since the folder was looked up.
        with database.read() as session:
            view = view_edition(session, edition_id)
        yield made, view


def _shard(state: ShardState, executions: list[Execution], base: SourceConfig) -> Shard:
    requested = dict.fromkeys(seed for run in executions for seed in _texts(run.config, "seeds"))
    return Shard(
        job=state.job,
        status=state.status,
        backend=_config(base, state.job.config).backend,
        # A job attached later has no seeds: use those of its executions, else of its source.
        seeds=_texts(state.job.config, "seeds") or tuple(requested) or base.seeds,
        runs=tuple(executions),
    )


def _texts(config: Mapping[str, Any], name: str) -> tuple[str, ...]:
    return tuple(str(one) for one in config.get(name) or ())


def _base(source: Source) -> SourceConfig:
    """Return a source's configuration; an empty one if it has no seeds (imports) or is no longer valid."""
    try:
        return config_of(source)
    # A past year's report must not fail because a rule became stricter.
    except HoldfastError:
        return SourceConfig()


def _config(base: SourceConfig, overrides: dict[str, Any]) -> SourceConfig:
    try:
        return merged(base, overrides=overrides)
    except HoldfastError:
        return base


def captures_of(
    database: Database, view: EditionView, *, which: WantedCaptures = WantedCaptures.PAGES
) -> Iterator[tuple[Shard, CaptureRow]]:
    """Yield the captures of an edition's executions; those under takedown are marked."""
    for shard, run in view.runs:
        after = -1
        while True:
            with database.read() as session:
                # Use one session per slice: a report takes minutes, and on SQLite a long read prevents truncating the
                # WAL file.
                rows = queries.captures(session, run.id, after=after, which=which)
            yield from ((shard, row) for row in rows)
            if len(rows) < queries.STRETCH:
                break
            after = rows[-1].id
