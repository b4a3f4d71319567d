"""From a source's configuration to the plan of one native crawl. Contact and private networks are the server's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from holdfast.crawl.plan import CrawlPlan, Polled
from holdfast.sources.config import SourceConfig

POLL_S = 3600.0
"""What one poll may take (document 003's limit of an execution); items that it did not get to wait for the next."""


class House(NamedTuple):
    """What a crawl takes from the server's settings, never from a source."""

    contact: str
    user_agent: str | None = None
    allow_networks: tuple[str, ...] = ()


def crawl_plan(config: SourceConfig, house: House, *, number: int) -> CrawlPlan:
    """Return the plan of a job's execution with this number: user agents take turns by it (NC-042)."""
    return CrawlPlan(
        seeds=config.seeds, contact=house.contact, scope=config.scope, include=config.include, exclude=config.exclude,
        max_depth=config.max_depth, max_pages=config.max_pages, max_bytes=config.quota_bytes, delay_s=config.delay_s,
        user_agent=config.user_agent(number) or house.user_agent, sitemaps=config.sitemaps,
        requisites=config.requisites, robots=config.robots, robots_reason=config.robots_reason,
        allow_networks=house.allow_networks, storage=config.storage,
        feeds="notice" if config.feeds else "off",
    )  # fmt: skip


def feed_plan(plan: CrawlPlan, lists: Sequence[Polled], *, search: bool) -> CrawlPlan:
    """Return the plan of a poll: what is due is asked for, new items are captured with what they need, no further.

    A server that asks us to stay away for hours does not hold a worker for longer than one.
    """
    return replace(plan, feeds="poll", lists=tuple(lists), search=search, max_depth=0, max_pages=None,
                   max_time_s=POLL_S)  # fmt: skip
