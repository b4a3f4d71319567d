"""`/api/v1/frontier` and `/api/v1/discovered-links`: the frontier in the format of that version."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from fastapi import Path, Query, Response
from pydantic import Field, StringConstraints
from sqlalchemy import Row
from sqlalchemy.orm import Session

from holdfast.api.dependencies import (
    AdminWriteDep,
    ArchiveDep,
    FrontierCountsDep,
    FrontierDep,
    JobServiceDep,
    SessionDep,
)
from holdfast.api.errors import answers
from holdfast.api.routes.frontier import adding_urls
from holdfast.api.routing import LazyRouter
from holdfast.api.schemas.base import RequestForm, RowId, Words
from holdfast.api.schemas.lists import DEFAULT_LIMIT, ListCursor, ListLimit, decode_ints, encode_cursor
from holdfast.auth.roles import Permission
from holdfast.errors import NotFound
from holdfast.frontier.actions import drop_attempt
from holdfast.frontier.added_urls import AddedPlace, AddRequest
from holdfast.frontier.attempts import (
    UrlFilter,
    UrlOrigin,
    UrlSort,
    UrlStatus,
    attempt_by_id,
    fetch_counts,
    frontier_urls,
    origin_of,
    queued_url,
)
from holdfast.frontier.figures import FrontierFigures, select_frontier
from holdfast.records import Operator, from_row, record
from holdfast.search.linked_hosts import MAX_LISTED, host_key, host_name
from holdfast.search.linked_queries import HostTotal, forget_hosts, linked_hosts, totals
from holdfast.sources.queries import source_by_id
from holdfast.urls import typed_host

router = LazyRouter(prefix="/api/v1", tags=["crawler"])
LinkedHostId = Annotated[
    str, Path(max_length=255, pattern=r"^[a-z0-9._-]+$", description="A host, as listed.", examples=["example.org"])
]
AttemptId = Annotated[RowId, Path(description="An attempt's id, as listed.")]


class FrontierWord(StrEnum):
    """State of a URL."""

    PENDING = "pending"
    FETCHED = "fetched"
    FAILED = "failed"
    """It will be retried."""
    DEAD = "dead"
    """It failed for good, or a rule excluded it."""


_WORDS = {
    UrlStatus.PENDING: FrontierWord.PENDING,
    UrlStatus.DEFERRED: FrontierWord.FAILED,
    UrlStatus.RETRIED: FrontierWord.FAILED,
    UrlStatus.COMPLETED: FrontierWord.FETCHED,
    UrlStatus.FAILED: FrontierWord.DEAD,
    UrlStatus.EXCLUDED: FrontierWord.DEAD,
}
STATUS_OF = {
    FrontierWord.PENDING: UrlStatus.PENDING,
    FrontierWord.FETCHED: UrlStatus.COMPLETED,
    FrontierWord.FAILED: UrlStatus.DEFERRED,
    FrontierWord.DEAD: UrlStatus.FAILED,
}
"""The status that is searched for each state."""


@record
class FrontierEntry:
    """One attempt on a URL."""

    id: Operator[int]
    url: Operator[str]
    host: Operator[str]
    status: Operator[FrontierWord]
    priority: Operator[int]
    depth: Operator[int]
    attempt: Operator[int]
    last_error: Operator[str | None]
    status_code: Operator[int | None]
    created_at: Operator[datetime]
    next_fetch_at: Operator[datetime | None]
    fetched_at: Operator[datetime | None]
    origin: Operator[UrlOrigin]
    fetch_count: Operator[int]
    """Requests for its page across all runs."""


def entry_record(row: Row[Any], counts: Mapping[int, int]) -> FrontierEntry:
    """Return the record of an attempt; `counts` are those of `fetch_counts`."""
    found = queued_url(row)
    return from_row(
        FrontierEntry,
        found,
        host=found.domain,
        status=_WORDS[found.status],
        last_error=None if found.status is UrlStatus.COMPLETED else found.reason,
        next_fetch_at=found.scheduled_for,
        fetched_at=found.completed_at,
        origin=origin_of(row),
        fetch_count=counts.get(row.page_id, 0),
    )


@record
class FrontierPage:
    """A page of the URLs of a crawl."""

    urls: Operator[list[FrontierEntry]]
    total: Operator[int]
    """URLs in this state, or in any state; each counts once."""
    next: Operator[str | None]
    """Send it as `cursor` to continue; null at the end."""
    limit: Operator[int]


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
    selected = select_frontier(session, None, source_id=source_id)
    wanted = UrlFilter(
        status=None if status is None else STATUS_OF[status],
        domain=None if host is None else typed_host(host.replace("\x00", "")),
        search=search.strip() or None,
        origin=origin,
        sort=sort_by,
        offset=offset,
        limit=limit,
        after=decode_ints(cursor, 3),
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


@record
class FrontierTotals:
    """The frontier of a crawl in figures."""

    total_pending: Operator[int]
    total_fetching: Operator[int]
    total_fetched: Operator[int]
    total_failed: Operator[int] = 0
    """Always 0: retries count as pending."""
    total_dead: Operator[int]


def frontier_totals(figures: FrontierFigures) -> FrontierTotals:
    return FrontierTotals(
        total_pending=figures.pending,
        total_fetching=figures.in_progress,
        total_fetched=figures.completed,
        total_dead=figures.failed,
    )


@router.get("/frontier/stats", Permission.WATCH, errors=(404,))
def frontier_stats_v1(session: SessionDep, counts: FrontierCountsDep) -> FrontierTotals:
    """Return the figures of the newest crawl."""
    return frontier_totals(counts.figures(session, select_frontier(session, None)))


_SUBMITTED: dict[int | str, dict[str, Any]] = {
    **answers(400, 403, 404, 503),
    200: {"description": "It was known there."},
}


class SubmitForm(RequestForm):
    """A URL to crawl."""

    url: Annotated[str, StringConstraints(min_length=1, max_length=8192)] = Field(examples=["https://example.org/"])
    source_id: RowId | None = None
    priority: Annotated[int, Field(ge=1, le=3)] | None = None


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
        drop_attempt(runtime.frontier, attempt)
    return Response(status_code=204)


@record
class DiscoveredLink:
    """A host without captures that captures link to."""

    id: Operator[str]
    """The host."""
    url: Operator[str]
    links: Operator[int]
    linking_sites: Operator[int]


def discovered_link(host: str, links: int, sites: int) -> DiscoveredLink:
    return DiscoveredLink(id=host, url=f"https://{host}/", links=links, linking_sites=sites)


@record
class DiscoveredLinks:
    """A page of discovered hosts, those with the most linking sites first."""

    links: Operator[list[DiscoveredLink]]
    limit: Operator[int]
    offset: Operator[int]


@router.get("/discovered-links", Permission.WATCH)
def list_discovered_links(
    session: SessionDep,
    limit: Annotated[int, Query(ge=1, le=MAX_LISTED, description="How many to list at most.")] = DEFAULT_LIMIT,
    offset: Annotated[int, Query(ge=0, le=100_000, description="How many to skip.")] = 0,
) -> DiscoveredLinks:
    """Return hosts without captures that captures link to, those with the most linking sites first."""
    found = linked_hosts(session, limit=limit, offset=offset)
    links = [discovered_link(host_name(key), one.links, one.sites) for key, one in found.items()]
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
