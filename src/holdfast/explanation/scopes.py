"""Determines which sources include a URL and by which rule, and which rule excludes it from the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from holdfast.config import Settings
from holdfast.db.models import Source
from holdfast.errors import Invalid, UrlRefused
from holdfast.explanation import queries
from holdfast.explanation.model import ExplainedSource, ExplainedSources
from holdfast.explanation.queries import JobOfSource
from holdfast.jobs.specs import planned_config
from holdfast.jobs.store import backend_of
from holdfast.sources.plan import CrawlDefaults, CrawlPlan, crawl_plan
from holdfast.urls import SEED_RULE, Normalisation, ScopeVerdict, Url, parse_seed, registrable
from holdfast.urls.scope import (
    DIRECTORY_BUDGET,
    DOMAIN_BUDGET,
    PATH_DEPTH,
    QUERY_VARIANTS,
    REPEATED_SEGMENTS,
    SUBDOMAINS,
)

# To judge by a seed takes 75 us, because three steps parse it: this many together take at most a second and a half.
_SEEDS = 20_000
_SOURCES = 2_000
_AT_ONCE = 200
_SHOWN = 50
_TRAPS = {
    REPEATED_SEGMENTS: "its path goes round in circles",
    PATH_DEPTH: "its path is too deep",
    QUERY_VARIANTS: "its path has had too many queries",
    SUBDOMAINS: "its domain has too many hosts",
    DIRECTORY_BUDGET: "its directory has too many addresses",
    DOMAIN_BUDGET: "its domain has too many addresses",
}


class SourceJudgement(NamedTuple):
    told: ExplainedSource
    source: Source
    jobs: list[JobOfSource]
    url: Url | None
    """The URL as normalised by this source."""
    policy: Normalisation | None
    """The rules by which the source decides whether two URLs are the same page."""


class Judgements(NamedTuple):
    all: list[SourceJudgement]
    is_all: bool

    @property
    def in_scope(self) -> list[SourceJudgement]:
        found = [one for one in self.all if one.told.in_scope]
        return sorted(found, key=lambda one: (one.told.rule != SEED_RULE, one.source.code))

    @property
    def spellings(self) -> list[Url]:
        return [one.url for one in self.all if one.url is not None]

    def told(self) -> ExplainedSources:
        inside = [one.told for one in self.in_scope]
        outside = [one.told for one in self.all if not one.told.in_scope]
        return ExplainedSources(
            in_scope=inside,
            out_of_scope=outside[:_SHOWN],
            out_of_scope_count=len(outside),
            is_all=self.is_all,
            sentence=self._sentence([one.source for one in inside]),
        )

    def _sentence(self, codes: list[str]) -> str:
        if not self.all:
            return "there are no sources yet; make one with: holdfast source create"
        if codes:
            return f"it belongs to {', '.join(codes)}"
        return "no source has it in its scope; add it to one (holdfast source edit), or crawl it: holdfast crawl"


def judge_sources(session: Session, text: str, settings: Settings) -> Judgements:
    """Return the decision of each source's rules about a URL as a person wrote it.

    Sources that name its site come first: in an archive with very many seeds, not all sources are judged.
    """
    found: list[SourceJudgement] = []
    ids, seeds = queries.sources_to_judge(session, _site(text), limit=_SOURCES + 1), 0
    for at in range(0, min(len(ids), _SOURCES), _AT_ONCE):
        part = ids[at : at + _AT_ONCE]
        rows, jobs = queries.sources_by_id(session, part), queries.jobs_of_sources(session, part)
        for source in (rows[number] for number in part if number in rows):
            own = jobs.get(source.id, [])
            plan, job_id, why = _plan_of(source, own, settings)
            seeds += len(plan.seeds) if plan is not None else 0
            found.append(_judged(text, source, own, _Rules(plan, job_id, why)))
            if seeds > _SEEDS:
                break
    found.sort(key=lambda one: one.source.code)
    return Judgements(found, is_all=len(found) == len(ids))


def _site(text: str) -> str:
    try:
        return registrable(parse_seed(text).host)
    except UrlRefused:
        return text


class _Rules(NamedTuple):
    plan: CrawlPlan | None
    job_id: int | None
    problem: str | None


def _plan_of(source: Source, jobs: list[JobOfSource], settings: Settings) -> _Rules:
    """Return the plan of a source's next run: its crawl job's, its newest job's, or its default one."""
    house = CrawlDefaults(settings.contact or "nobody@example.org", delay_s=settings.politeness.delay_s)
    chosen = next((one for one in jobs if one.job.kind == "crawl"), jobs[0] if jobs else None)
    try:
        if chosen is not None and chosen.job.state is None and chosen.latest is not None:
            # A crawl that no job asked for has its plan in its execution alone.
            return _Rules(_stored_plan(chosen.latest.config, house), chosen.job.id, None)
        overrides = chosen.job.config if chosen is not None else {}
        start = chosen.job.url if chosen is not None and chosen.job.url_given else None
        config = planned_config(source, overrides, start=start)
        if not config.seeds:
            return _Rules(None, None, "it has no seeds")
        plan = crawl_plan(config, house, number=1)
        landing = chosen.latest.config.get("landing") if chosen is not None and chosen.latest is not None else None
        # A place that cannot be read any more widens no scope.
        plan = replace(plan, landing=tuple(_readable(plan, tuple(landing or ()))))
        return _Rules(plan, chosen.job.id if chosen else None, None)
    except (Invalid, TypeError, KeyError, ValueError) as exc:
        return _Rules(None, chosen.job.id if chosen else None, str(exc))


_KEPT = ("seeds", "scope", "include", "exclude", "max_depth", "delay_s", "robots", "storage", "landing")
_SPELLING = ("strip_trailing_slash", "force_https", "tracking", "allow_ports")


def _stored_plan(config: Mapping[str, Any], house: CrawlDefaults) -> CrawlPlan | None:
    """Return the rules of the plan an execution was started with; None if the configuration has none."""
    if not config.get("seeds"):
        return None
    values = {name: config[name] for name in (*_KEPT, *_SPELLING) if name in config}
    if added := config.get("exclusions"):
        values["exclude"] = [*values.get("exclude", ()), *added]
    frozen: Any = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    return CrawlPlan(contact=house.contact, **frozen)


def _readable(plan: CrawlPlan, landing: tuple[str, ...]) -> Iterator[str]:
    for place in landing:
        try:
            parse_seed(place, plan.normalisation())
        except UrlRefused:
            continue
        yield place


def _judged(text: str, source: Source, jobs: list[JobOfSource], rules: _Rules) -> SourceJudgement:
    plan, url, verdict, problem = rules.plan, None, None, rules.problem
    if plan is not None:
        try:
            url = parse_seed(text, plan.normalisation())
            # A page that is no seed is one link away from one at least.
            verdict = plan.build_scope().decide(url, 1)
        except UrlRefused as exc:
            verdict, problem = ScopeVerdict(False, "url_refused"), exc.reason
        except Invalid as exc:
            problem = str(exc)
    elif problem is None:
        problem = "it has no crawl settings: its captures were imported"
    told = ExplainedSource(
        source=source.code,
        enabled=source.enabled,
        job=rules.job_id,
        in_scope=None if verdict is None else verdict.allowed,
        rule=None if verdict is None else verdict.rule,
        sentence=_sentence(source.code, verdict, plan, problem),
        normalised=None if url is None or url.normalised == _general(text) else url.normalised,
        max_depth=None if plan is None or plan.max_depth is None or plan.max_depth < 0 else plan.max_depth,
        delay_s=plan.delay_s if plan is not None else 0.0,
        robots=plan.robots if plan is not None else "obey",
        storage=plan.storage if plan is not None else "warc",
        backend=_backend(source, jobs, rules.job_id),
    )
    return SourceJudgement(told, source, jobs, url, plan.normalisation() if plan is not None else None)


def _backend(source: Source, jobs: list[JobOfSource], job_id: int | None) -> str:
    config = next((one.job.config for one in jobs if one.job.id == job_id), {})
    return backend_of("crawl", config, source.config)


def _general(text: str) -> str | None:
    try:
        return parse_seed(text).normalised
    except UrlRefused:
        return None


def _sentence(code: str, verdict: ScopeVerdict | None, plan: CrawlPlan | None, problem: str | None) -> str:
    if verdict is None or plan is None:
        return f"the rules of {code} cannot be read: {problem}"
    kind, _, what = verdict.rule.partition(":")
    if verdict.rule == "url_refused":
        return f"{code} would not request it: {problem}"
    if verdict.allowed:
        if verdict.rule == SEED_RULE:
            return f"{code} starts with it: it is a seed"
        limit = "" if plan.max_depth is None or plan.max_depth < 0 else f", up to {plan.max_depth} links from a seed"
        rule = f"its rule include {what!r} matches" if kind == "include" else f"it lies within the scope {what!r}"
        return f"{code} includes it: {rule}{limit}"
    if kind == "exclude":
        return f"{code} excludes it: its rule exclude {what!r} matches"
    if kind == "trap":
        return f"{code} excludes it: {_TRAPS.get(verdict.rule, verdict.rule)}, which looks like a trap"
    if verdict.rule == "max_depth":
        return f"{code} excludes it: it requests its seeds only"
    return f"{code} excludes it: it lies outside the scope {what!r} of its seeds"
