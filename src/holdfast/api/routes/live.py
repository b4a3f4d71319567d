"""Live pages: compare a capture with the live page, and fetch one URL on demand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, TypeVar

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import Query, Request
from pydantic import Field, StringConstraints
from starlette.responses import Response

from holdfast.api.dependencies import ArchiveDep, FrontierDep, JobServiceDep, actor_of
from holdfast.api.heavy import heavily, heavy_result
from holdfast.api.record_answers import record_response
from holdfast.api.routes.frontier import adding_urls
from holdfast.api.routes.snapshots import SnapshotId
from holdfast.api.routing import LazyRouter
from holdfast.api.schemas.base import RequestForm
from holdfast.api.schemas.source_config import SourceConfiguration
from holdfast.auth.roles import Permission
from holdfast.changes.pairs import TextMode
from holdfast.changes.records import LiveComparison, LiveFetch, compared_snapshot, text_diff
from holdfast.crawl.live_pages import (
    FetchedPage,
    LivePage,
    comparable_snapshot,
    compare_live,
    extract,
    fetch_live,
)
from holdfast.crawl.survey import SiteSurvey, survey_site
from holdfast.db.audit_events import acting
from holdfast.db.models import Snapshot
from holdfast.frontier.added_urls import AddedPlace, AddRequest
from holdfast.index.queries import document_of
from holdfast.jobs.imports import job_names
from holdfast.jobs.store import execution_name
from holdfast.records import from_row
from holdfast.sources.contact import contact_of
from holdfast.sources.queries import SiteSource, site_of, sources_by_id
from holdfast.wiring.archive import Archive

_Found = TypeVar("_Found")
router = LazyRouter(tags=["changes"])
_HEADERS = {"Cache-Control": "no-store", "X-Robots-Tag": "noindex"}


@router.get(
    "/api/snapshots/{id}/compare-live",
    Permission.OPERATE,
    errors=(404, 413, 502),
    response_model=LiveComparison,
    opened_by="compare_live",
)
async def compare_with_live(
    request: Request,
    archive: ArchiveDep,
    id: SnapshotId,
    mode: Annotated[
        TextMode, Query(description="The page's content, or all that it shows: navigation and footer too.")
    ] = TextMode.MAIN,
) -> Response:
    """Fetch the page of a capture now and return the differences; nothing is stored.

    The fetch obeys robots.txt and the domain's crawl delay; limits: 8 s, 4 redirects, 2 MB, and 4 fetches at a
    time.
    """

    def find() -> Snapshot:
        with archive.database.read() as session:
            return comparable_snapshot(session, id)

    found = await run_sync(find)
    page = await _fetched(archive, found.url)

    def work() -> Response:
        return record_response(_compared(archive, found, page, mode), headers=_HEADERS)

    return await heavily(request, work)


async def _fetched(archive: Archive, url: str) -> LivePage:
    settings = archive.settings
    return await _apart(lambda: fetch_live(settings, url, contact=contact_of(settings)))


async def _apart(work: Callable[[], _Found]) -> _Found:
    # Do not use the shared threads: a site may take seconds. More than a few concurrent requests are rejected.
    return await run_sync(work, limiter=CapacityLimiter(1))


def _compared(archive: Archive, archived: Snapshot, page: LivePage, mode: TextMode) -> LiveComparison:
    stats, found, used = compare_live(archive.database, archive.home, archived, page, mode)
    with archive.database.read() as session:
        document = document_of(session, archived)
        source = sources_by_id(session, [archived.source_id])[archived.source_id]
        name = job_names(session, [archived.execution_id])[archived.execution_id]
    diff = text_diff(
        None if found is None else found.hunks,
        found.touched if found else (),
        requested=mode.value,
        used=used.value,
        truncated=found is not None and found.truncated,
    )
    title, job_name = document.title if document else None, execution_name(source.code, archived.execution_id, name)
    return from_row(
        LiveComparison,
        diff,
        archived_snapshot=compared_snapshot(archived, title=title, job_name=job_name),
        source_code=source.code,
        live_fetch=LiveFetch(**page.facts()),
        stats=stats,
    )


class FetchForm(RequestForm):
    """A URL to fetch now."""

    url: Annotated[str, StringConstraints(min_length=1, max_length=8192)] = Field(examples=["https://example.org/"])
    capture: bool = Field(False, description="Also queue the URL for a crawl.")
    source: str | None = Field(None, max_length=64, description="With `capture`: the source's code; found by default.")


@router.post("/api/v1/fetch", Permission.OPERATE, errors=(404, 413, 502), tags=["crawler"], is_seeding=True)
async def fetch_page(
    request: Request,
    response: Response,
    archive: ArchiveDep,
    job_service: JobServiceDep,
    frontier: FrontierDep,
    form: FetchForm,
) -> FetchedPage:
    """Fetch one URL now and return its text and metadata; with `capture`, also queue it to be crawled.

    The fetch itself is never stored. It obeys robots.txt and the domain's crawl delay; limits: 8 s, 4 redirects,
    2 MB, and 4 fetches at a time.
    """
    page = await _fetched(archive, form.url)
    found = await heavy_result(request, lambda: extract(page))

    def queue() -> AddedPlace:
        with adding_urls(archive, job_service, frontier) as adding:
            return adding.add(AddRequest(urls=[form.url], source=form.source)).places[0]

    response.headers.update(_HEADERS)
    return replace(found, queued=await run_sync(queue)) if form.capture else found


class SurveyForm(RequestForm, example={"url": "example.org"}):
    """A website to survey before it is crawled."""

    url: Annotated[str, StringConstraints(min_length=1, max_length=8192)] = Field(
        description="As a person types it; https if it has no scheme."
    )
    contact: str | None = Field(
        None,
        max_length=200,
        description="E-mail or web address that site owners can use. It is kept for every later crawl, unless "
        "HOLDFAST_CONTACT is set; needed only while none is known.",
    )
    config: SourceConfiguration = Field(
        default_factory=dict, description="Fields of a source by which addresses are judged; its seed is `url`."
    )


@router.post("/api/v1/sources/survey", Permission.OPERATE, errors=(413, 415, 502), tags=["sources"], is_seeding=True)
async def survey_source(request: Request, archive: ArchiveDep, response: Response, form: SurveyForm) -> SiteSurvey:
    """Survey a website before crawling it: robots.txt, sitemaps, the first page, and which URLs are in scope.

    Stores nothing except the contact, if given. The requests obey robots.txt and the domain's crawl delay; limits:
    25 s, 8 sitemaps, 100,000 URLs, and 4 surveys at a time.
    """

    def found_site(front_page: str) -> SiteSource:
        with archive.database.read() as session:
            return site_of(session, front_page)

    response.headers.update(_HEADERS)
    with acting(actor_of(request)):
        return await _apart(
            lambda: survey_site(
                archive.settings, form.url, site_of=found_site, contact=form.contact, config=form.config
            )
        )
