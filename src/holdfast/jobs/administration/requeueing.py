"""Queue pages again, of a domain by when they were crawled and with which result, or what failed of one run; a dry run
counts them.

It walks an index in portions, each committed, and may be stopped after any of them. Each page goes to the source that
crawled it last; the run that takes it applies its own scope, limits and pace.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from enum import StrEnum
from typing import Final, Generic, NamedTuple, TypeVar

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from holdfast.db.models import Domain, Execution, Job, Page, PageCrawl, Source
from holdfast.errors import Conflict, Invalid, UrlRefused
from holdfast.frontier.control import DomainUnknown
from holdfast.jobs.administration.frontier_actions import MOST_URLS, Added, AddedPlace, AddingUrls, AddWish
from holdfast.jobs.specs import CrawlDefaults, crawl_plan
from holdfast.jobs.views.frontier_queries import UrlFilter, UrlPlace, UrlStatus, frontier_urls, meant_frontier
from holdfast.sources import registry
from holdfast.sources.queries import find_source
from holdfast.types import UrlKind
from holdfast.urls import parse

PRIORITY: Final = 2
_FIRST: Final = -(1 << 63)
Place = TypeVar("Place")


class RequeueStatus(StrEnum):
    """Which pages are queued again."""

    FETCHED = "fetched"
    FAILED = "failed"


class RequeueRequest(NamedTuple):
    """Pages of a domain whose last fetch or failure lies in a span; None leaves it open."""

    domain: str
    status: RequeueStatus = RequeueStatus.FETCHED
    since: datetime | None = None
    until: datetime | None = None
    """Exclusive."""


class Requeued(NamedTuple, Generic[Place]):
    """What was found and queued."""

    matched: int
    added: int
    skipped: int
    """Out of the scope of their source now, or their source takes no addresses."""
    next: Place | None
    """Where to continue; None at the end."""
    places: tuple[AddedPlace, ...] = ()
    """What takes them, each once."""


def requeue(
    adding: AddingUrls, wanted: RequeueRequest, *, apply: bool, after: int | None, goes_on: Callable[[], bool]
) -> Requeued[int]:
    """Queue pages again, or only count them; DomainUnknown, Invalid without any date.

    Stops after the portion at which `goes_on` is false, with the place to continue at.
    """
    if wanted.since is None and wanted.until is None:
        raise Invalid("name a first or a last day; without any, every page would be queued again", field="since")

    def portion(session: Session, place: int | None) -> tuple[dict[str, list[str]], int | None]:
        return _portion(session, wanted, _FIRST if place is None else place)

    return _walk(adding, portion, apply=apply, after=after, goes_on=goes_on)


def requeue_failed(
    adding: AddingUrls, execution_id: int, *, apply: bool, after: UrlPlace | None, goes_on: Callable[[], bool]
) -> Requeued[UrlPlace]:
    """Queue the pages again that failed in a run, or only count them; NotFound. It stops as `requeue` does."""

    def portion(session: Session, place: UrlPlace | None) -> tuple[dict[str, list[str]], UrlPlace | None]:
        meant = meant_frontier(session, execution_id)
        # Not what pages embed: a crawl fetches that with its page.
        failed = UrlFilter(status=UrlStatus.FAILED, kind=UrlKind.PAGE, limit=MOST_URLS, after=place)
        found = frontier_urls(session, meant.frontier_id, failed)
        return {meant.source: [row.url for row in found.rows]}, found.next

    return _walk(adding, portion, apply=apply, after=after, goes_on=goes_on)


def _walk(
    adding: AddingUrls,
    portion: Callable[[Session, Place | None], tuple[dict[str, list[str]], Place | None]],
    *,
    apply: bool,
    after: Place | None,
    goes_on: Callable[[], bool],
) -> Requeued[Place]:
    """Queue pages by source, portion after portion; or only count them."""
    matched = added = skipped = 0
    places: dict[tuple[str, int | None, int | None], AddedPlace] = {}
    place = after
    while True:
        with adding.read() as session:
            by_source, place = portion(session, place)
            reachable = [_in_scope(session, code, urls) for code, urls in by_source.items()]
        found = sum(map(len, by_source.values()))
        matched += found
        skipped += found - sum(len(wish.urls) for wish in reachable)
        for wish in reachable if apply else ():
            try:
                done = adding.add(wish) if wish.urls else Added(places=())
            except Conflict:
                skipped += len(wish.urls)
            else:
                added += done.added
                for one in done.places:
                    key = one.source, one.execution_id, one.job_id
                    places[key] = places[key].joined_with(one) if key in places else one
        if place is None or not goes_on():
            return Requeued(matched, added, skipped, place, tuple(places.values()))


def _portion(session: Session, wanted: RequeueRequest, after: int) -> tuple[dict[str, list[str]], int | None]:
    """Return the pages that match among the next thousand of a domain, by source, and where to continue."""
    domain_id = session.scalar(select(Domain.id).where(Domain.name == wanted.domain))
    if domain_id is None:
        raise DomainUnknown(wanted.domain)
    moment = Page.fetched_at if wanted.status is RequeueStatus.FETCHED else Page.failed_at
    rows = session.execute(
        select(Page.id, Page.url, Page.url_hash, Page.status, moment)
        .where(Page.domain_id == domain_id, Page.url_hash > after)
        .order_by(Page.url_hash)
        .limit(MOST_URLS)
    ).all()
    urls = {
        number: url
        for number, url, _, status, at in rows
        if status == wanted.status.value
        and at is not None
        and (wanted.since is None or at >= wanted.since)
        and (wanted.until is None or at < wanted.until)
    }
    # Not what pages embed: a crawl fetches that with its page.
    last = select(func.max(PageCrawl.id)).where(PageCrawl.page_id.in_(urls), PageCrawl.kind == UrlKind.PAGE.value)
    crawled = session.execute(
        select(PageCrawl.page_id, Source.code)
        .join(Execution, Execution.id == PageCrawl.execution_id)
        .join(Job, Job.id == Execution.job_id)
        .join(Source, Source.id == Job.source_id)
        .where(PageCrawl.id.in_(last.group_by(PageCrawl.page_id)))
    )
    by_source: dict[str, list[str]] = {}
    for page_id, code in crawled:
        by_source.setdefault(code, []).append(urls[page_id])
    return by_source, rows[-1][2] if len(rows) == MOST_URLS else None


def _in_scope(session: Session, code: str, urls: list[str]) -> AddWish:
    """Return those of a source's pages that its next run reaches."""
    try:
        plan = crawl_plan(registry.config_of(find_source(session, code)), CrawlDefaults(contact="-"), number=1)
    except Invalid:
        return AddWish(urls=())  # it has no seeds, so no run of it reaches anything
    scope, policy, reached = plan.build_scope(), plan.normalisation(), list[str]()
    for url in urls:
        with suppress(UrlRefused):  # on a port that the source allows no more
            if scope.decide(parse(url, policy), 0).allowed:
                reached.append(url)
    return AddWish(urls=reached, source=code, priority=PRIORITY, policy=policy)
