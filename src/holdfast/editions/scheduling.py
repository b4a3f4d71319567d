"""Plans and starts an annual campaign: one job per source, or one per seed, and adopts jobs that ran before.

Everything happens in one transaction. A dry run does the same and rolls back, so the plan shows exactly what
would be done; a plan with an error changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy.orm import Session

from holdfast import audit
from holdfast.clock import Clock
from holdfast.config import ZimitSettings
from holdfast.db.audit_events import AuditAction
from holdfast.db.engine import Database
from holdfast.db.models import Edition, Source
from holdfast.editions import campaign, queries
from holdfast.editions.campaign import CampaignRefused, CampaignRequest, Plan, PlanEntry, PlanStep, Skip
from holdfast.editions.edition_view import ShardReadiness, judge, view_edition
from holdfast.editions.queries import ANNUAL, SHARD, ShardState
from holdfast.editions.report import ensure_edition, record_plan
from holdfast.errors import Invalid
from holdfast.jobs.administration.actions import JobActions
from holdfast.jobs.specs import JobSpec
from holdfast.jobs.store import locked_source
from holdfast.sources.config import merge_fields
from holdfast.sources.queries import no_source, source_by_code, sources
from holdfast.sources.registry import config_of
from holdfast.zimit.outcome import operator_state, rescue_word

_ACTIVE = frozenset({"queued", "retryable", "running", "completed", "indexing", "index_failed"})
_MAX_SOURCES = 100_000
_EntriesOfSource = Callable[[Session, Source, "CampaignRun"], list[PlanEntry]]


class _Undone(Exception):
    """Rolls back the transaction of a plan that is not to be applied."""


class CampaignRun:
    """Shared by the sources of one plan: the year, start times, and how many jobs may still be created."""

    def __init__(self, request: CampaignRequest, *, year: int, now: datetime, order: dict[str, int]) -> None:
        self.request, self.year, self.now, self._order = request, year, now, order
        self.left = request.max_create
        self._begin = max(campaign.campaign_date(year), now)

    def at(self, code: str, number: int = 0) -> datetime:
        """Return when a source's job is due: one second apart, in campaign order; shards are milliseconds apart."""
        # Workers lease the earliest job first: a second apart keeps the order, and no two jobs start together.
        return self._begin + timedelta(seconds=self._order[code], milliseconds=number)

    def take(self) -> bool:
        """Count one more job; return False if the limit of this run is reached."""
        if self.left is not None:
            if self.left <= 0:
                return False
            self.left -= 1
        return True


class Campaigns:
    def __init__(self, database: Database, actions: JobActions, clock: Clock, host: ZimitSettings) -> None:
        """`host` has this server's VPN command and permitted flags for zimit."""
        self._database, self._actions, self._clock, self._host = database, actions, clock, host

    def schedule(self, request: CampaignRequest) -> Plan:
        """Create every source's annual job for a year; raise CampaignRefused for an invalid year or source."""
        return self._run(request, self._schedule_one, action="edition.scheduled")

    def plan_shards(self, request: CampaignRequest) -> Plan:
        """Create a shard for each seed of a source, if a report shows that something is missing."""
        return self._run(request, self._shard_one, action="edition.sharded")

    def salvage(self, request: CampaignRequest) -> Plan:
        """Attach jobs of the year that belong to no edition to one, unchanged."""
        return self._run(request, self._salvage_one, action="edition.salvaged")

    def _run(self, request: CampaignRequest, one: _EntriesOfSource, *, action: AuditAction) -> Plan:
        now = self._clock.now()
        year = campaign.campaign_year(request.year, now=now)
        plan = Plan(year=year, entries=(), applied=False)
        # A dry run writes the same rows and rolls back: it shows the same results and the same errors.
        with suppress(_Undone), self._database.write() as session:
            every = sources(session, limit=_MAX_SOURCES)
            # Rank all sources, not those of this plan: a source scheduled alone gets the same second.
            order = {code: rank for rank, code in enumerate(campaign.in_order(row.code for row in every))}
            run = CampaignRun(request, year=year, now=now, order=order)
            entries = [entry for code in _codes(request, every) for entry in self._entries(session, code, run, one)]
            plan = replace(plan, entries=tuple(entries))
            # One error cancels the whole plan: half a campaign is harder to repair than none.
            if not request.apply or plan.refused:
                raise _Undone
            if plan.made:
                names = [entry.name for entry in plan.made]
                audit.record(session, self._clock, action=action, subject=f"year {year}", detail={"jobs": names})
            return replace(plan, applied=True)
        # Ids of rolled back rows will belong to other rows.
        return replace(plan, entries=tuple(replace(entry, job_id=None) for entry in plan.entries))

    def _entries(self, session: Session, code: str, run: CampaignRun, one: _EntriesOfSource) -> list[PlanEntry]:
        found = source_by_code(session, code)
        # Lock the source: two concurrent campaigns must not give it two jobs for one year.
        source = None if found is None else locked_source(session, found.id)
        if source is None:
            return [PlanEntry(source=code, step=PlanStep.ERROR, reason=no_source(code))]
        return one(session, source, run)

    def _schedule_one(self, session: Session, source: Source, run: CampaignRun) -> list[PlanEntry]:
        name = campaign.job_name(source.code, run.year)
        made = PlanEntry(source=source.code, step=PlanStep.CREATE, name=name, at=run.at(source.code))
        known = [one for one in queries.jobs_of_source(session, source.id) if one.status != "cancelled"]
        annual = [one for one in known if is_annual(one, source, run.year)]
        # Only an operator can decide which of them the edition uses.
        if sum(one.job.kind == ANNUAL for one in annual) > 1:
            several = ", ".join(str(one.job.id) for one in annual)
            reason = f"several jobs are its annual job of {run.year}: {several}; cancel all but one"
            return [replace(made, step=PlanStep.ERROR, reason=reason)]
        skip = _why_not(known, annual, name)
        if skip is None and not source.enabled:
            skip = Skip.DISABLED
        if skip is None and not run.take():
            skip = Skip.LIMIT
        if skip is not None:
            there = annual[0].job.id if annual else None
            return [replace(made, step=PlanStep.SKIP, reason=skip.value, at=None, job_id=there)]
        return self._recorded(session, source, run, [self._create(session, source, run, made, campaign.FULL_KEY)])

    def _create(self, session: Session, source: Source, run: CampaignRun, entry: PlanEntry, key: str) -> PlanEntry:
        """Create the job of an entry, and its edition if that is missing; return an error in the entry."""
        is_shard = entry.seed is not None
        try:
            config = config_of(source)
            overrides, notes = campaign.uncapped(
                config, (entry.seed,) if entry.seed is not None else config.seeds, self._host
            )
            edition = ensure_edition(session, source, run.year, seeds=config.seeds, now=run.now)
            spec = JobSpec(
                source_id=source.id,
                name=entry.name,
                adaptive_scheduling=False,
                config=overrides,
                details=_details(run, edition, key if is_shard else None),
            )
            assert entry.at is not None
            job = self._actions.add(session, spec, kind=SHARD if is_shard else ANNUAL, at=entry.at)
        except Invalid as exc:
            return replace(entry, step=PlanStep.ERROR, reason=str(exc))
        kind = campaign.SEED_GROUP if is_shard else campaign.FULL_SITE
        # Attach the job in its transaction: a job without an edition would be in no report.
        queries.attach_shard(job, edition_id=edition.id, key=key, kind=kind, now=run.now)
        return replace(entry, job_id=job.id, notes=notes)

    def _shard_one(self, session: Session, source: Source, run: CampaignRun) -> list[PlanEntry]:
        edition = queries.edition(session, source_id=source.id, year=run.year)
        known = queries.jobs_of_source(session, source.id)
        whole = [one for one in known if is_annual(one, source, run.year) and one.job.kind != SHARD]
        skipped = PlanEntry(source=source.code, step=PlanStep.SKIP)
        # Before the whole crawl's report, it is unknown which seeds lack something.
        if whole and (edition is None or edition.generated_at is None):
            return [replace(skipped, reason=Skip.NO_REPORT.value)]
        gaps = edition and (edition.missing_url_count or edition.failed_url_count or edition.needs_review_shard_count)
        if edition is not None and edition.generated_at is not None and not gaps:
            return [replace(skipped, reason=Skip.NO_GAPS.value)]
        taken = {one.job.name for one in known if one.status != "cancelled"}
        try:
            seeds = campaign.shard_seeds(config_of(source).seeds)
        except Invalid as exc:
            return [replace(skipped, step=PlanStep.ERROR, reason=str(exc))]
        made = [self._shard(session, source, run, (number, *seed), edition, taken) for number, seed in enumerate(seeds)]
        return self._recorded(session, source, run, made)

    def _recorded(
        self, session: Session, source: Source, run: CampaignRun, entries: list[PlanEntry]
    ) -> list[PlanEntry]:
        edition = queries.edition(session, source_id=source.id, year=run.year)
        if edition is not None and any(entry.job_id is not None for entry in entries if entry.step is PlanStep.CREATE):
            session.flush()
            record_plan(session, view_edition(session, edition.id), now=run.now)
        return entries

    def _shard(
        self,
        session: Session,
        source: Source,
        run: CampaignRun,
        shard: tuple[int, str, str],
        edition: Edition | None,
        taken: set[str | None],
    ) -> PlanEntry:
        number, seed, key = shard
        name = campaign.job_name(source.code, run.year, key)
        entry = PlanEntry(
            source=source.code,
            step=PlanStep.CREATE,
            name=name,
            shard_key=key,
            seed=seed,
            at=run.at(source.code, number),
        )
        skip = None
        if name in taken:
            skip = Skip.EXISTS
        elif edition is not None and edition.generated_at is not None and _is_covered(edition, seed):
            skip = Skip.COVERED
        elif not run.take():
            skip = Skip.LIMIT
        if skip is not None:
            return replace(entry, step=PlanStep.SKIP, reason=skip.value, at=None)
        return self._create(session, source, run, entry, key)

    def _salvage_one(self, session: Session, source: Source, run: CampaignRun) -> list[PlanEntry]:
        found = [one for one in queries.jobs_of_source(session, source.id) if is_annual(one, source, run.year)]
        loose = [one for one in found if one.job.edition_id is None]
        if not loose:
            return [PlanEntry(source=source.code, step=PlanStep.SKIP, reason=Skip.NOTHING.value)]
        try:
            seeds = config_of(source).seeds
        except Invalid:
            # A source that became invalid still has captures of the year: attach them without seeds.
            seeds = ()
        edition = ensure_edition(session, source, run.year, seeds=seeds, now=run.now)
        taken = {one.job.shard_key for one in found if one.job.edition_id is not None}
        entries = []
        for one in loose:
            key = one.job.shard_key or _free_key(taken, several=len(loose) > 1)
            taken.add(key)
            kind = one.job.shard_kind or campaign.LEGACY
            queries.attach_shard(one.job, edition_id=edition.id, key=key, kind=kind, now=run.now)
            entries.append(
                PlanEntry(source=source.code, step=PlanStep.ATTACH, name=one.job.name, shard_key=key, job_id=one.job.id)
            )
        session.flush()
        record_plan(session, view_edition(session, edition.id), now=run.now)
        return entries


def is_annual(one: ShardState, source: Source, year: int) -> bool:
    """Return whether a job belongs to the campaign of a year: by its details, or by its name."""
    is_labelled = one.job.kind in (ANNUAL, SHARD) and one.job.details.get("campaign_year") == year
    return is_labelled or one.job.name == campaign.job_name(source.code, year)


def _codes(request: CampaignRequest, every: Iterable[Source]) -> list[str]:
    if request.sources:
        return campaign.in_order(request.sources)
    found = [row.code for row in every if row.config.get("schedule_hint") == campaign.HINT]
    if not found:
        raise CampaignRefused(
            "no source has annual crawls; add the preset with: holdfast seed-sources, set "
            f"schedule_hint={campaign.HINT} on one, or name some with --sources"
        )
    return campaign.in_order(found)


def _why_not(known: list[ShardState], annual: list[ShardState], name: str) -> Skip | None:
    if any(one.job.kind in (ANNUAL, SHARD) for one in annual):
        return Skip.SCHEDULED
    if any(one.job.name == name for one in known):
        return Skip.NAME_TAKEN
    return Skip.ACTIVE if any(map(_is_active, known)) else None


def _is_active(one: ShardState) -> bool:
    """Return whether a job would crawl the site during the campaign; a waiting recurring job does not count."""
    job = one.job
    # An ad-hoc crawl has no schedule; it sends requests only while its execution runs.
    if job.state is None:
        return one.latest is not None and one.latest.state in ("queued", "running")
    # A recurring job between two runs does not disturb the annual crawl.
    if job.schedule_enabled and job.interval_minutes is not None:
        return one.status in ("running", "retryable")
    return one.status in _ACTIVE


def _details(run: CampaignRun, edition: Edition, shard_key: str | None) -> dict[str, object]:
    if shard_key is None:
        return {**campaign.labels(run.year), "edition_id": edition.id}
    return {
        **campaign.labels(run.year, version="v2-sharded"),
        "edition_id": edition.id,
        "campaign_shard_key": shard_key,
        "campaign_shard_kind": campaign.SEED_GROUP,
        "shard_target_url_cap": run.request.url_cap,
    }


def _is_covered(edition: Edition, seed: str) -> bool:
    """Return whether the last report has a seed captured, and nothing in its area that a retry could add."""
    summary = edition.coverage_summary
    return seed in summary.get("seeds", ()) and not summary.get("gaps", {}).get(seed)


def _free_key(taken: set[str | None], *, several: bool) -> str:
    if not several and campaign.LEGACY_KEY not in taken:
        return campaign.LEGACY_KEY
    number = 1
    while f"{campaign.LEGACY_KEY}-{number}" in taken:
        number += 1
    return f"{campaign.LEGACY_KEY}-{number}"


def annual_status(session: Session, year: int, codes: Iterable[str] = ()) -> dict[str, Any]:
    """Return the status of each source of a campaign; raise CampaignRefused for an invalid year."""
    if not campaign.FIRST_YEAR <= year <= campaign.LAST_YEAR:
        raise CampaignRefused(f"the year must lie between {campaign.FIRST_YEAR} and {campaign.LAST_YEAR}, not {year}")
    # A source with an edition of the year stays in the campaign, even if its schedule has changed.
    taking_part = set(queries.sources_with_edition(session, year=year))
    wanted = campaign.in_order(codes) or campaign.in_order(
        row.code
        for row in sources(session, limit=_MAX_SOURCES)
        if row.config.get("schedule_hint") == campaign.HINT or row.id in taking_part
    )
    rows = [_source(session, code, year) for code in wanted]
    states = Counter(row["state"] for row in rows)
    jobs = [job for row in rows for job in row["jobs"]]
    return {
        "campaignYear": year,
        "campaignDate": f"{campaign.campaign_date(year):%Y-%m-%d}",
        "sources": rows,
        "summary": {
            "totalSources": len(rows),
            "indexed": states["indexed"],
            "inProgress": states["in_progress"],
            "failed": states["failed"],
            "missing": states["missing"],
            "errors": states["error"],
            "readyForSearch": bool(rows) and all(row["searchReady"] for row in rows),
            "rescueStates": dict(sorted(Counter(job["rescueState"] for job in jobs).items())),
            "operatorStates": dict(sorted(Counter(job["operatorState"] for job in jobs).items())),
        },
    }


def _source(session: Session, code: str, year: int) -> dict[str, Any]:
    source = source_by_code(session, code)
    row: dict[str, Any] = {"sourceCode": code, "state": "error", "searchReady": False, "jobs": []}
    if source is None:
        return {**row, "error": no_source(code)}
    edition = queries.edition(session, source_id=source.id, year=year)
    jobs = [
        one
        for one in queries.jobs_of_source(session, source.id)
        if is_annual(one, source, year) or (edition is not None and one.job.edition_id == edition.id)
    ]
    ready = judge(
        [ShardReadiness(one.status, one.job.acceptance_state) for one in jobs], captured=1, missing_seeds=None
    )
    row |= {
        "sourceName": source.name,
        "state": _state(jobs),
        "searchReady": ready.search_ready,
        "jobs": [_job(source, one) for one in jobs],
        "edition": None
        if edition is None
        else {
            "editionId": edition.id,
            "status": edition.status,
            "searchReady": edition.search_ready,
            "researchReady": edition.research_ready,
            "generatedAt": edition.generated_at.isoformat() if edition.generated_at else None,
        },
    }
    if row["state"] == "error":
        row["error"] = "several jobs are its annual job; cancel all but one"
    return row


def _state(jobs: list[ShardState]) -> str:
    if not jobs:
        return "missing"
    if sum(one.job.kind == ANNUAL and one.status != "cancelled" for one in jobs) > 1:
        return "error"
    states = [ShardReadiness(one.status, one.job.acceptance_state) for one in jobs]
    if any(state.needs_review for state in states):
        return "failed"
    return "in_progress" if any(state.is_blocking for state in states) else "indexed"


def _job(source: Source, one: ShardState) -> dict[str, Any]:
    config = merge_fields(source.config, one.job.config)
    policy = (config.get("zimit") or {}).get("execution_policy") or {}
    stage = one.latest.stage if one.latest is not None else None
    return {
        "jobId": one.job.id,
        "name": one.job.name,
        "status": one.status,
        "shardKey": one.job.shard_key,
        "shardKind": one.job.shard_kind,
        "acceptanceState": one.job.acceptance_state,
        "retryCount": one.job.current_retry_count,
        "crawlerStage": stage,
        "pagesCrawled": one.latest.items_crawled if one.latest is not None else 0,
        "rescueState": rescue_word(policy, stage),
        "operatorState": operator_state(one.status, policy, stage),
        "queuedAt": one.job.next_run_at.isoformat() if one.job.next_run_at else None,
    }
