"""`/api/frontier`: the queue of a crawl, and changes that operators make to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from typing import Annotated

from fastapi import Query
from pydantic import Field, StringConstraints

from holdfast.api.dependencies import (
    ArchiveDep,
    FrontierCountsDep,
    FrontierDep,
    JobServiceDep,
    ServedFrontierTurn,
    SessionDep,
)
from holdfast.api.routing import LazyRouter
from holdfast.api.schemas.base import RequestForm, RowId, Words
from holdfast.api.schemas.lists import (
    DEFAULT_LIMIT,
    ListCursor,
    ListLimit,
    Piece,
    decode_cursor,
    decode_ints,
    encode_cursor,
)
from holdfast.auth.roles import Permission
from holdfast.changes.listing import span
from holdfast.clock import Clock
from holdfast.crawl.recovery import RecoverReceipt
from holdfast.crawl.recovery import recover_frontier as recover_expired
from holdfast.errors import Invalid
from holdfast.frontier.actions import ClearReceipt, RequeueReceipt, RequeueStatus, clear, domain_of, requeue
from holdfast.frontier.added_urls import MOST_URLS, AddingUrls, AddReceipt, AddRequest
from holdfast.frontier.attempts import QueuedUrl, UrlFilter, UrlStatus, captures_of, frontier_urls, queued_url
from holdfast.frontier.domains import (
    CrawledHost,
    DiscoveredHost,
    HostOrder,
    hosts_of_crawl,
    left_out_hosts,
)
from holdfast.frontier.figures import FrontierFigures, select_frontier
from holdfast.types import Outcome, UrlKind
from holdfast.urls import typed_host
from holdfast.wiring import jobs
from holdfast.wiring.archive import Archive
from holdfast.wiring.jobs import JobService

router = LazyRouter(tags=["crawler"])
PORTION_S = 5.0
"""Seconds after which a request that removes queued URLs ends and says whether to continue."""
WhichExecution = Annotated[
    RowId | None, Query(description="An execution's id; by default the newest crawl that has a frontier.")
]
Host = Annotated[str, Query(max_length=255, description="A host, with its port if that is neither 80 nor 443.")]


@router.get("/api/frontier/stats", Permission.WATCH, errors=(404,))
def frontier_stats(session: SessionDep, counts: FrontierCountsDep, execution: WhichExecution = None) -> FrontierFigures:
    """Return the counts of queued, running, completed and failed URLs of an execution."""
    return counts.figures(session, select_frontier(session, execution))


@router.get("/api/frontier/urls", Permission.WATCH, errors=(404,))
def list_frontier_urls(
    session: SessionDep,
    execution: WhichExecution = None,
    status: Annotated[UrlStatus | None, Query(description="State of an attempt.")] = None,
    domain: Host | None = None,
    kind: Annotated[UrlKind | None, Query(description="Kind of the request.")] = None,
    outcome: Annotated[Outcome | None, Query(description="How an attempt ended.")] = None,
    reason: Annotated[Words | None, Query(description="Why, such as `http_404`.")] = None,
    last: Annotated[bool, Query(description="Only the last attempt on each URL.")] = False,
    search: Annotated[Words, Query(description="A part of the URL.")] = "",
    limit: ListLimit = DEFAULT_LIMIT,
    cursor: ListCursor = None,
) -> Piece[QueuedUrl]:
    """Return attempts of an execution: pending ones in fetch order, all others by domain and page.

    A filter without an index scans a few thousand attempts at a time: a response may have fewer than `limit`
    items and still have a `next`.
    """
    selected = select_frontier(session, execution)
    wanted = UrlFilter(
        status=status,
        domain=None if domain is None else typed_host(domain.replace("\x00", "")),
        kind=kind,
        outcome=outcome,
        reason=reason,
        is_last=last,
        search=search.strip() or None,
        limit=limit,
        after=decode_ints(cursor, 3),
    )
    rows, following = frontier_urls(session, selected.frontier_id, wanted)
    captures = captures_of(session, [row.id for row in rows])
    return Piece(
        items=[queued_url(row, captures.get(row.id)) for row in rows],
        next=None if following is None else encode_cursor(*following),
        limit=limit,
    )


@router.get("/api/frontier/hosts", Permission.WATCH, errors=(404,))
def list_frontier_hosts(
    archive: ArchiveDep,
    session: SessionDep,
    execution: WhichExecution = None,
    order: Annotated[
        HostOrder, Query(description="`due`: with something queued, next first; `met`: all of them.")
    ] = HostOrder.DUE,
    limit: ListLimit = DEFAULT_LIMIT,
    cursor: ListCursor = None,
) -> Piece[CrawledHost]:
    """Return the hosts of an execution with their counts and the reason why each one waits."""
    selected = select_frontier(session, execution)
    hosts, following = hosts_of_crawl(
        session,
        selected.frontier_id,
        order=order,
        after=decode_ints(cursor, 2),
        limit=limit,
        now=archive.now(session),
    )
    return Piece(items=hosts, next=None if following is None else encode_cursor(*following), limit=limit)


_Address = Annotated[str, StringConstraints(min_length=1, max_length=8192)]
_Code = Annotated[str, StringConstraints(min_length=1, max_length=64)]


class AddForm(RequestForm):
    """URLs to crawl."""

    urls: Annotated[list[_Address], Field(min_length=1, max_length=MOST_URLS)] = Field(
        description="URLs; all of them are checked before one is added.", examples=[["https://example.org/news"]]
    )
    source: _Code | None = Field(
        default=None, description="The source that they belong to; by default found by its scope."
    )
    priority: Annotated[int, Field(ge=1, le=3)] | None = Field(
        default=None, description="3 is fetched first; by default as the crawl itself ranks them."
    )


@router.post("/api/frontier/add", Permission.OPERATE, errors=(404, 409), is_seeding=True)
def add_frontier_urls(
    archive: ArchiveDep, job_service: JobServiceDep, frontier: FrontierDep, form: AddForm
) -> AddReceipt:
    """Add URLs to the current run of their source, to its next run, or to a job of their own."""
    request = AddRequest(urls=form.urls, source=form.source, priority=form.priority)
    with adding_urls(archive, job_service, frontier) as adding:
        return adding.add(request)


class SeedForm(RequestForm):
    """Seed URLs to crawl."""

    urls: Annotated[list[_Address], Field(max_length=MOST_URLS)] = Field(
        default_factory=list, description="URLs; by default the seeds of the source.", examples=[[]]
    )
    source: _Code | None = Field(default=None, examples=["example-org"])


@router.post("/api/frontier/seed", Permission.OPERATE, errors=(404, 409), is_seeding=True)
def seed_frontier(archive: ArchiveDep, job_service: JobServiceDep, frontier: FrontierDep, form: SeedForm) -> AddReceipt:
    """Add URLs as seeds: fetched first, their links at depth 1; by default the seeds of the source."""
    if not form.urls and form.source is None:
        raise Invalid("urls: name URLs, or a source to add its seeds", field="urls")
    with adding_urls(archive, job_service, frontier) as adding:
        urls = form.urls or adding.seeds_of(form.source or "")
        return adding.add(AddRequest(urls=urls, source=form.source, is_seed=True))


class RequeueForm(RequestForm):
    """Pages to queue again."""

    domain: Annotated[str, StringConstraints(min_length=1, max_length=255)] = Field(examples=["example.org"])
    since: date | None = Field(
        None, strict=False, description="First day (UTC) of their last fetch, or failure. Required without `until`."
    )
    until: date | None = Field(
        None, strict=False, description="Last day. Required without `since`.", examples=["2026-01-31"]
    )
    status: RequeueStatus = Field(RequeueStatus.FETCHED, strict=False, description="Which pages: fetched or failed.")
    apply: bool = Field(False, description="Queue them; without it, only count.")
    after: int | None = Field(None, description="`next` of the previous response.", ge=-(2**63), lt=2**63)


@router.post("/api/frontier/requeue", Permission.OPERATE, errors=(404,), is_seeding=True)
def requeue_pages(
    archive: ArchiveDep, job_service: JobServiceDep, frontier: FrontierDep, form: RequeueForm
) -> RequeueReceipt[int]:
    """Queue the pages of a domain again that were fetched, or failed, between two days; without `apply`, only count.

    A request ends after a few seconds. Repeat it with `after` set to the `next` of the response until `next` is null.
    """
    since, until = span(form.since, form.until, names=("since", "until"))
    with adding_urls(archive, job_service, frontier) as adding:
        goes_on = within(archive.clock, PORTION_S)
        return requeue(
            adding,
            domain=domain_of(form.domain),
            status=form.status,
            since=since,
            until=until,
            apply=form.apply,
            after=form.after,
            goes_on=goes_on,
        )


@contextmanager
def adding_urls(archive: Archive, job_service: JobService, frontier: ServedFrontierTurn) -> Iterator[AddingUrls]:
    with frontier.open() as runtime:
        yield jobs.adding_urls(
            runtime,
            job_service.actions,
            read=archive.database.read,
            write=lambda: job_service.write(frontier.actor),
        )


@router.post("/api/frontier/recover", Permission.OPERATE)
def recover_frontier(
    frontier: FrontierDep,
    minutes: Annotated[
        float | None, Query(ge=0, le=100_000, description="Age of an expired lease that is released; 15 by default.")
    ] = None,
) -> RecoverReceipt:
    """Release leases of dead processes on this machine, and leases that expired long ago anywhere."""
    with frontier.open() as runtime:
        return recover_expired(runtime, minutes=minutes)


@router.delete("/api/frontier", Permission.OPERATE, errors=(404,))
def clear_frontier(archive: ArchiveDep, frontier: FrontierDep, execution: WhichExecution = None) -> ClearReceipt:
    """Remove all queued URLs from an execution; its captures stay, and a running crawl ends."""
    with archive.database.read() as session:
        selected = select_frontier(session, execution)
    with frontier.open() as runtime:
        return clear(runtime.frontier, selected.frontier_id, goes_on=within(archive.clock, PORTION_S))


def within(clock: Clock, seconds: float) -> Callable[[], bool]:
    until = clock.monotonic() + seconds
    return lambda: clock.monotonic() < until


@router.get("/api/crawler/discovered", Permission.WATCH, errors=(404,))
def list_discovered_hosts(
    session: SessionDep,
    execution: WhichExecution = None,
    rule: Annotated[Words | None, Query(description="Only those that this rule excluded.")] = None,
    limit: ListLimit = DEFAULT_LIMIT,
    cursor: ListCursor = None,
) -> Piece[DiscoveredHost]:
    """Return hosts that were linked but not followed, by rule and host, with their number of links."""
    selected = select_frontier(session, execution)
    place = decode_cursor(cursor, str, str)
    after = None if place is None else [str(part) for part in place]
    rows = left_out_hosts(session, selected.frontier_id, rule=rule, after=after, limit=limit)
    return Piece(
        items=rows,
        next=encode_cursor(rows[-1].rule, rows[-1].host) if len(rows) == limit else None,
        limit=limit,
    )
