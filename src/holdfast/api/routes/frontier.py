"""`/api/frontier`: what is queued, and what operators do about it while a crawl runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

from fastapi import Query

from holdfast.api.dependencies import ArchiveDep, SessionDep
from holdfast.api.errors import answers
from holdfast.api.job_dependencies import FrontierCountsDep, FrontierDep, JobServiceDep, ServedFrontierTurn
from holdfast.api.late_routes import LateRouter
from holdfast.api.schemas.base import RowId, Words
from holdfast.api.schemas.crawler import (
    AddForm,
    AddReceipt,
    ClearReceipt,
    CrawledHost,
    DiscoveredHost,
    FrontierFigures,
    QueuedUrl,
    RecoverReceipt,
    RequeueForm,
    RequeueReceipt,
    SeedForm,
)
from holdfast.api.schemas.lists import DEFAULT_LIMIT, ListCursor, Listed, ListLimit, decode_cursor, encode_cursor
from holdfast.changes.listing import span
from holdfast.clock import Clock
from holdfast.errors import Invalid
from holdfast.fetch.guard import AddressGuard
from holdfast.jobs.administration.frontier_actions import AddingUrls, AddWish, clear, domain_of
from holdfast.jobs.administration.requeueing import RequeueRequest, requeue
from holdfast.jobs.views.frontier_queries import (
    UrlFilter,
    UrlStatus,
    frontier_urls,
    meant_frontier,
)
from holdfast.jobs.views.host_queries import HostOrder, hosts_of_crawl, left_out_hosts
from holdfast.jobs.views.run_captures import captures_of
from holdfast.operations.frontier_recovery import recover_frontier as recover_expired
from holdfast.types import Outcome, UrlKind
from holdfast.urls import typed_host
from holdfast.wiring.archive import Archive
from holdfast.wiring.jobs import JobService

router = LateRouter(tags=["crawler"])
PORTION_S = 5.0
"""How long one request takes attempts from a queue; it says whether to go on."""
WhichExecution = Annotated[
    RowId | None, Query(description="An execution's id; the newest crawl that has a frontier if left out.")
]
Host = Annotated[str, Query(max_length=255, description="A host, with its port if that is neither 80 nor 443.")]


@router.get("/api/frontier/stats", responses=answers(403, 404, 422, 503))
def frontier_stats(session: SessionDep, counts: FrontierCountsDep, execution: WhichExecution = None) -> FrontierFigures:
    """Return what is queued, under way, done and failed in an execution."""
    meant = meant_frontier(session, execution)
    return FrontierFigures.of(meant, counts.figures(session, meant))


@router.get("/api/frontier/urls", responses=answers(403, 404, 422, 503))
def list_frontier_urls(
    session: SessionDep,
    execution: WhichExecution = None,
    status: Annotated[UrlStatus | None, Query(description="Where an attempt stands.")] = None,
    domain: Host | None = None,
    kind: Annotated[UrlKind | None, Query(description="What it is asked for as.")] = None,
    outcome: Annotated[Outcome | None, Query(description="How an attempt ended.")] = None,
    reason: Annotated[Words | None, Query(description="Why, such as `http_404`.")] = None,
    last: Annotated[bool, Query(description="Only the last attempt on each address.")] = False,
    search: Annotated[Words, Query(description="A part of the address.")] = "",
    limit: ListLimit = DEFAULT_LIMIT,
    cursor: ListCursor = None,
) -> Listed[QueuedUrl]:
    """Return attempts of an execution: pending ones in the order of their turn, all others by domain and page.

    A filter that no index has is looked for in a few thousand attempts at a time: an answer may hold fewer than `limit`
    and still have a `next`.
    """
    meant = meant_frontier(session, execution)
    place = decode_cursor(cursor, int, int, int)
    wanted = UrlFilter(
        status=status,
        domain=None if domain is None else typed_host(domain.replace("\x00", "")),
        kind=kind,
        outcome=outcome,
        reason=reason,
        is_last=last,
        search=search.strip() or None,
        limit=limit,
        after=None if place is None else [int(part) for part in place],
    )
    found = frontier_urls(session, meant.frontier_id, wanted)
    captures = captures_of(session, [row.id for row in found.rows])
    return Listed(
        items=[QueuedUrl.of(row, captures.get(row.id)) for row in found.rows],
        next=None if found.next is None else encode_cursor(*found.next),
        limit=limit,
    )


@router.get("/api/frontier/hosts", responses=answers(403, 404, 422, 503))
def list_frontier_hosts(
    archive: ArchiveDep,
    session: SessionDep,
    execution: WhichExecution = None,
    order: Annotated[
        HostOrder, Query(description="`due`: with something queued, next first; `met`: all of them.")
    ] = HostOrder.DUE,
    limit: ListLimit = DEFAULT_LIMIT,
    cursor: ListCursor = None,
) -> Listed[CrawledHost]:
    """Return the hosts of an execution, each with its counts and with what it waits for."""
    meant = meant_frontier(session, execution)
    place = decode_cursor(cursor, int, int)
    after = None if place is None else [int(part) for part in place]
    rows = hosts_of_crawl(session, meant.frontier_id, order=order, after=after, limit=limit)
    now = archive.now(session)
    return Listed(
        items=[CrawledHost.of(row, now=now) for row in rows],
        next=encode_cursor(rows[-1].due_at, rows[-1].domain.id) if len(rows) == limit else None,
        limit=limit,
    )


@router.post("/api/frontier/add", responses=answers(403, 404, 409, 422, 503))
def add_frontier_urls(
    archive: ArchiveDep, job_service: JobServiceDep, frontier: FrontierDep, form: AddForm
) -> AddReceipt:
    """Add addresses to the run of their source that is under way, to its next run, or to a job of their own."""
    wish = AddWish(urls=form.urls, source=form.source, priority=form.priority)
    with adding_urls(archive, job_service, frontier) as adding:
        return AddReceipt.of(adding.add(wish))


@router.post("/api/frontier/seed", responses=answers(403, 404, 409, 422, 503))
def seed_frontier(archive: ArchiveDep, job_service: JobServiceDep, frontier: FrontierDep, form: SeedForm) -> AddReceipt:
    """Add addresses as seeds: first in their turn, their links one step away; without any, those of the source."""
    if not form.urls and form.source is None:
        raise Invalid("urls: name addresses, or a source whose seeds are meant", field="urls")
    with adding_urls(archive, job_service, frontier) as adding:
        urls = form.urls or adding.seeds_of(form.source or "")
        return AddReceipt.of(adding.add(AddWish(urls=urls, source=form.source, is_seed=True)))


@router.post("/api/frontier/requeue", responses=answers(403, 404, 422, 503))
def requeue_pages(
    archive: ArchiveDep, job_service: JobServiceDep, frontier: FrontierDep, form: RequeueForm
) -> RequeueReceipt:
    """Queue the pages of a domain again that were fetched, or failed, between two days; without `apply`, only count.

    A request ends after a few seconds. Repeat it with `after` set to the `next` of the response until `next` is null.
    """
    since, until = span(form.since, form.until, names=("since", "until"))
    wanted = RequeueRequest(domain_of(form.domain), form.status, since, until)
    with adding_urls(archive, job_service, frontier) as adding:
        goes_on = within(archive.clock, PORTION_S)
        return RequeueReceipt.of(requeue(adding, wanted, apply=form.apply, after=form.after, goes_on=goes_on))


@contextmanager
def adding_urls(archive: Archive, job_service: JobService, frontier: ServedFrontierTurn) -> Iterator[AddingUrls]:
    """Open what adds addresses in a client's name."""
    with frontier.open() as runtime:
        yield AddingUrls(
            runtime.frontier,
            runtime.clock,
            job_service.actions,
            read=archive.database.read,
            write=lambda: job_service.write(frontier.actor),
            guard=AddressGuard(archive.settings.allow_networks),
        )


@router.post("/api/frontier/recover", responses=answers(403, 422, 503))
def recover_frontier(
    frontier: FrontierDep,
    minutes: Annotated[
        float | None, Query(ge=0, le=100_000, description="Age of an expired lease that is freed; 15 if not set.")
    ] = None,
) -> RecoverReceipt:
    """Free what dead processes of this machine held, and leases that expired long ago anywhere."""
    with frontier.open() as runtime:
        done = recover_expired(runtime, minutes=minutes)
    return RecoverReceipt(
        recovered=done.domains,
        processes=done.processes,
        files=list(done.files),
        orphan_records=done.orphan_records,
    )


@router.delete("/api/frontier", responses=answers(403, 404, 422, 503))
def clear_frontier(archive: ArchiveDep, frontier: FrontierDep, execution: WhichExecution = None) -> ClearReceipt:
    """Take everything that is queued from an execution; what it has captured stays, and a crawl that runs ends."""
    with archive.database.read() as session:
        meant = meant_frontier(session, execution)
    with frontier.open() as runtime:
        return ClearReceipt.of(
            clear(runtime.frontier, runtime.clock, meant.frontier_id, goes_on=within(archive.clock, PORTION_S))
        )


def within(clock: Clock, seconds: float) -> Callable[[], bool]:
    """Return what says whether so many seconds have not passed yet."""
    until = clock.monotonic() + seconds
    return lambda: clock.monotonic() < until


@router.get("/api/crawler/discovered", responses=answers(403, 404, 422, 503))
def list_discovered_hosts(
    session: SessionDep,
    execution: WhichExecution = None,
    rule: Annotated[Words | None, Query(description="Only those that this rule left out.")] = None,
    limit: ListLimit = DEFAULT_LIMIT,
    cursor: ListCursor = None,
) -> Listed[DiscoveredHost]:
    """Return hosts that links led to and that were not followed, by rule and host, with how many links."""
    meant = meant_frontier(session, execution)
    place = decode_cursor(cursor, str, str)
    after = None if place is None else [str(part) for part in place]
    rows = left_out_hosts(session, meant.frontier_id, rule=rule, after=after, limit=limit)
    return Listed(
        items=[DiscoveredHost.of(row) for row in rows],
        next=encode_cursor(rows[-1].rule, rows[-1].host) if len(rows) == limit else None,
        limit=limit,
    )
