"""`/api/v1/jobs/{id}/logs`: the logs of a job's runs, read while they run or downloaded whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any, Literal

from fastapi import Query, Request
from fastapi.responses import Response, StreamingResponse
from sqlalchemy.orm import Session

from holdfast.api.dependencies import ArchiveDep, SessionDep
from holdfast.api.errors import ExecutionNotFound, answers
from holdfast.api.late_routes import LateRouter
from holdfast.api.routes.jobs import JobId, Limit, Offset, shown
from holdfast.api.schemas.base import MAX_ID
from holdfast.api.schemas.jobs import LogEntry, LogList, LogOfExecution, LogView
from holdfast.db.engine import Database
from holdfast.db.models import Execution, LogLine
from holdfast.errors import NotFound
from holdfast.gzip_streams import gzipped
from holdfast.jobs.journal import REPLAYED, all_lines, entry, last_lines, read_lines
from holdfast.jobs.specs import JobRefused
from holdfast.jobs.store import JobNotFound
from holdfast.jobs.views import listing
from holdfast.jobs.views.job_view import log_key
from holdfast.jobs.views.listing import DEFAULT_LIMIT, MAX_OFFSET, bounded_limit

router = LateRouter(tags=["logs"])
_READ = answers(400, 403, 404, 503)
_FILE: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/gzip": {}}, "description": "JSON lines, compressed: job-<id>-exec-<n>.log.gz"}
}
_LINES = 5000
# Lines that are compressed and sent at once.
_PIECE = 500
Which = Annotated[str, Query(max_length=20, description="`latest`, or the number of an execution.")]
Level = Annotated[Literal["debug", "info", "warning", "error"], Query(description="Least level of the lines.")]
Count = Annotated[int, Query(ge=1, le=_LINES, description="Lines of one answer.")]


@router.get("/api/v1/jobs/{id}/logs", responses=_READ)
def job_logs(session: SessionDep, id: JobId, limit: Limit = DEFAULT_LIMIT, offset: Offset = 0) -> LogList:
    """Return which runs of a job have a log, newest first."""
    shown(session, id)
    limit, offset = bounded_limit(limit), min(max(offset, 0), MAX_OFFSET)
    rows, total = listing.executions_of(session, job_id=id, limit=limit, offset=offset)
    newest = listing.numbered_execution(session, job_id=id, number=None)
    return LogList(
        job_id=id,
        executions=[_available(row) for row in rows],
        has_live_logs=newest is not None and newest.state == "running",
        stream_v2_available=True,
        total=total,
        limit=limit,
        offset=offset,
    )


def _available(run: Execution) -> LogOfExecution:
    key = log_key(run)
    return LogOfExecution(
        execution_id=run.id,
        execution_number=run.number,
        status=run.state,
        started_at=run.started_at,
        completed_at=run.finished_at,
        log_available=key is not None,
        log_object_key=key,
    )


def _run(session: Session, job_id: int, which: str) -> Execution:
    """Return the run that is asked for; JobRefused if that is no number, NotFound if there is none."""
    if listing.shown_job(session, job_id, scheduled=False) is None:
        raise JobNotFound
    # A number that no column holds would be an error of the database, not of the request.
    if which != "latest" and not (which.isascii() and which.isdigit() and len(which) < 10):
        raise JobRefused("execution", "write `latest` or the number of an execution")
    found = listing.numbered_execution(session, job_id=job_id, number=None if which == "latest" else int(which))
    if found is None:
        raise ExecutionNotFound
    return found


def execution_of(session: Session, job_id: int, which: str, *, must_exist: bool = True) -> bool:
    """Return whether the run that is asked for is over for good, as a numbered one may be; JobRefused, NotFound.

    With `must_exist` false a job that has not run yet is right, too.
    """
    try:
        run = _run(session, job_id, which)
    except ExecutionNotFound:
        if must_exist:
            raise
        return False
    return which != "latest" and run.finished_at is not None


@router.get("/api/v1/jobs/{id}/logs/view", responses=_READ)
def view_log(
    session: SessionDep,
    id: JobId,
    execution: Which = "latest",
    after: Annotated[int, Query(ge=0, le=MAX_ID, description="Lines after the one with this id.")] = 0,
    level: Level = "debug",
    limit: Count = 1000,
) -> LogView:
    """Return a log from its beginning, or from a line on; `next_after` leads to the next page."""
    run = _run(session, id, execution)
    return _view(run, read_lines(session, run.id, after=after, level=level, limit=limit), after)


@router.get("/api/v1/jobs/{id}/logs/tail", responses=_READ)
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
    """Return the newest lines of a log; ask again with `after` for what has come since, while the job runs."""
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
        lines=[LogEntry(id=line.id, **entry(line, job_id=run.job_id)) for line in lines],
        line_count=len(lines),
        total_lines=run.log_lines if log_key(run) else 0,
        dropped_lines=run.log_dropped,
        next_after=lines[-1].id if lines else after,
    )


@router.head("/api/v1/jobs/{id}/logs/download", include_in_schema=False, name="download_log_head")
@router.get("/api/v1/jobs/{id}/logs/download", response_class=StreamingResponse, responses=_FILE | _READ)
def download_log(request: Request, archive: ArchiveDep, id: JobId, execution: Which = "latest") -> Response:
    """Return a whole log as a compressed file, one JSON object a line; 404 if it has none, or none any more.

    While the job runs it ends with what was written by then. It is packed as it is sent: parts cannot be asked for.
    """
    # Only to find the run: lines are read while they are sent, and no transaction is open meanwhile.
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
            told = (json.dumps(entry(line, job_id=run.job_id), ensure_ascii=False) for line in piece)
            yield "".join(f"{line}\n" for line in told).encode("utf-8", "replace")

    return gzipped(pieces())
