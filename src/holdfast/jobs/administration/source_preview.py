"""What a source would do before it is saved: which addresses its rules take, and when its job would run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, Final, NamedTuple

from sqlalchemy.orm import Session

from holdfast.errors import UrlRefused
from holdfast.jobs.slots import Placement, next_turn
from holdfast.jobs.specs import CrawlDefaults, crawl_plan
from holdfast.jobs.states import State
from holdfast.jobs.store import CRAWL, schedule_of_job
from holdfast.jobs.views.listing import JobFilter, list_jobs
from holdfast.sources import registry
from holdfast.sources.files import write_text
from holdfast.sources.queries import source_by_code
from holdfast.sources.schedule import Schedule, read_schedule
from holdfast.urls import SEED_RULE, ScopeVerdict, parse_seed

SHOWN_RUNS: Final = 5
MOST_URLS: Final = 500
# A page that is no seed is one link away from one at least.
_ONE_LINK: Final = 1


class JudgedUrl(NamedTuple):
    """What a source's rules say of one address."""

    url: str
    """As it was written."""
    normalised: str | None
    """As the source spells it; None if it is no address."""
    allowed: bool
    rule: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePreview:
    """A source as it would be."""

    spec: registry.SourceSpec
    warnings: tuple[str, ...]
    urls: tuple[JudgedUrl, ...]
    schedule: Schedule | None
    next_runs: tuple[datetime, ...]
    yaml: str
    """The source as the import takes it."""


def preview_source(
    session: Session,
    content: Mapping[str, Any],
    *,
    urls: Sequence[str] = (),
    every: Schedule | None = None,
    now: datetime,
) -> SourcePreview:
    """Return what a source would do; Invalid names the field that is wrong. Nothing is written."""
    spec = registry.read_spec(registry.with_code(session, content))
    schedule = every if spec.schedule is None else read_schedule(spec.schedule, now=now)
    house = CrawlDefaults("nobody@example.org")
    plan = crawl_plan(spec.config, house, number=1)
    scope, policy = plan.build_scope(), plan.normalisation()

    def judged(text: str) -> JudgedUrl:
        try:
            url = parse_seed(text, policy)
        except UrlRefused as exc:
            return JudgedUrl(text, None, False, "url_refused", exc.reason)
        verdict = scope.decide(url, _ONE_LINK)
        return JudgedUrl(text, url.normalised, verdict.allowed, verdict.rule, rule_sentence(verdict))

    entry = {
        "code": spec.code,
        "name": spec.name,
        "base_url": spec.base_url,
        "description": spec.description,
        "enabled": spec.enabled,
        "visibility": None if spec.visibility is None else spec.visibility.value,
        "schedule": None if schedule is None else schedule.words(),
        "config": spec.config.stored(),
    }
    return SourcePreview(
        spec=spec,
        warnings=spec.config.warnings(),
        urls=tuple(map(judged, urls)),
        schedule=schedule,
        next_runs=() if schedule is None else next_runs(session, spec.code, schedule, now=now),
        yaml=write_text([{name: value for name, value in entry.items() if value is not None}], "yaml"),
    )


def next_runs(session: Session, code: str, schedule: Schedule, *, now: datetime) -> tuple[datetime, ...]:
    """Return when a source's job would run by this schedule: by the rhythm that it has, or placed anew.

    A start page that stays the same lengthens the wait of a job that adapts; that is not foreseen here.
    """
    if schedule.start is not None:
        return tuple(islice(schedule.turns(now), SHOWN_RUNS))
    source, interval = source_by_code(session, code), schedule.interval
    first = rhythm_at = None
    if source is not None:
        jobs, _ = list_jobs(session, JobFilter(source_id=source.id, kind=CRAWL, limit=1))
        for job in (one.job for one in jobs):
            if (kept := schedule_of_job(job)) is not None and (kept.start, kept.interval) == (None, interval):
                first, rhythm_at = job.next_run_at, job.rhythm_at or job.due_at
                if job.state == State.RUNNING and rhythm_at is not None:
                    first = next_turn(rhythm_at, interval, now=now)
    if first is None or first < now:
        # A placement of its own: the process's belongs to who writes.
        first, rhythm_at = Placement().place(session, interval, now=now), None
    # A retry, or a run that was asked for, comes between two turns: those after it keep the rhythm.
    second = next_turn(rhythm_at or first, interval, now=first)
    return (first, *(second + number * interval for number in range(SHOWN_RUNS - 1)))


_TRAPS: Final = "it looks like a trap for crawlers"


def rule_sentence(verdict: ScopeVerdict) -> str:
    """Return in words why an address belongs to a crawl, or does not."""
    kind, _, what = verdict.rule.partition(":")
    if verdict.allowed:
        if verdict.rule == SEED_RULE:
            return "it is a seed"
        return f"the rule include {what} matches" if kind == "include" else f"it lies within the scope {what}"
    if kind == "exclude":
        return f"the rule exclude {what} matches"
    if kind == "trap":
        return f"{_TRAPS} ({what})"
    if verdict.rule == "max_depth":
        return "only the seeds are asked for: the depth is 0"
    return f"it lies outside the scope {what} of the seeds"
