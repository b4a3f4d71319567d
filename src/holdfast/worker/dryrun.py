"""What a crawl would ask for first, and why: robots.txt and the seeds are read, nothing is stored."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from holdfast.config import Settings
from holdfast.crawl.links import MAX_LINKS, REQUISITE_PRIORITY
from holdfast.crawl.plan import CrawlPlan
from holdfast.fetch import robots_state
from holdfast.parse import parse_page
from holdfast.types import FetchFailed, Kind
from holdfast.urls import Base, Url, parse, priority, resolve
from holdfast.warc.payload import parse_head
from holdfast.worker.solo import Document, Solo, open_solo, rules_of

_SHOWN = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One address, in the order it would be asked for."""

    order: int
    url: str
    kind: str
    depth: int
    priority: int
    why: str


@dataclass(slots=True)
class DryRun:
    """The first steps of a crawl."""

    steps: list[Step] = field(default_factory=list)
    excluded: list[tuple[tuple[str, str], int]] = field(default_factory=list)

    def as_object(self) -> dict[str, Any]:
        """Return it for `--json`."""
        left_out = [{"rule": rule, "host": host, "count": count} for (rule, host), count in self.excluded]
        return {"first": [asdict(step) for step in self.steps], "excluded": left_out}


def dry_run(plan: CrawlPlan, settings: Settings) -> DryRun:
    """Return what would be crawled first, and why; asks for robots.txt and the first ten seeds only."""
    return asyncio.run(_look(plan, settings))


async def _look(plan: CrawlPlan, settings: Settings) -> DryRun:
    scope, excluded = plan.build_scope(), Counter[tuple[str, str]]()
    rows: dict[int, tuple[int, Url, Kind, int, str]] = {}
    async with open_solo(
        settings, agent=plan.agent(), networks=plan.allow_networks, delay_s=max(plan.delay_s, 1.0)
    ) as solo:
        for url in plan.seed_urls()[:10]:
            allowed, why = await _permission(plan, solo, url)
            rows[url.hash64] = (3, url, Kind.PAGE, 0, f"seed; {why}")
            if not allowed:
                continue
            answer = await solo.get(url, deadline_s=settings.fetch.deadline_s)
            if not isinstance(answer, Document):
                told = answer.message if isinstance(answer, FetchFailed) else "it redirects too often"
                rows[url.hash64] = (3, url, Kind.PAGE, 0, f"seed; cannot be read: {told}")
                continue
            for kind, hrefs in _mentioned(answer, requisites=plan.requisites):
                for link in resolve(Base(*hrefs[0], policy=plan.normalisation()), hrefs[1]):
                    depth = 1 if kind is Kind.PAGE else 0
                    verdict = scope.decide(link, depth, kind)
                    if not verdict.allowed:
                        excluded[verdict.rule, link.host] += 1
                    elif link.hash64 not in rows:
                        rank = priority(link.normalised, depth) if kind is Kind.PAGE else REQUISITE_PRIORITY
                        rows[link.hash64] = (rank, parse(link.fetch, plan.normalisation()), kind, depth, verdict.rule)
        return await _ordered(plan, solo, rows.values(), excluded)


def _mentioned(answer: Document, *, requisites: bool) -> list[tuple[Kind, tuple[tuple[str, str | None], list[str]]]]:
    head = parse_head(answer.fetched.response_head)
    page = parse_page(answer.body, url=answer.url.fetch, media_type=head.media_type, charset=head.charset)
    base = (answer.url.fetch, page.base)
    found = [(Kind.PAGE, (base, [link.url for link in page.links][:MAX_LINKS]))]
    if requisites:
        found.append((Kind.REQUISITE, (base, [link.url for link in page.resources][:MAX_LINKS])))
    return found


async def _ordered(plan: CrawlPlan, solo: Solo, rows: Iterable[tuple[int, Url, Kind, int, str]],
                   excluded: Counter[tuple[str, str]]) -> DryRun:  # fmt: skip
    found = DryRun(excluded=excluded.most_common(20))
    seeds_first = sorted(rows, key=lambda row: (not row[4].startswith("seed"), -row[0]))
    origins = {url.origin for url in plan.seed_urls()}
    for order, (rank, url, kind, depth, why) in enumerate(seeds_first[:_SHOWN], 1):
        if url.origin in origins and not why.startswith("seed"):
            why = f"in scope by {why}; {(await _permission(plan, solo, url))[1]}"
        found.steps.append(Step(order=order, url=url.fetch, kind=kind.value, depth=depth, priority=rank, why=why))
    return found


async def _permission(plan: CrawlPlan, solo: Solo, url: Url) -> tuple[bool, str]:
    """Return whether robots.txt lets us ask, and in which words."""
    if plan.robots == "ignore":
        return True, "robots.txt ignored"
    state = await solo.robots(url)
    verdict = robots_state.verdict(state, state.checked_at)
    if verdict is robots_state.Verdict.ALLOW:
        return True, f"no robots.txt (status {state.status})"
    if verdict is not robots_state.Verdict.RULES:
        said = "no answer" if state.status is None else f"status {state.status}"
        return False, f"robots.txt cannot be read ({said}), so nothing may be asked"
    decision = rules_of(state, "holdfast").decide(url.fetch)
    rule = f"line {decision.line}: {decision.rule}" if decision.line else "no rule matches"
    return decision.allowed, f"robots.txt {'allows' if decision.allowed else 'forbids'} it ({rule})"
