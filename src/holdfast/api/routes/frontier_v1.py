"""`/api/v1/frontier` and `/api/v1/discovered-links`: the same frontier in the words of that version."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query, Response
from sqlalchemy.orm import Session

from holdfast.api.dependencies import ArchiveDep, SessionDep
from holdfast.api.errors import answers
from holdfast.api.job_dependencies import AdminWriteDep, FrontierCountsDep, FrontierDep, JobServiceDep
from holdfast.api.late_routes import LateRouter
from holdfast.api.routes.frontier import adding_urls
from holdfast.api.schemas.base import RowId, Words
from holdfast.api.schemas.frontier_v1 import (
    STATUS_OF,
    DiscoveredLink,
    DiscoveredLinks,
    FrontierEntry,
    FrontierPage,
    FrontierTotals,
    FrontierWord,
    SubmitForm,
    Submitted,
)
from holdfast.api.schemas.lists import DEFAULT_LIMIT, ListCursor, ListLimit, decode_cursor, encode_cursor
from holdfast.errors import NotFound
from holdfast.jobs.administration.frontier_actions import AddWish, drop_attempt
from holdfast.jobs.views.frontier_queries import (
    QueueFigures,
    UrlFilter,
    UrlOrigin,
    UrlSort,
    attempt_by_id,
    fetch_counts,
    frontier_urls,
    meant_frontier,
    newest_of_source,
)
from holdfast.search.linked_hosts import MAX_LISTED, host_key, host_name
from holdfast.search.linked_queries import HostTotal, forget_hosts, linked_hosts, totals
from holdfast.sources.queries import source_by_id
from holdfast.urls import typed_host

router = LateRouter(prefix="/api/v1", tags=["crawler"])
LinkedHostId = Annotated[
    str, Path(max_length=255, pattern=r"^[a-z0-9._-]+$", description="A host, as listed.", examples=["example.org"])
]
AttemptId = Annotated[RowId, Path(description="An attempt's id, as it is listed.")]


@router.get("/frontier", responses=answers(400, 403, 404, 503))
def list_frontier_v1(
    session: SessionDep,
    counts: FrontierCountsDep,
    status: Annotated[FrontierWord | None, Query(description="Where an address stands.")] = None,
    source_id: Annotated[RowId | None, Query(description="Its newest crawl; the newest of all if left out.")] = None,
    host: Annotated[str | None, Query(max_length=255, description="Only of this host.")] = None,
    search: Annotated[Words, Query(description="A part of the address.")] = "",
    origin: Annotated[UrlOrigin | None, Query(description="How the crawl came to know an address.")] = None,
    sort_by: Annotated[
        UrlSort | None, Query(description="`priority` is for pending, `next_fetch_at` for failed addresses only.")
    ] = None,
    offset: Annotated[int, Query(ge=0, le=10_000, description="How many to skip; `cursor` reaches further.")] = 0,
    limit: ListLimit = DEFAULT_LIMIT,
    cursor: ListCursor = None,
) -> FrontierPage:
    """Return attempts of a crawl, piece by piece."""
    meant = meant_frontier(session, None if source_id is None else newest_of_source(session, source_id))
    place = decode_cursor(cursor, int, int, int)
    wanted = UrlFilter(
        status=None if status is None else STATUS_OF[status],
        domain=None if host is None else typed_host(host.replace("\x00", "")),
        search=search.strip() or None,
        origin=origin,
        sort=sort_by,
        offset=offset,
        limit=limit,
        after=None if place is None else [int(part) for part in place],
    )
    found = frontier_urls(session, meant.frontier_id, wanted)
    fetched = fetch_counts(session, [row.page_id for row in found.rows])
    return FrontierPage(
        urls=[FrontierEntry.of(row, fetched) for row in found.rows],
        total=_total(counts.figures(session, meant), status),
        next=None if found.next is None else encode_cursor(*found.next),
        limit=limit,
    )


def _total(figures: QueueFigures, status: FrontierWord | None) -> int:
    if status is None:
        return figures.pending + figures.completed + figures.failed + figures.ruled_out
    by_word = {
        FrontierWord.PENDING: figures.pending,
        FrontierWord.FETCHED: figures.completed,
        FrontierWord.DEAD: figures.failed,
    }
    return by_word.get(status, 0)


@router.get("/frontier/stats", responses=answers(400, 403, 404, 503))
def frontier_stats_v1(session: SessionDep, counts: FrontierCountsDep) -> FrontierTotals:
    """Return the figures of the newest crawl."""
    return FrontierTotals.of(counts.figures(session, meant_frontier(session, None)))


_SUBMITTED: dict[int | str, dict[str, Any]] = {
    **answers(400, 403, 404, 503),
    200: {"model": Submitted, "description": "It was known there."},
}


@router.post("/frontier", status_code=201, responses=_SUBMITTED, operation_id="add_url_v1")
@router.post("/frontier/submit", status_code=201, responses=_SUBMITTED)
def submit_url(
    archive: ArchiveDep, job_service: JobServiceDep, frontier: FrontierDep, form: SubmitForm, response: Response
) -> Submitted:
    """Add one address: to the run of its source, to its next run, or to a job of its own.

    One that is queued already gets the priority if that is higher (`raised`).
    """
    code = None
    if form.source_id is not None:
        with archive.database.read() as session:
            source = source_by_id(session, form.source_id)
        if source is None:
            raise NotFound(f"there is no source {form.source_id}; they are listed at /api/v1/sources")
        code = source.code
    with adding_urls(archive, job_service, frontier) as adding:
        [place] = adding.add(AddWish(urls=[form.url], source=code, priority=form.priority)).places
    if not place.added:
        response.status_code = 200
    return Submitted.of(place)


@router.get("/frontier/{id}", responses=answers(400, 403, 404, 503))
def frontier_entry(session: SessionDep, id: AttemptId) -> FrontierEntry:
    """Return one attempt."""
    row = attempt_by_id(session, id).row
    return FrontierEntry.of(row, fetch_counts(session, [row.page_id]))


@router.post("/frontier/{id}/retry", responses=answers(400, 403, 404, 503))
def retry_url(archive: ArchiveDep, job_service: JobServiceDep, frontier: FrontierDep, id: AttemptId) -> Submitted:
    """Ask once more for an address that is dead: in its run if that is under way, else in the source's next."""
    with adding_urls(archive, job_service, frontier) as adding:
        return Submitted.of(adding.retry(id))


@router.delete("/frontier/{id}", status_code=204, responses=answers(400, 403, 404, 503))
def drop_url(archive: ArchiveDep, frontier: FrontierDep, id: AttemptId) -> Response:
    """Take one queued address from its crawl."""
    with archive.database.read() as session:
        attempt = attempt_by_id(session, id)
    with frontier.open() as runtime:
        drop_attempt(runtime.frontier, runtime.clock, attempt)
    return Response(status_code=204)


@router.get("/discovered-links", responses=answers(400, 403, 503))
def list_discovered_links(
    session: SessionDep,
    limit: Annotated[int, Query(ge=1, le=MAX_LISTED, description="How many to list at most.")] = DEFAULT_LIMIT,
    offset: Annotated[int, Query(ge=0, le=100_000, description="How many to pass over.")] = 0,
) -> DiscoveredLinks:
    """Return hosts that captures link to and of which nothing is kept, those with the most linking sites first."""
    rows = linked_hosts(session, limit=limit, offset=offset)
    links = [DiscoveredLink.of(host_name(row.key), row.links, row.sites) for row in rows]
    return DiscoveredLinks(links=links, limit=limit, offset=offset)


@router.get("/discovered-links/{id}", responses=answers(400, 403, 404, 503))
def get_discovered_link(session: SessionDep, id: LinkedHostId) -> DiscoveredLink:
    """Return one host that captures link to and of which nothing is kept."""
    found = _total_of(session, id)
    return DiscoveredLink.of(id, found.links, found.sites)


@router.delete("/discovered-links/{id}", status_code=204, responses=answers(400, 403, 404, 503))
def delete_discovered_link(admin: AdminWriteDep, id: LinkedHostId) -> Response:
    """Remove a host and its counts from the list; a page captured later that links to it lists it again."""
    with admin.write() as session:
        _total_of(session, id)
        forget_hosts(session, [host_key(id)])
    return Response(status_code=204)


def _total_of(session: Session, host: str) -> HostTotal:
    """Return the counts of a listed host; NotFound. Any other text may be an address, as `https://999999999/` is."""
    found = totals(session, [host_key(host)])
    if not found:
        raise NotFound("no capture links to this host; GET /api/v1/discovered-links lists those that are linked to")
    return found[host_key(host)]


@router.post("/discovered-links/{id}/create-job", status_code=201, responses=answers(400, 403, 404, 503))
def crawl_discovered_host(
    archive: ArchiveDep,
    job_service: JobServiceDep,
    frontier: FrontierDep,
    id: LinkedHostId,
) -> Submitted:
    """Make a job that crawls a listed host once, and a source for it if there is none."""
    with archive.database.read() as session:
        _total_of(session, id)
    with adding_urls(archive, job_service, frontier) as adding:
        [place] = adding.add(AddWish(urls=[f"https://{id}/"], is_seed=True)).places
    return Submitted.of(place)
