"""Where a crawl begins: seeds become addresses to add. Loads nothing of a crawl process: who starts one stays small."""

from __future__ import annotations

from holdfast.crawl.plan import CrawlPlan, Polled
from holdfast.types import Found, Kind
from holdfast.urls import parse, priority

_LIST_PRIORITY = 3


def seeds_of(plan: CrawlPlan) -> list[Found]:
    """Return the seeds as addresses to add, in the order given; where feeds are polled, those that are due."""
    seeds = [
        Found(url.fetch, url.hash64, url.domain, Kind.PAGE, 0, priority(url.normalised, 0, is_seed=True))
        for url in plan.seed_urls()
    ]
    if not plan.polls:
        return seeds
    return lists_of(plan) + (seeds[:1] if plan.search else [])


def lists_of(plan: CrawlPlan) -> list[Found]:
    """Return the feeds and sitemaps that are due as addresses to add."""
    policy = plan.normalisation()
    urls = [parse(polled.url, policy) for polled in plan.lists]
    return [Found(url.fetch, url.hash64, url.domain, Kind.SITEMAP, 0, _LIST_PRIORITY) for url in urls]


def validators_of(plan: CrawlPlan) -> dict[int, Polled]:
    """Return what the last answers of polled feeds were marked with, by the hash of their address."""
    policy = plan.normalisation()
    return {parse(polled.url, policy).hash64: polled for polled in plan.lists}
