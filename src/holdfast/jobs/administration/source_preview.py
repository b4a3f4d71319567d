"""Preview of a source before it is saved: which URLs its rules include, and when its job would run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, Final

from sqlalchemy.orm import Session

from holdfast.errors import UrlRefused
from holdfast.jobs.kinds import CRAWL
from holdfast.jobs.slots import Placement, next_turn
from holdfast.jobs.specs import BackendCheck
from holdfast.jobs.states import State
from holdfast.jobs.store import schedule_of_job
from holdfast.jobs.views.listing import JobFilter, list_jobs
from holdfast.records import Operator, record
from holdfast.sources import registry
from holdfast.sources.files import write_text
from holdfast.sources.plan import CrawlDefaults, crawl_plan
from holdfast.sources.queries import source_by_code
from holdfast.sources.schedule import Schedule, read_schedule, words_of
from holdfast.urls import SEED_RULE, ScopeVerdict, parse_seed

SHOWN_RUNS: Final = 5
MOST_URLS: Final = 500
# A page that is not a seed is at least one link away from one.
_ONE_LINK: Final = 1


@record
class JudgedUrl:
    """Decision of a source's rules about one URL."""

    url: Operator[str]
    normalised: Operator[str | None]
    """As the source normalises it; null if it is not a valid URL."""
    in_scope: Operator[bool]
    rule: Operator[str]
    """The rule that decided."""
    sentence: Operator[str]
    """The decision as a sentence."""


@record
class SourcePreview:
    """Preview of a source."""

    code: Operator[str]
    """The source's code, or the one that would be generated."""
    schedule: Operator[str]
    """The schedule as it would be stored."""
    warnings: Operator[list[str]]
    """Allowed values that may be mistakes."""
    urls: Operator[list[JudgedUrl]]
    next_runs: Operator[list[datetime]]
    """The next five; empty for a job that runs once."""
    yaml: Operator[str]
    """The source in the import format."""


def preview_source(
    session: Session,
    content: Mapping[str, Any],
    *,
    urls: Sequence[str] = (),
    every: Schedule | None = None,
    now: datetime,
    check: BackendCheck,
) -> SourcePreview:
    """Preview a source without writing anything; raise Invalid, naming the field that is wrong.

    `check` raises Invalid for a configuration that cannot run on this machine.
    """
    spec = registry.read_spec(registry.with_code(session, content))
    check(spec.config)
    schedule = every if spec.schedule is None else read_schedule(spec.schedule, now=now)
    house = CrawlDefaults("nobody@example.org")
    plan = crawl_plan(spec.config, house, number=1)
    scope, policy = plan.build_scope(), plan.normalisation()

    def judged(text: str) -> JudgedUrl:
        try:
            url = parse_seed(text, policy)
        except UrlRefused as exc:
            return JudgedUrl(url=text, normalised=None, in_scope=False, rule="url_refused", sentence=exc.reason)
        verdict = scope.decide(url, _ONE_LINK)
        return JudgedUrl(
            url=text,
            normalised=url.normalised,
            in_scope=verdict.allowed,
            rule=verdict.rule,
            sentence=rule_sentence(verdict),
        )

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
        code=spec.code,
        schedule=words_of(schedule),
        warnings=list(spec.config.warnings()),
        urls=list(map(judged, urls)),
        next_runs=[] if schedule is None else list(next_runs(session, spec.code, schedule, now=now)),
        yaml=write_text([{name: value for name, value in entry.items() if value is not None}], "yaml"),
    )


def next_runs(session: Session, code: str, schedule: Schedule, *, now: datetime) -> tuple[datetime, ...]:
    """Return when a source's job would run with this schedule: in its current rhythm, or newly placed.

    Ignores that an unchanged start page lengthens the interval of an adaptive job.
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
        # Use a separate placement: the process's own belongs to code that writes.
        first, rhythm_at = Placement().place(session, interval, now=now), None
    # A retry or a requested run falls between two turns: later turns keep the rhythm.
    second = next_turn(rhythm_at or first, interval, now=first)
    return (first, *(second + number * interval for number in range(SHOWN_RUNS - 1)))


_TRAPS: Final = "it looks like a trap for crawlers"


def rule_sentence(verdict: ScopeVerdict) -> str:
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
