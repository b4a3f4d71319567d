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
from holdfast.api.errors import ExecutionNotFound
from holdfast.api.routes.jobs import JobId, Limit, Offset, shown
from holdfast.api.routing import LazyRouter
from holdfast.api.schemas.base import MAX_ID
from holdfast.auth.roles import Permission
from holdfast.db.engine import Database
from holdfast.db.models import Execution, LogLine
from holdfast.errors import NotFound
from holdfast.gzip_streams import gzipped
from holdfast.jobs.journal import REPLAYED, all_lines, entry, last_lines, read_lines
from holdfast.jobs.records import LogList, LogView, log_entry, log_key, log_record
from holdfast.jobs.specs import JobRefused
from holdfast.jobs.store import JobNotFound
from holdfast.jobs.views import listing
from holdfast.jobs.views.listing import DEFAULT_LIMIT, MAX_OFFSET, bounded_limit

router = LazyRouter(tags=["logs"])
_FILE: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/gzip": {}}, "description": "JSON lines, compressed: job-<id>-exec-<n>.log.gz"}
}
_LINES = 5000
# Number of lines that are compressed and sent together.
_PIECE = 500
Which = Annotated[str, Query(max_length=20, description="`latest`, or the number of an execution.")]
Level = Annotated[Literal["debug", "info", "warning", "error"], Query(description="Least level of the lines.")]
Count = Annotated[int, Query(ge=1, le=_LINES, description="Lines of one answer.")]


@router.get("/api/v1/jobs/{id}/logs", Permission.WATCH, errors=(404,))
def job_logs(session: SessionDep, id: JobId, limit: Limit = DEFAULT_LIMIT, offset: Offset = 0) -> LogList:
    """Return the runs of a job that have a log, newest first."""
    shown(session, id)
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
    if listing.shown_job(session, job_id, scheduled=False) is None:
        raise JobNotFound
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


@router.get("/api/v1/jobs/{id}/logs/view", Permission.WATCH, errors=(404,))
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


@router.get("/api/v1/jobs/{id}/logs/tail", Permission.WATCH, errors=(404,))
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


@router.get(
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
