"""Runs: their reports (`/api/v1/executions/{id}`), rules that an operator adds while they run, and their logs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing
from itertools import islice
from typing import Annotated, Any, Literal

from fastapi import Query, Request, Response
from pydantic import Field, StringConstraints
from sqlalchemy.orm import Session
from starlette.responses import StreamingResponse

from holdfast.api.dependencies import ArchiveDep, FrontierDep, JobServiceDep, RunReportsDep, SessionDep
from holdfast.api.heavy import Streamed, heavily, heavy_result
from holdfast.api.routes.frontier import PORTION_S, adding_urls, within
from holdfast.api.routes.jobs import ExecutionId, JobId, Limit, Offset
from holdfast.api.routing import LazyRouter
from holdfast.api.schemas.base import MAX_ID, RequestForm, Words
from holdfast.api.schemas.lists import decode_ints, encode_cursor
from holdfast.auth.roles import Permission
from holdfast.db import connect
from holdfast.db.engine import Database
from holdfast.db.models import Execution, LogLine
from holdfast.db.raw import RawDatabase
from holdfast.errors import NotFound
from holdfast.frontier.actions import RequeueReceipt, requeue_failed
from holdfast.gzip_streams import gzipped
from holdfast.jobs.administration.run_exclusions import (
    MOST_RULES,
    MatchedUrls,
    RunExclusions,
    exclude_from_run,
    matched_urls,
    run_exclusions,
)
from holdfast.jobs.execution_queries import executions_of
from holdfast.jobs.journal import REPLAYED, all_lines, entry, last_lines, read_lines
from holdfast.jobs.records import LogList, LogView, log_entry, log_key, log_record
from holdfast.jobs.specs import JobRefused
from holdfast.jobs.store import ExecutionNotFound
from holdfast.jobs.views import listing
from holdfast.jobs.views.listing import DEFAULT_LIMIT, MAX_OFFSET, bounded_limit
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
    return run_exclusions(session, id)


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
    return matched_urls(session, id, form.rules, goes_on=within(archive.clock, _PREVIEW_S))


@router.put("/api/v1/executions/{id}/exclusions", Permission.OPERATE, errors=(404, 413, 415))
def set_exclusions(archive: ArchiveDep, frontier: FrontierDep, id: ExecutionId, form: ExclusionsForm) -> RunExclusions:
    """Replace the exclusion patterns that were added to a running run.

    The crawl applies them within a second; matching queued pages are not fetched. 400 if it is not running.
    """
    with archive.database.read() as session:
        before = run_exclusions(session, id)
    with frontier.open() as runtime:
        return exclude_from_run(runtime.raw_db, runtime.clock, before, form.rules)


logs_router = LazyRouter(tags=["logs"])
_FILE: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/gzip": {}}, "description": "JSON lines, compressed: job-<id>-exec-<n>.log.gz"}
}
_LINES = 5000
# Number of lines that are compressed and sent together.
_PIECE = 500
Which = Annotated[str, Query(max_length=20, description="`latest`, or the number of an execution.")]
Level = Annotated[Literal["debug", "info", "warning", "error"], Query(description="Least level of the lines.")]
Count = Annotated[int, Query(ge=1, le=_LINES, description="Lines of one answer.")]


@logs_router.get("/api/v1/jobs/{id}/logs", Permission.WATCH, errors=(404,))
def job_logs(session: SessionDep, id: JobId, limit: Limit = DEFAULT_LIMIT, offset: Offset = 0) -> LogList:
    """Return the runs of a job that have a log, newest first."""
    listing.shown_job(session, id)
    limit, offset = bounded_limit(limit), min(max(offset, 0), MAX_OFFSET)
    rows, total = listing.executions_of(session, job_id=id, limit=limit, offset=offset)
    newest = listing.numbered_execution(session, job_id=id, number=None)
    return LogList(
        job_id=id,
        executions=[log_record(row) for row in rows],
        has_live_logs=newest is not None and newest.state == "running",
        stream_v2_available=True,
        total=total,
        limit=limit,
        offset=offset,
    )


def _run(session: Session, job_id: int, which: str) -> Execution:
    """Return a run by number or `latest`; raise JobRefused if it is neither, NotFound if there is no such run."""
    listing.shown_job(session, job_id, scheduled=False)
    # A number that no column can store would be a database error instead of a bad request.
    if which != "latest" and not (which.isascii() and which.isdigit() and len(which) < 10):
        raise JobRefused("execution", "write `latest` or the number of an execution")
    found = listing.numbered_execution(session, job_id=job_id, number=None if which == "latest" else int(which))
    if found is None:
        raise ExecutionNotFound
    return found


def execution_of(session: Session, job_id: int, which: str, *, must_exist: bool = True) -> bool:
    """Return whether the run has ended for good, as only a numbered one can; raises JobRefused or NotFound.

    With `must_exist` false, a job without runs is valid, too.
    """
    try:
        run = _run(session, job_id, which)
    except ExecutionNotFound:
        if must_exist:
            raise
        return False
    return which != "latest" and run.finished_at is not None


@logs_router.get("/api/v1/jobs/{id}/logs/view", Permission.WATCH, errors=(404,))
def view_log(
    session: SessionDep,
    id: JobId,
    execution: Which = "latest",
    after: Annotated[int, Query(ge=0, le=MAX_ID, description="Lines after the one with this id.")] = 0,
    level: Level = "debug",
    limit: Count = 1000,
) -> LogView:
    """Return a log from its start, or after a given line; `next_after` leads to the next page."""
    run = _run(session, id, execution)
    return _view(run, read_lines(session, run.id, after=after, level=level, limit=limit), after)


@logs_router.get("/api/v1/jobs/{id}/logs/tail", Permission.WATCH, errors=(404,))
def tail_log(
    session: SessionDep,
    id: JobId,
    execution: Which = "latest",
    after: Annotated[
        int | None, Query(ge=0, le=MAX_ID, description="The last line that was seen.", examples=[7])
    ] = None,
    level: Level = "debug",
    limit: Count = REPLAYED,
) -> LogView:
    """Return the newest lines of a log; while the job runs, repeat with `after` to get new lines."""
    run = _run(session, id, execution)
    if after is None:
        lines = last_lines(session, run.id, level=level, limit=limit)
    else:
        lines = read_lines(session, run.id, after=after, level=level, limit=limit)
    return _view(run, lines, after or 0)


def _view(run: Execution, lines: list[LogLine], after: int) -> LogView:
    return LogView(
        job_id=run.job_id,
        execution_id=run.id,
        execution_number=run.number,
        status=run.state,
        lines=[log_entry(line, job_id=run.job_id) for line in lines],
        line_count=len(lines),
        total_lines=run.log_lines if log_key(run) else 0,
        dropped_lines=run.log_dropped,
        next_after=lines[-1].id if lines else after,
    )


@logs_router.get(
    "/api/v1/jobs/{id}/logs/download",
    Permission.WATCH,
    has_head=True,
    errors=(404,),
    response_class=StreamingResponse,
    responses=_FILE,
)
def download_log(request: Request, archive: ArchiveDep, id: JobId, execution: Which = "latest") -> Response:
    """Return a whole log as a compressed file, one JSON object per line; 404 if it has none, or it was deleted.

    While the job runs, it has the lines written so far. It is compressed while it is sent, so ranges are
    unsupported.
    """
    # The transaction only looks up the run: lines are read later, while they are sent, with no transaction open.
    with archive.database.read() as session:
        run = _run(session, id, execution)
    if log_key(run) is None:
        raise NotFound(f"execution {run.number} of job {id} has no log, or none any more")
    name = f"job-{id}-exec-{run.number}.log.gz"
    headers = {
        "Content-Disposition": f'attachment; filename="{name}"',
        "Cache-Control": "no-store",
        "Accept-Ranges": "none",
    }
    if request.method == "HEAD":
        return Response(headers=headers, media_type="application/gzip")
    return StreamingResponse(_packed(archive.database, run), headers=headers, media_type="application/gzip")


def _packed(database: Database, run: Execution) -> Iterator[bytes]:
    """Yield a log as one gzip stream, a few hundred lines at a time."""
    lines = all_lines(database, run.id)

    def pieces() -> Iterator[bytes]:
        while piece := list(islice(lines, _PIECE)):
            entries = (json.dumps(entry(line, job_id=run.job_id), ensure_ascii=False) for line in piece)
            yield "".join(f"{line}\n" for line in entries).encode("utf-8", "replace")

    return gzipped(pieces())
