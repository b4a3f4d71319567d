"""The runs of a job, and one run of any job (NC-008); events about jobs as rows."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query

from holdfast.api.deps import SessionDep
from holdfast.api.errors import answers
from holdfast.api.problems import ExecutionNotFound
from holdfast.api.roles import ADMIN
from holdfast.api.routes.jobs import JobId, Limit, Offset, shown
from holdfast.api.schemas.forms import MAX_ID
from holdfast.api.schemas.jobs import EventList, EventShown, ExecutionList, ExecutionShown
from holdfast.jobs.journal.events import last_event, payload, read_events
from holdfast.jobs.listing import queries
from holdfast.jobs.listing.shapes import execution_shape
from holdfast.jobs.listing.values import DEFAULT_LIMIT, MAX_OFFSET, bounded_limit

router = APIRouter(tags=["jobs"], dependencies=[ADMIN])
_READ = answers(400, 403, 404, 503)
_EVENTS = 1000
ExecutionId = Annotated[int, Path(ge=0, le=MAX_ID, description="An execution's id.", examples=[1])]


@router.get("/api/v1/jobs/{id}/executions", responses=_READ)
def job_executions(session: SessionDep, id: JobId, limit: Limit = DEFAULT_LIMIT, offset: Offset = 0) -> ExecutionList:
    """Return a job's runs, newest first."""
    shown(session, id)
    limit, offset = bounded_limit(limit), min(max(offset, 0), MAX_OFFSET)
    rows, total = queries.executions_of(session, job_id=id, limit=limit, offset=offset)
    return ExecutionList(executions=[ExecutionShown(**execution_shape(row)) for row in rows], total=total,
                         limit=limit, offset=offset)  # fmt: skip


@router.get("/api/v1/executions/{id}", responses=_READ)
def execution_detail(session: SessionDep, id: ExecutionId) -> ExecutionShown:
    """Return one run, of an ad-hoc crawl or an import too; what it counts while it runs is a few seconds old."""
    row = queries.execution(session, id)
    if row is None:
        raise ExecutionNotFound
    return ExecutionShown(**execution_shape(row, queries.pages_of(session, row)))


@router.get("/api/v1/events", responses=_READ)
def events(
    session: SessionDep,
    after: Annotated[int, Query(ge=0, le=MAX_ID, description="The last event that was seen.")] = 0,
    job_id: Annotated[int | None, Query(ge=0, le=MAX_ID, description="Of this job only.", examples=[1])] = None,
    limit: Annotated[int, Query(ge=1, le=_EVENTS, description="Events of an answer.")] = 100,
) -> EventList:
    """Return what happened to jobs after an event, oldest first: ask again with `next_after` to follow."""
    newest = last_event(session)
    rows = read_events(session, after=after, job_id=job_id, limit=limit)
    told = [EventShown(id=row.id, event=row.name, data=payload(row)) for row in rows]
    # With fewer than asked for, everything up to the newest was looked at: other jobs' events are not asked for again.
    seen = max(after, newest) if len(rows) < limit else rows[-1].id
    return EventList(events=told, next_after=max(seen, rows[-1].id) if rows else seen, last_id=newest)
