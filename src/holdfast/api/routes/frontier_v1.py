"""`/api/v1/frontier` and `/api/v1/discovered-links`: the frontier in the format of that version."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query, Response
from sqlalchemy.orm import Session

from holdfast.api.dependencies import ArchiveDep, SessionDep
from holdfast.api.errors import answers
from holdfast.api.job_dependencies import AdminWriteDep, FrontierCountsDep, FrontierDep, JobServiceDep
from holdfast.api.routes.frontier import adding_urls
from holdfast.api.routing import LazyRouter
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
    discovered_link,
    entry_record,
    frontier_totals,
)
from holdfast.api.schemas.lists import DEFAULT_LIMIT, ListCursor, ListLimit, decode_cursor, encode_cursor
from holdfast.auth.roles import Permission
from holdfast.errors import NotFound
from holdfast.jobs.administration.frontier_actions import AddedPlace, AddRequest, drop_attempt
from holdfast.jobs.views.frontier_queries import (
    FrontierFigures,
    UrlFilter,
    UrlOrigin,
    UrlSort,
    attempt_by_id,
    fetch_counts,
    frontier_urls,
    newest_of_source,
    select_frontier,
)
from holdfast.search.linked_hosts import MAX_LISTED, host_key, host_name
from holdfast.search.linked_queries import HostTotal, forget_hosts, linked_hosts, totals
from holdfast.sources.queries import source_by_id
from holdfast.urls import typed_host

router = LazyRouter(prefix="/api/v1", tags=["crawler"])
LinkedHostId = Annotated[
    str, Path(max_length=255, pattern=r"^[a-z0-9._-]+$", description="A host, as listed.", examples=["example.org"])
]
AttemptId = Annotated[RowId, Path(description="An attempt's id, as listed.")]


@router.get("/frontier", Permission.WATCH, errors=(404,))
def list_frontier_v1(
    session: SessionDep,
    counts: FrontierCountsDep,
    status: Annotated[FrontierWord | None, Query(description="State of a URL.")] = None,
    source_id: Annotated[RowId | None, Query(description="Its newest crawl; by default the newest of all.")] = None,
    host: Annotated[str | None, Query(max_length=255, description="Only of this host.")] = None,
    search: Annotated[Words, Query(description="A part of the URL.")] = "",
    origin: Annotated[UrlOrigin | None, Query(description="How the crawl discovered a URL.")] = None,
    sort_by: Annotated[
        UrlSort | None, Query(description="`priority` is for pending, `next_fetch_at` for failed URLs only.")
    ] = None,
    offset: Annotated[int, Query(ge=0, le=10_000, description="How many to skip; `cursor` reaches further.")] = 0,
    limit: ListLimit = DEFAULT_LIMIT,
    cursor: ListCursor = None,
) -> FrontierPage:
    """Return attempts of a crawl, page by page."""
    selected = select_frontier(session, None if source_id is None else newest_of_source(session, source_id))
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
    rows, following = frontier_urls(session, selected.frontier_id, wanted)
    fetched = fetch_counts(session, [row.page_id for row in rows])
    return FrontierPage(
        urls=[entry_record(row, fetched) for row in rows],
        total=_total(counts.figures(session, selected), status),
        next=None if following is None else encode_cursor(*following),
        limit=limit,
    )


def _total(figures: FrontierFigures, status: FrontierWord | None) -> int:
    if status is None:
        return figures.pending + figures.completed + figures.failed + figures.ruled_out
    by_word = {
        FrontierWord.PENDING: figures.pending,
        FrontierWord.FETCHED: figures.completed,
        FrontierWord.DEAD: figures.failed,
    }
    return by_word.get(status, 0)


@router.get("/frontier/stats", Permission.WATCH, errors=(404,))
def frontier_stats_v1(session: SessionDep, counts: FrontierCountsDep) -> FrontierTotals:
    """Return the figures of the newest crawl."""
    return frontier_totals(counts.figures(session, select_frontier(session, None)))


_SUBMITTED: dict[int | str, dict[str, Any]] = {
    **answers(400, 403, 404, 503),
    200: {"description": "It was known there."},
}


@router.post(
    "/frontier", Permission.OPERATE, status_code=201, responses=_SUBMITTED, operation_id="add_url_v1", is_seeding=True
)
@router.post("/frontier/submit", Permission.OPERATE, status_code=201, responses=_SUBMITTED, is_seeding=True)
def submit_url(
    archive: ArchiveDep, job_service: JobServiceDep, frontier: FrontierDep, form: SubmitForm, response: Response
) -> AddedPlace:
    """Add one URL to the run of its source, to its next run, or to a job of its own.

    A URL that is already queued gets the priority if that is higher (`raised`).
    """
    code = None
    if form.source_id is not None:
        with archive.database.read() as session:
            source = source_by_id(session, form.source_id)
        if source is None:
            raise NotFound(f"unknown source {form.source_id}; see /api/v1/sources")
        code = source.code
    with adding_urls(archive, job_service, frontier) as adding:
        [place] = adding.add(AddRequest(urls=[form.url], source=code, priority=form.priority)).places
    if not place.added:
        response.status_code = 200
    return place


@router.get("/frontier/{id}", Permission.WATCH, errors=(404,))
def frontier_entry(session: SessionDep, id: AttemptId) -> FrontierEntry:
    """Return one attempt."""
    row = attempt_by_id(session, id)
    return entry_record(row, fetch_counts(session, [row.page_id]))


@router.post("/frontier/{id}/retry", Permission.OPERATE, errors=(404,))
def retry_url(archive: ArchiveDep, job_service: JobServiceDep, frontier: FrontierDep, id: AttemptId) -> AddedPlace:
    """Retry a dead URL: in its own run while that runs, else in the source's next run."""
    with adding_urls(archive, job_service, frontier) as adding:
        return adding.retry(id)


@router.delete("/frontier/{id}", Permission.OPERATE, errors=(404,), status_code=204)
def drop_url(archive: ArchiveDep, frontier: FrontierDep, id: AttemptId) -> Response:
    """Remove one queued URL from its crawl."""
    with archive.database.read() as session:
        attempt = attempt_by_id(session, id)
    with frontier.open() as runtime:
        drop_attempt(runtime.frontier, runtime.clock, attempt)
    return Response(status_code=204)


@router.get("/discovered-links", Permission.WATCH)
def list_discovered_links(
    session: SessionDep,
    limit: Annotated[int, Query(ge=1, le=MAX_LISTED, description="How many to list at most.")] = DEFAULT_LIMIT,
    offset: Annotated[int, Query(ge=0, le=100_000, description="How many to skip.")] = 0,
) -> DiscoveredLinks:
    """Return hosts without captures that captures link to, those with the most linking sites first."""
    rows = linked_hosts(session, limit=limit, offset=offset)
    links = [discovered_link(host_name(row.key), row.links, row.sites) for row in rows]
    return DiscoveredLinks(links=links, limit=limit, offset=offset)


@router.get("/discovered-links/{id}", Permission.WATCH, errors=(404,))
def get_discovered_link(session: SessionDep, id: LinkedHostId) -> DiscoveredLink:
    """Return one host without captures that captures link to."""
    found = _total_of(session, id)
    return discovered_link(id, found.links, found.sites)


@router.delete("/discovered-links/{id}", Permission.OPERATE, errors=(404,), status_code=204)
def delete_discovered_link(admin: AdminWriteDep, id: LinkedHostId) -> Response:
    """Remove a host and its counts from the list; a later capture that links to it lists it again."""
    with admin.write() as session:
        _total_of(session, id)
        forget_hosts(session, [host_key(id)])
    return Response(status_code=204)


def _total_of(session: Session, host: str) -> HostTotal:
    """Return the counts of a listed host; raise NotFound if it is not listed. Ids are hosts, even all-digit ones
    such as `999999999` of `https://999999999/`.
    """
    found = totals(session, [host_key(host)])
    if not found:
        raise NotFound("no capture links to this host; GET /api/v1/discovered-links lists those that are linked to")
    return found[host_key(host)]


@router.post("/discovered-links/{id}/create-job", Permission.OPERATE, errors=(404,), status_code=201, is_seeding=True)
def crawl_discovered_host(
    archive: ArchiveDep,
    job_service: JobServiceDep,
    frontier: FrontierDep,
    id: LinkedHostId,
) -> AddedPlace:
    """Create a job that crawls a listed host once, and a source for it if it has none."""
    with archive.database.read() as session:
        _total_of(session, id)
    with adding_urls(archive, job_service, frontier) as adding:
        [place] = adding.add(AddRequest(urls=[f"https://{id}/"], is_seed=True)).places
    return place
