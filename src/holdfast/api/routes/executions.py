"""`/api/v1/executions/{id}`: the report of a run, and rules that an operator adds while it runs."""

from __future__ import annotations

from contextlib import AbstractContextManager, closing
from typing import Annotated

from fastapi import Query, Request, Response
from pydantic import Field, StringConstraints
from sqlalchemy.orm import Session
from starlette.responses import StreamingResponse

from holdfast.api.dependencies import ArchiveDep, FrontierDep, JobServiceDep, RunReportsDep, SessionDep
from holdfast.api.errors import ExecutionNotFound
from holdfast.api.heavy import Streamed, heavily, heavy_result
from holdfast.api.routes.frontier import PORTION_S, adding_urls, within
from holdfast.api.routes.jobs import ExecutionId
from holdfast.api.routing import LazyRouter
from holdfast.api.schemas.base import MAX_ID, RequestForm, Words
from holdfast.api.schemas.lists import decode_ints, encode_cursor
from holdfast.auth.roles import Permission
from holdfast.db import connect
from holdfast.db.raw import RawDatabase
from holdfast.frontier.requeueing import RequeueReceipt, requeue_failed
from holdfast.jobs.administration.run_exclusions import (
    MOST_RULES,
    MatchedUrls,
    RunExclusions,
    exclude_from_run,
    matched_urls,
    run_exclusions,
)
from holdfast.jobs.execution_queries import executions_of
from holdfast.jobs.views.run_report import RunReport, csv_pieces, run_urls
from holdfast.jobs.views.status import read_status
from holdfast.records import from_row
from holdfast.sources.queries import find_source

router = LazyRouter(tags=["jobs"])
_PREVIEW_S = 3.0


@router.get("/api/v1/executions/{id}/report", Permission.WATCH, errors=(404,))
async def execution_report(request: Request, reports: RunReportsDep, id: ExecutionId) -> RunReport:
    """Return the report of a run: its URLs by outcome, reason, status, type, host and depth, and the links that
    were excluded.
    """
    # Use a thread for heavy work: this counts all attempts of a run.
    return await heavy_result(request, lambda: reports.read(id))


@router.get("/api/v1/failed-urls", Permission.OPERATE, errors=(404,), response_class=StreamingResponse)
async def failed_urls(
    request: Request,
    archive: ArchiveDep,
    source: Annotated[Words | None, Query(description="Code of a source: only its runs.")] = None,
    execution: Annotated[int | None, Query(ge=0, le=MAX_ID, description="Only this run.")] = None,
    reason: Annotated[Words | None, Query(description="Only with this reason, such as `http_404`.")] = None,
) -> Response:
    """Return failed URLs as CSV, newest run first; without a source or run, those of all runs."""

    def opened() -> AbstractContextManager[RawDatabase]:
        # Open a session for each slice: another thread may read the next one.
        return closing(connect(archive.database.url))

    def work() -> Streamed:
        with opened() as raw_db, archive.database.read() as session:
            if source is not None:
                find_source(session, source)
            if execution is None:
                with raw_db.read() as tx:
                    runs = executions_of(tx, source)
            else:
                # A run that continued another's frontier is counted there.
                runs = [read_status(raw_db, archive.clock, execution).frontier_id]
        pieces = csv_pieces(run_urls(opened, runs, failed=True, reason=reason))
        headers = {"Content-Disposition": 'attachment; filename="failed-urls.csv"', "Cache-Control": "no-store"}
        return Streamed(map(str.encode, pieces), "text/csv; charset=utf-8", headers)

    return await heavily(request, work)


class RunRequeueForm(RequestForm):
    """Queue the failed pages of a run again."""

    apply: bool = Field(False, description="Queue them; without it, only count.", examples=[True])
    cursor: Annotated[str, StringConstraints(max_length=200)] | None = Field(
        None, description="`next` of the previous response."
    )


@router.post("/api/v1/executions/{id}/requeue", Permission.OPERATE, errors=(404, 413, 415), is_seeding=True)
def requeue_failed_pages(
    archive: ArchiveDep, job_service: JobServiceDep, frontier: FrontierDep, id: ExecutionId, form: RunRequeueForm
) -> RequeueReceipt[str]:
    """Queue a run's failed pages again, with the rules of `/api/frontier/requeue`; without `apply`, only count them.

    They join the current run of their source, wait for its next one, or get a job of their own. A request
    ends after a few seconds: repeat it with `cursor` set to the `next` of the response until `next` is null.
    """
    place = decode_ints(form.cursor, 3)
    after = None if place is None else (place[0], place[1], place[2])
    goes_on = within(archive.clock, PORTION_S)
    with adding_urls(archive, job_service, frontier) as adding:
        done = requeue_failed(adding, id, apply=form.apply, after=after, goes_on=goes_on)
    return from_row(RequeueReceipt, done, next=None if done.next is None else encode_cursor(*done.next))


@router.get("/api/v1/executions/{id}/exclusions", Permission.WATCH, errors=(404,))
def list_exclusions(session: SessionDep, id: ExecutionId) -> RunExclusions:
    """Return a run's exclusion patterns, and whether more can be added now."""
    return _exclusions(session, id)


def _exclusions(session: Session, execution_id: int) -> RunExclusions:
    found = run_exclusions(session, execution_id)
    if found is None:
        raise ExecutionNotFound
    return found


class ExclusionsForm(RequestForm, example={"rules": ["/calendar/"]}):
    """Patterns of URLs to exclude."""

    rules: list[Annotated[str, StringConstraints(min_length=1, max_length=2000)]] = Field(
        max_length=MOST_RULES, description="RE2 patterns; they replace those that were added before."
    )


@router.post("/api/v1/executions/{id}/exclusions/preview", Permission.OPERATE, errors=(404, 413, 415))
def preview_exclusions(archive: ArchiveDep, session: SessionDep, id: ExecutionId, form: ExclusionsForm) -> MatchedUrls:
    """Return how many of a run's queued URLs the patterns match; nothing is changed.

    Checks 50,000 URLs at most, and says whether those were all.
    """
    found = matched_urls(session, id, form.rules, goes_on=within(archive.clock, _PREVIEW_S))
    if found is None:
        raise ExecutionNotFound
    return found


@router.put("/api/v1/executions/{id}/exclusions", Permission.OPERATE, errors=(404, 413, 415))
def set_exclusions(archive: ArchiveDep, frontier: FrontierDep, id: ExecutionId, form: ExclusionsForm) -> RunExclusions:
    """Replace the exclusion patterns that were added to a running run.

    The crawl applies them within a second; matching queued pages are not fetched. 400 if it is not running.
    """
    with archive.database.read() as session:
        before = _exclusions(session, id)
    with frontier.open() as runtime:
        return exclude_from_run(runtime.raw_db, runtime.clock, before, form.rules)
