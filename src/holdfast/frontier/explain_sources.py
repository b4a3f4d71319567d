"""Determines which sources include a URL and by which rule, and which rule excludes it from the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import String, case, cast, or_, select
from sqlalchemy.orm import Session

from holdfast.config import Settings
from holdfast.db.models import Source
from holdfast.errors import Invalid, UrlRefused
from holdfast.frontier.explain_records import ExplainedSource, ExplainedSources, ExplainedTurn
from holdfast.sources.plan import CrawlPlan
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


class NextRun(NamedTuple):
    """What a job does next."""

    turn: ExplainedTurn
    frontier_id: int | None
    """The frontier of its queued or running execution; None if it has none."""


class NextRuns(NamedTuple):
    """How a source crawls next; `jobs` determines it."""

    source: Source
    plan: CrawlPlan | None
    """The rules of its next run; None if they cannot be read."""
    job_id: int | None
    """The job whose configuration decides."""
    problem: str | None
    """Why the rules cannot be read."""
    backend: str
    runs: list[NextRun]


FindNextRuns = Callable[[Session, Sequence[int], Settings, datetime], Iterable[NextRuns]]
"""Yields the next runs of these sources, by id, in this order."""


class SourceJudgement(NamedTuple):
    explained: ExplainedSource
    source: Source
    runs: list[NextRun]
    url: Url | None
    """The URL as normalised by this source."""
    policy: Normalisation | None
    """The rules by which the source decides whether two URLs are the same page."""


class Judgements(NamedTuple):
    all: list[SourceJudgement]
    is_all: bool

    @property
    def in_scope(self) -> list[SourceJudgement]:
        found = [one for one in self.all if one.explained.in_scope]
        return sorted(found, key=lambda one: (one.explained.rule != SEED_RULE, one.source.code))

    @property
    def spellings(self) -> list[Url]:
        return [one.url for one in self.all if one.url is not None]

    def explained(self) -> ExplainedSources:
        inside = [one.explained for one in self.in_scope]
        outside = [one.explained for one in self.all if not one.explained.in_scope]
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


def judge_sources(
    session: Session, text: str, settings: Settings, find_next_runs: FindNextRuns, *, now: datetime
) -> Judgements:
    """Return the decision of each source's rules about a URL as a person wrote it.

    Sources that name its site come first: in an archive with very many seeds, not all sources are judged.
    """
    found: list[SourceJudgement] = []
    ids, seeds = _sources_to_judge(session, _site(text), limit=_SOURCES + 1), 0
    for at in range(0, min(len(ids), _SOURCES), _AT_ONCE):
        for one in find_next_runs(session, ids[at : at + _AT_ONCE], settings, now):
            seeds += len(one.plan.seeds) if one.plan is not None else 0
            found.append(_judged(text, one))
            if seeds > _SEEDS:
                break
    found.sort(key=lambda one: one.source.code)
    return Judgements(found, is_all=len(found) == len(ids))


def _site(text: str) -> str:
    try:
        return registrable(parse_seed(text).host)
    except UrlRefused:
        return text


def _judged(text: str, runs: NextRuns) -> SourceJudgement:
    source, plan, url, verdict, problem = runs.source, runs.plan, None, None, runs.problem
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
    explained = ExplainedSource(
        source=source.code,
        enabled=source.enabled,
        job=runs.job_id,
        in_scope=None if verdict is None else verdict.allowed,
        rule=None if verdict is None else verdict.rule,
        sentence=_sentence(source.code, verdict, plan, problem),
        normalised=None if url is None or url.normalised == _general(text) else url.normalised,
        max_depth=None if plan is None or plan.max_depth is None or plan.max_depth < 0 else plan.max_depth,
        delay_s=plan.delay_s if plan is not None else 0.0,
        robots=plan.robots if plan is not None else "obey",
        storage=plan.storage if plan is not None else "warc",
        backend=runs.backend,
    )
    return SourceJudgement(explained, source, runs.runs, url, plan.normalisation() if plan is not None else None)


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


def _sources_to_judge(session: Session, name: str, *, limit: int) -> list[int]:
    """Return source ids: those whose configuration contains a name first, then the others by code."""
    holds = (column.contains(name, autoescape=True) for column in (Source.base_url, cast(Source.config, String)))
    named = case((or_(*holds), 0), else_=1)
    return list(session.scalars(select(Source.id).order_by(named, Source.code).limit(limit)))
