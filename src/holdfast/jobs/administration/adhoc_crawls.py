"""Crawls that are wanted once: the source is named, or made for the host; a worker runs the job as soon as it can."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.orm import Session

from holdfast.clock import Clock
from holdfast.config import Settings
from holdfast.crawl.contact import contact_of
from holdfast.db.models import Job, Source
from holdfast.errors import Conflict, UrlRefused
from holdfast.fetch.guard import AddressGuard, demand_public
from holdfast.jobs.administration.actions import JobActions
from holdfast.jobs.executions import ADHOC
from holdfast.jobs.specs import JobRefused, JobSpec
from holdfast.sources import registry
from holdfast.sources.queries import find_source, new_code, source_of_site
from holdfast.urls import parse_seed


class SourceDisabled(Conflict):
    """No worker runs the jobs of this source."""

    code = "source_disabled"

    def __init__(self, code: str) -> None:
        super().__init__(
            f"the source {code} is disabled, so nothing of it is crawled; enable it first, then start again"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlWish:
    """What is to be crawled once."""

    urls: tuple[str, ...]
    source: str | None = None
    """The code of a source that is there; left out, the one of the first address's host, made if it is new."""
    name: str | None = None
    """What people call a source that is made; its host if left out."""
    config: dict[str, Any] = field(default_factory=dict)
    """Fields of the source's configuration that this crawl has otherwise: scope, depth, limits."""


def begin_crawl(
    session: Session, clock: Clock, actions: JobActions, wish: CrawlWish, settings: Settings
) -> tuple[Job, Source, bool]:
    """Queue a crawl; return its job, its source, and whether that is new.

    Invalid names the field that is wrong. ContactMissing or SourceDisabled if no worker would ever start it.
    """
    guard = AddressGuard(settings.allow_networks)
    for number, written in enumerate(wish.urls):
        try:
            demand_public(parse_seed(written), guard)
        except UrlRefused as exc:
            raise JobRefused(f"urls[{number}]", str(exc)) from exc
    if not wish.urls:
        raise JobRefused("urls", "name at least one address")
    if "seeds" in wish.config:
        raise JobRefused("config.seeds", "the crawl begins at `urls`; leave the seeds out")
    contact_of(settings)
    source, is_new = _source(session, clock, wish)
    if not source.enabled:
        raise SourceDisabled(source.code)
    spec = JobSpec(
        source_id=source.id,
        config={**wish.config, "seeds": list(wish.urls)},
        schedule_enabled=False,
        adaptive_scheduling=False,
    )
    return actions.add(session, spec, kind=ADHOC, at=clock.now()).job, source, is_new


def _source(session: Session, clock: Clock, wish: CrawlWish) -> tuple[Source, bool]:
    if wish.source is not None:
        return find_source(session, wish.source), False
    first = parse_seed(wish.urls[0])
    base = f"{first.origin}/"
    known = source_of_site(session, base)
    if known is not None:
        return known, False
    code = new_code(session, name=None, seed=base)
    content = {"code": code, "name": wish.name or first.host, "base_url": base, "config": {"seeds": [first.fetch]}}
    return registry.create(session, clock, registry.read_spec(content)), True
