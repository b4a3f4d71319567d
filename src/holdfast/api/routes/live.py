"""Pages as they are now: compare a capture with the live page, and fetch one address on demand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, TypeVar

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import Query, Request
from starlette.responses import Response

from holdfast.api import queries
from holdfast.api.dependencies import ArchiveDep, actor_of
from holdfast.api.errors import answers
from holdfast.api.heavy import HeavyWork, heavily
from holdfast.api.job_dependencies import FrontierDep, JobServiceDep
from holdfast.api.late_routes import LateRouter
from holdfast.api.routes.frontier import adding_urls
from holdfast.api.routes.snapshots import SnapshotId
from holdfast.api.schemas import changes as schemas
from holdfast.api.schemas.frontier_v1 import FetchedPage, FetchForm, Submitted
from holdfast.api.schemas.sources import SurveyForm
from holdfast.changes.pairs import TextMode
from holdfast.crawl.contact import contact_of
from holdfast.db.audit_events import acting
from holdfast.db.models import Snapshot
from holdfast.index.queries import document_of
from holdfast.jobs.administration.frontier_actions import AddWish
from holdfast.jobs.imports import job_names
from holdfast.jobs.store import execution_name
from holdfast.operations.live_pages import (
    LivePage,
    comparable_snapshot,
    compare_live,
    extract,
    fetch_live,
)
from holdfast.operations.survey import SiteSurvey, survey_site
from holdfast.sources.queries import SiteSource, site_of
from holdfast.wiring.archive import Archive

_Found = TypeVar("_Found")
router = LateRouter(tags=["changes"])
_HEADERS = {"Cache-Control": "no-store", "X-Robots-Tag": "noindex"}


@router.get(
    "/api/snapshots/{id}/compare-live",
    responses=answers(400, 403, 404, 413, 422, 429, 502, 503),
    response_model=schemas.LiveComparison,
)
async def compare_with_live(
    request: Request,
    archive: ArchiveDep,
    id: SnapshotId,
    mode: Annotated[
        TextMode, Query(description="The page's content, or all that it shows: navigation and footer too.")
    ] = TextMode.MAIN,
) -> Response:
    """Fetch the page of a capture now and return what differs; nothing is stored.

    The fetch obeys robots.txt and the pace of the domain, takes at most 8 s, 4 redirects and 2 MB, and 4 run at once.
    """

    def find() -> Snapshot:
        with archive.database.read() as session:
            return comparable_snapshot(session, id)

    found = await run_sync(find)
    page = await _fetched(archive, found.url)

    def work() -> Response:
        body = _compared(archive, found, page, mode).model_dump_json(by_alias=True)
        return Response(body, media_type="application/json", headers=_HEADERS)

    return await heavily(request, work)


async def _fetched(archive: Archive, url: str) -> LivePage:
    settings = archive.settings
    return await _apart(lambda: fetch_live(settings, url, contact=contact_of(settings)))


async def _apart(work: Callable[[], _Found]) -> _Found:
    # Not on the threads that all routes share: a site may take seconds. The work refuses more than a few at once.
    return await run_sync(work, limiter=CapacityLimiter(1))


def _compared(archive: Archive, archived: Snapshot, page: LivePage, mode: TextMode) -> schemas.LiveComparison:
    done = compare_live(archive.database, archive.home, archived, page, mode)
    with archive.database.read() as session:
        document = document_of(session, archived)
        source = queries.sources_by_id(session, [archived.source_id])[archived.source_id]
        name = job_names(session, [archived.execution_id])[archived.execution_id]
    found = done.found
    return schemas.LiveComparison(
        archived_snapshot=schemas.side(
            archived, document.title if document else None, execution_name(source.code, archived.execution_id, name)
        ),
        source_code=source.code,
        live_fetch=schemas.LiveFetch(**page.facts()),
        stats=schemas.LiveStats(**done.stats()),
        **schemas.diff_fields(
            None if found is None else found.hunks,
            found.touched if found else (),
            (mode, done.mode),
            truncated=found is not None and found.truncated,
        ),
    )


@router.post("/api/internal/v1/fetch", include_in_schema=False)
@router.post("/api/v1/fetch", responses=answers(400, 403, 404, 413, 429, 502, 503), tags=["crawler"])
async def fetch_page(
    request: Request,
    response: Response,
    archive: ArchiveDep,
    job_service: JobServiceDep,
    frontier: FrontierDep,
    form: FetchForm,
) -> FetchedPage:
    """Fetch one address now and return its text and metadata; with `capture`, also queue it to be crawled.

    The fetch itself is never stored. It obeys robots.txt and the pace of the domain, takes at most 8 s, 4 redirects and
    2 MB, and 4 run at once.
    """
    heavy: HeavyWork = request.app.state.heavy
    page = await _fetched(archive, form.url)
    found = await heavy.result(lambda: extract(page))

    def queue() -> Submitted:
        with adding_urls(archive, job_service, frontier) as adding:
            [place] = adding.add(AddWish(urls=[form.url], source=form.source)).places
        return Submitted.of(place)

    response.headers.update(_HEADERS)
    return FetchedPage(**found, queued=await run_sync(queue) if form.capture else None)


@router.post("/api/v1/sources/survey", responses=answers(400, 403, 413, 415, 422, 429, 502, 503), tags=["sources"])
async def survey_source(request: Request, archive: ArchiveDep, response: Response, form: SurveyForm) -> SiteSurvey:
    """Look at a website before it is crawled: robots.txt, sitemaps, the first page, and which addresses would be taken.

    Nothing is stored but a contact that is given. The requests obey robots.txt and the pace of the domain; 25 s, 8
    sitemaps and 100,000 addresses at most, and 4 surveys run at once.
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
