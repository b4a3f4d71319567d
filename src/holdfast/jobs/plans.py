"""What a job runs with: its backend, its configuration, its plan. Contact and private networks are the server's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from holdfast.crawl.plan import CrawlPlan, Polled
from holdfast.db.models import Job, Source
from holdfast.errors import Invalid
from holdfast.jobs.board.queries import FEED
from holdfast.sources.config import SourceConfig, merged, read_config
from holdfast.sources.registry import content_of

POLL_S = 3600.0
"""What one poll may take (document 003's limit of an execution); items that it did not get to wait for the next."""

OWN: Final = ("native", FEED)
"""Backends that are our own crawler: it registers its files itself."""


def backend_of(kind: str, *configs: Mapping[str, Any]) -> str:
    """Return who runs a job of this kind: the first configuration that says so, our own crawler if none does.

    Whatever crawls a source, its feeds are polled by us.
    """
    if kind == FEED:
        return FEED
    return next((str(config["backend"]) for config in configs if config.get("backend")), "native")


def job_config(job: Job, source: Source) -> SourceConfig:
    """Return the configuration that a job runs with: its source's, and what the job has otherwise; Invalid names it."""
    return planned_config(source, job.config, start=job.url if job.url_given else None)


def planned_config(source: Source, overrides: Mapping[str, Any], *, start: str | None) -> SourceConfig:
    """Return the configuration of a job with these fields of its own, and a start page where it names one.

    A start page is a seed, the first: with one, the source need not have any. Invalid names the field that is wrong.
    """
    return merged(read_config(content_of(source), needs_seeds=False), overrides=overrides, start=start)


def start_url(job: Job, source: Source) -> str | None:
    """Return the page by which a job judges whether anything changed; None if its configuration cannot be used."""
    if job.url_given:
        return job.url
    try:
        return job_config(job, source).seeds[0]
    except Invalid:
        return job.url


class House(NamedTuple):
    """What a crawl takes from the server's settings, never from a source."""

    contact: str
    user_agent: str | None = None
    allow_networks: tuple[str, ...] = ()
    max_time_s: float | None = None
    """How long any execution may be at work: no site holds a worker for ever."""


def crawl_plan(config: SourceConfig, house: House, *, number: int) -> CrawlPlan:
    """Return the plan of a job's execution with this number: user agents take turns by it (NC-042)."""
    return CrawlPlan(
        seeds=config.seeds, contact=house.contact, scope=config.scope, include=config.include, exclude=config.exclude,
        max_depth=config.max_depth, max_pages=config.max_pages, max_bytes=config.quota_bytes, delay_s=config.delay_s,
        max_time_s=min((one for one in (config.max_time_s, house.max_time_s) if one), default=None),
        per_ip_rate=config.per_ip_rate, user_agent=config.user_agent(number) or house.user_agent,
        sitemaps=config.sitemaps, requisites=config.requisites, robots=config.robots,
        robots_reason=config.robots_reason, allow_networks=house.allow_networks, storage=config.storage,
        strip_trailing_slash=config.strip_trailing_slash, force_https=config.force_https, tracking=config.tracking,
        allow_ports=config.allow_ports,
        feeds="notice" if config.feeds else "off",
    )  # fmt: skip


def feed_plan(plan: CrawlPlan, lists: Sequence[Polled], *, search: bool) -> CrawlPlan:
    """Return the plan of a poll: what is due is asked for, new items are captured with what they need, no further.

    A server that asks us to stay away for hours does not hold a worker for longer than one.
    """
    return replace(plan, feeds="poll", lists=tuple(lists), search=search, max_depth=0, max_pages=None,
                   max_time_s=POLL_S)  # fmt: skip
