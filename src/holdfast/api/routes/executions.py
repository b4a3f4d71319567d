"""`/api/v1/executions/{id}`: the account of a run, and the rules that an operator adds while it runs."""

from __future__ import annotations

from contextlib import AbstractContextManager, closing
from typing import Annotated

from fastapi import Query, Request, Response
from sqlalchemy.orm import Session
from starlette.responses import StreamingResponse

from holdfast.api.dependencies import ArchiveDep, SessionDep
from holdfast.api.errors import ExecutionNotFound, answers
from holdfast.api.heavy import Streamed, heavily
from holdfast.api.job_dependencies import FrontierDep, JobServiceDep, RunReportsDep
from holdfast.api.late_routes import LateRouter
from holdfast.api.routes.frontier import PORTION_S, adding_urls, within
from holdfast.api.routes.jobs import ExecutionId
from holdfast.api.schemas.base import MAX_ID, Words
from holdfast.api.schemas.crawler import AddedTo, RunRequeueForm, RunRequeueReceipt
from holdfast.api.schemas.executions import ExclusionsForm, ExclusionsPreview, ExclusionsShown, RunReport
from holdfast.api.schemas.lists import decode_cursor, encode_cursor
from holdfast.db import connect
from holdfast.db.raw import RawDatabase
from holdfast.jobs.administration.requeueing import requeue_failed
from holdfast.jobs.administration.run_exclusions import (
    RunExclusions,
    exclude_from_run,
    matched_urls,
    run_exclusions,
)
from holdfast.jobs.execution_queries import executions_of
from holdfast.jobs.views.run_urls import csv_pieces, run_urls
from holdfast.jobs.views.status import read_status
from holdfast.sources.queries import find_source

router = LateRouter(tags=["jobs"])
_PREVIEW_S = 3.0


@router.get("/api/v1/executions/{id}/report", responses=answers(400, 403, 404, 503), response_model=RunReport)
async def execution_report(request: Request, reports: RunReportsDep, id: ExecutionId) -> Response:
    """Return the account of a run: its addresses by outcome, reason, status, type, host and depth, and what was left
    out."""

    def work() -> Response:
        # All attempts of a run are counted: on a thread for heavy work.
        return Response(RunReport.of(reports.read(id)).model_dump_json(), media_type="application/json")

    return await heavily(request, work)


@router.get("/api/v1/failed-urls", responses=answers(400, 403, 404, 422, 503), response_class=StreamingResponse)
async def failed_urls(
    request: Request,
    archive: ArchiveDep,
    source: Annotated[Words | None, Query(description="Code of a source: only its runs.")] = None,
    execution: Annotated[int | None, Query(ge=0, le=MAX_ID, description="Only this run.")] = None,
    reason: Annotated[Words | None, Query(description="Only with this reason, such as `http_404`.")] = None,
) -> Response:
    """Return the addresses that failed as CSV, the newest run first; those of all runs without a source or a run."""

    def opened() -> AbstractContextManager[RawDatabase]:
        # For each slice: another thread may read the next one.
        return closing(connect(archive.database.url))

    def work() -> Streamed:
        with opened() as raw_db, archive.database.read() as session:
            if source is not None:
                find_source(session, source)
            if execution is None:
                with raw_db.read() as tx:
                    runs = executions_of(tx, source)
            else:
                # A run that went on with the frontier of another is accounted for there.
                runs = [read_status(raw_db, archive.clock, execution).frontier_id]
        pieces = csv_pieces(run_urls(opened, runs, failed=True, reason=reason))
        headers = {"Content-Disposition": 'attachment; filename="failed-urls.csv"', "Cache-Control": "no-store"}
        return Streamed(map(str.encode, pieces), "text/csv; charset=utf-8", headers)

    return await heavily(request, work)


@router.post("/api/v1/executions/{id}/requeue", responses=answers(400, 403, 404, 413, 415, 422, 503))
def requeue_failed_pages(
    archive: ArchiveDep, job_service: JobServiceDep, frontier: FrontierDep, id: ExecutionId, form: RunRequeueForm
) -> RunRequeueReceipt:
    """Queue the pages again that failed in a run, by the rules of `/api/frontier/requeue`; without `apply`, only count.

    They join the run of their source that is under way, wait for its next one, or get a job of their own. A request
    ends after a few seconds: repeat it with `cursor` set to the `next` of the response until `next` is null.
    """
    place = decode_cursor(form.cursor, int, int, int)
    after = None if place is None else (int(place[0]), int(place[1]), int(place[2]))
    goes_on = within(archive.clock, PORTION_S)
    with adding_urls(archive, job_service, frontier) as adding:
        done = requeue_failed(adding, id, apply=form.apply, after=after, goes_on=goes_on)
    return RunRequeueReceipt(
        matched=done.matched,
        added=done.added,
        skipped=done.skipped,
        places=[AddedTo.of(one) for one in done.places],
        next=None if done.next is None else encode_cursor(*done.next),
    )


@router.get("/api/v1/executions/{id}/exclusions", responses=answers(400, 403, 404, 503))
def list_exclusions(session: SessionDep, id: ExecutionId) -> ExclusionsShown:
    """Return the patterns by which a run leaves addresses out, and whether more can be added now."""
    return ExclusionsShown.of(_exclusions(session, id))


def _exclusions(session: Session, execution_id: int) -> RunExclusions:
    found = run_exclusions(session, execution_id)
    if found is None:
        raise ExecutionNotFound
    return found


@router.post("/api/v1/executions/{id}/exclusions/preview", responses=answers(400, 403, 404, 413, 415, 422, 503))
def preview_exclusions(
    archive: ArchiveDep, session: SessionDep, id: ExecutionId, form: ExclusionsForm
) -> ExclusionsPreview:
    """Return how many of a run's queued addresses patterns match; nothing is changed.

    It looks at 50,000 at most and says whether that was all.
    """
    found = matched_urls(session, id, form.rules, goes_on=within(archive.clock, _PREVIEW_S))
    if found is None:
        raise ExecutionNotFound
    return ExclusionsPreview.of(found)


@router.put("/api/v1/executions/{id}/exclusions", responses=answers(400, 403, 404, 413, 415, 422, 503))
def set_exclusions(
    archive: ArchiveDep, frontier: FrontierDep, id: ExecutionId, form: ExclusionsForm
) -> ExclusionsShown:
    """Let a run under way leave out what patterns match, in the place of those that were added before.

    It hears of them within a second; what is queued and matches is not asked for any more. 400 if it does not run.
    """
    with archive.database.read() as session:
        before = _exclusions(session, id)
    with frontier.open() as runtime:
        return ExclusionsShown.of(exclude_from_run(runtime.raw_db, runtime.clock, before, form.rules))
