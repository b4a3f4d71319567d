"""Operator actions on the queue and its domains, for routes and commands.

Every change is audited in the transaction that makes it. Long operations commit in batches and stop when the
caller's `goes_on`, checked between batches, returns False. Pages are queued again (of a domain, by crawl date and
result, or the failed pages of one run) at the source that crawled them last; the run that crawls them applies its own
scope, limits and pace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Generic, TypeVar

from sqlalchemy import ColumnElement, Row, and_, func, select
from sqlalchemy.orm import Session

from holdfast.db.models import Domain, Execution, Job, Page, PageCrawl, Source
from holdfast.errors import Conflict, Invalid, UrlRefused
from holdfast.frontier.added_urls import MOST_URLS, AddedPlace, AddingUrls, AddReceipt, AddRequest
from holdfast.frontier.attempts import UrlFilter, UrlPlace, UrlStatus, frontier_urls, status_of
from holdfast.frontier.control import PORTION, DomainUnknown
from holdfast.frontier.figures import select_frontier
from holdfast.frontier.frontier import Frontier
from holdfast.records import Operator, record
from holdfast.sources import registry
from holdfast.sources.plan import CrawlDefaults, crawl_plan
from holdfast.sources.queries import find_source
from holdfast.types import CLEARED, PURGED, Outcome, UrlKind
from holdfast.urls import parse, parse_seed


@record
class ClearReceipt:
    """Result of removing URLs from queues."""

    removed: Operator[int]
    done: Operator[bool]
    """Whether the removal is complete; otherwise repeat the request to continue."""
    executions: Operator[list[int]]
    """Executions whose queues lost URLs."""


def domain_of(written: str) -> str:
    """Return a domain as the frontier spells it: with its port unless that is 80 or 443; raise Invalid if
    malformed.
    """
    return parse_seed(written.strip()).domain


def reset_domain(frontier: Frontier, name: str) -> bool:
    """Clear the unreachable state of a domain; False if it had none. Raise NotFound, or Conflict while leased."""
    lifted = frontier.reset(name)
    frontier.control.write(frontier.control.audit("domain.reset", name, lifted=lifted))
    return lifted


def purge(frontier: Frontier, name: str, *, execution_id: int | None, goes_on: Callable[[], bool]) -> ClearReceipt:
    """Remove a domain's queued URLs from one execution, or from all; raise DomainUnknown."""
    domain_id, queued = frontier.control.queued_executions(name)
    executions = [one for one in queued if execution_id is None or one == execution_id]

    def portions() -> Iterator[int]:
        for one in executions:
            while closed := frontier.close_domain(
                one, domain_id, outcome=Outcome.EXCLUDED, reason=PURGED, limit=PORTION
            ):
                yield closed

    closed, is_done = _in_portions(portions(), goes_on)
    # Last: the holder of the domain then finds nothing queued.
    audit = frontier.control.audit("domain.purged", name, closed=closed, executions=executions)
    frontier.control.tell_holder(name, audit)
    return ClearReceipt(removed=closed, done=is_done, executions=executions)


def drop_attempt(frontier: Frontier, attempt: Row[Any]) -> None:
    """Remove one queued URL from its execution; raise Conflict if it is not queued."""
    if not frontier.close_one(attempt.id, outcome=Outcome.EXCLUDED, reason=PURGED):
        status = status_of(attempt).value
        raise Conflict(f"attempt {attempt.id} is {status}, not queued; there is nothing to take away")
    audit = frontier.control.audit("frontier.dropped", f"execution {attempt.frontier_id}", url=attempt.url)
    frontier.control.tell_holder(attempt.domain, audit)


def clear(frontier: Frontier, execution_id: int, *, goes_on: Callable[[], bool]) -> ClearReceipt:
    """Remove everything queued from an execution; a running one then ends."""

    def portions() -> Iterator[int]:
        while closed := frontier.close_rest(execution_id, outcome=Outcome.EXCLUDED, reason=CLEARED, limit=PORTION):
            yield closed

    closed, is_done = _in_portions(portions(), goes_on)
    subject = f"execution {execution_id}"
    frontier.control.tell_holders(execution_id, frontier.control.audit("frontier.cleared", subject, closed=closed))
    return ClearReceipt(removed=closed, done=is_done, executions=[execution_id])


def _in_portions(portions: Iterable[int], goes_on: Callable[[], bool]) -> tuple[int, bool]:
    total = 0
    for closed in portions:
        total += closed
        if not goes_on():
            return total, False
    return total, True


PRIORITY: Final = 2
_FIRST: Final = -(1 << 63)
Place = TypeVar("Place")


class RequeueStatus(StrEnum):
    FETCHED = "fetched"
    FAILED = "failed"


@record
class RequeueReceipt(Generic[Place]):
    """Pages that matched, and pages that were queued."""

    matched: Operator[int]
    added: Operator[int]
    """Pages that were not queued already; 0 without `apply`."""
    skipped: Operator[int]
    """Pages that are out of scope now, or whose source accepts no URLs."""
    places: Operator[list[AddedPlace]]
    """The runs and jobs that will crawl them."""
    next: Operator[Place | None]
    """Where to continue: send it as `after` or `cursor`; null at the end."""


def requeue(
    adding: AddingUrls,
    *,
    domain: str,
    status: RequeueStatus,
    since: datetime | None,
    until: datetime | None,
    apply: bool,
    after: int | None,
    goes_on: Callable[[], bool],
) -> RequeueReceipt[int]:
    """Queue pages of a domain whose last fetch or failure lies in a period, or only count them.

    The period includes its start and excludes its end; None leaves one open. Raise DomainUnknown, or Invalid without
    any date.

    Stops after the batch at which `goes_on` returns False, and returns the position to continue from.
    """
    if since is None and until is None:
        raise Invalid("name a first or a last day; without any, every page would be queued again", field="since")

    moment = Page.fetched_at if status is RequeueStatus.FETCHED else Page.failed_at
    period = [Page.status == status.value, moment.is_not(None)]
    period += ([moment >= since] if since else []) + ([moment < until] if until else [])

    def portion(session: Session, place: int | None) -> tuple[dict[str, list[str]], int | None]:
        return _portion(session, domain, and_(*period), _FIRST if place is None else place)

    return _walk(adding, portion, apply=apply, after=after, goes_on=goes_on)


def requeue_failed(
    adding: AddingUrls, execution_id: int, *, apply: bool, after: UrlPlace | None, goes_on: Callable[[], bool]
) -> RequeueReceipt[UrlPlace]:
    """Queue the failed pages of a run again, or only count them; raise NotFound. Stops as `requeue` does."""

    def portion(session: Session, place: UrlPlace | None) -> tuple[dict[str, list[str]], UrlPlace | None]:
        selected = select_frontier(session, execution_id)
        # Not what pages embed: a crawl fetches that with its page.
        failed = UrlFilter(status=UrlStatus.FAILED, kind=UrlKind.PAGE, limit=MOST_URLS, after=place)
        rows, following = frontier_urls(session, selected.frontier_id, failed)
        return {selected.source: [row.url for row in rows]}, following

    return _walk(adding, portion, apply=apply, after=after, goes_on=goes_on)


def _walk(
    adding: AddingUrls,
    portion: Callable[[Session, Place | None], tuple[dict[str, list[str]], Place | None]],
    *,
    apply: bool,
    after: Place | None,
    goes_on: Callable[[], bool],
) -> RequeueReceipt[Place]:
    matched = added = skipped = 0
    places: dict[tuple[str, int | None, int | None], AddedPlace] = {}
    place = after
    while True:
        with adding.read() as session:
            by_source, place = portion(session, place)
            reachable = [_in_scope(session, code, urls) for code, urls in by_source.items()]
        found = sum(map(len, by_source.values()))
        matched += found
        skipped += found - sum(len(request.urls) for request in reachable)
        for request in reachable if apply else ():
            try:
                done = adding.add(request) if request.urls else AddReceipt(added=0, total=0, places=[])
            except Conflict:
                skipped += len(request.urls)
            else:
                added += done.added
                for one in done.places:
                    key = one.source_code, one.execution_id, one.job_id
                    places[key] = places[key].joined_with(one) if key in places else one
        if place is None or not goes_on():
            return RequeueReceipt(
                matched=matched, added=added, skipped=skipped, places=list(places.values()), next=place
            )


def _portion(
    session: Session, domain: str, is_wanted: ColumnElement[bool], after: int
) -> tuple[dict[str, list[str]], int | None]:
    domain_id = session.scalar(select(Domain.id).where(Domain.name == domain))
    if domain_id is None:
        raise DomainUnknown(domain)
    # Select the condition as a column instead of a WHERE: the limit then bounds the scanned rows, even if few match.
    rows = session.execute(
        select(Page.id, Page.url, Page.url_hash, is_wanted)
        .where(Page.domain_id == domain_id, Page.url_hash > after)
        .order_by(Page.url_hash)
        .limit(MOST_URLS)
    ).all()
    urls = {number: url for number, url, _, fits in rows if fits}
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


def _in_scope(session: Session, code: str, urls: list[str]) -> AddRequest:
    try:
        plan = crawl_plan(registry.config_of(find_source(session, code)), CrawlDefaults(contact="-"), number=1)
    except Invalid:
        return AddRequest(urls=())  # without seeds, no run of it reaches anything
    scope, policy, reached = plan.build_scope(), plan.normalisation(), list[str]()
    for url in urls:
        with suppress(UrlRefused):  # its port is no longer allowed by the source
            if scope.decide(parse(url, policy), 0).allowed:
                reached.append(url)
    # Pages that failed before usually fail again, and a retry of the job would keep a worker from other sites.
    return AddRequest(urls=reached, source=code, priority=PRIORITY, policy=policy, max_retries=0)
