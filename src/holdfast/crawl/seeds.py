"""Where a crawl begins: seeds become addresses to add. Loads nothing of a crawl process: who starts one stays small."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from holdfast.crawl.plan import CrawlPlan, Polled
from holdfast.types import Found, Kind
from holdfast.urls import parse, priority

_LIST_PRIORITY = 3


def seeds_of(plan: CrawlPlan) -> list[Found]:
    """Return the seeds as addresses to add, in the order given; where feeds are polled, those that are due."""
    return list(_each_seed(plan))


def seed_batches(plan: CrawlPlan, *, size: int) -> Iterator[list[Found]]:
    """Yield the same in batches: the first can be asked while the rest of a million is still being read."""
    seeds = _each_seed(plan)
    while batch := list(islice(seeds, size)):
        yield batch


def _each_seed(plan: CrawlPlan) -> Iterator[Found]:
    if plan.polls:
        yield from lists_of(plan)
    for url in islice(plan.each_seed_url(), int(plan.search) if plan.polls else None):
        yield Found(url.fetch, url.hash64, url.domain, Kind.PAGE, 0, priority(url.normalised, 0, is_seed=True))


def lists_of(plan: CrawlPlan) -> list[Found]:
    """Return the feeds and sitemaps that are due as addresses to add."""
    policy = plan.normalisation()
    urls = [parse(polled.url, policy) for polled in plan.lists]
    return [Found(url.fetch, url.hash64, url.domain, Kind.SITEMAP, 0, _LIST_PRIORITY) for url in urls]


def validators_of(plan: CrawlPlan) -> dict[int, Polled]:
    """Return what the last answers of polled feeds were marked with, by the hash of their address."""
    policy = plan.normalisation()
    return {parse(polled.url, policy).hash64: polled for polled in plan.lists}
