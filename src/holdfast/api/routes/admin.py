"""`/api/admin/jobs`: jobs and their newest runs in an older format, including ad-hoc crawls and imports.

Also serves `/api/admin/audit` and `/metrics`.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Any

from fastapi import Path, Query, Response

from holdfast.api.dependencies import ArchiveDep, MetricsDep, SessionDep, Since, TotalsDep, Until, WorkDep
from holdfast.api.routing import LazyRouter
from holdfast.api.schemas.base import MAX_ID, Words
from holdfast.api.schemas.lists import ListCursor, decode_id, encode_cursor
from holdfast.audit import AuditRecord, audit_events
from holdfast.auth.roles import Permission
from holdfast.index.capture_queries import captured_by, index_progress
from holdfast.jobs.admin_records import (
    AdminCounts,
    AdminJobDetail,
    AdminJobList,
    AdminSnapshot,
    admin_detail,
    admin_job,
)
from holdfast.jobs.endings import Counts
from holdfast.jobs.specs import shown_config
from holdfast.jobs.views import listing
from holdfast.jobs.views.listing import MAX_OFFSET, AdminState
from holdfast.metrics import ArchiveFigures, RecordedFigures, exposition
from holdfast.records import Operator, from_row, record

jobs_router = LazyRouter(prefix="/api/admin/jobs", tags=["admin"])
JobId = Annotated[int, Path(ge=0, le=MAX_ID, description="A job's id.", examples=[1])]
Limit = Annotated[int, Query(ge=1, le=500, description="Rows of a page.")]
Offset = Annotated[int, Query(ge=0, le=MAX_OFFSET, description="Rows to skip.")]


@jobs_router.get("", Permission.WATCH)
def admin_jobs(
    session: SessionDep,
    source: Annotated[Words | None, Query(description="A source's code.", examples=["example"])] = None,
    status: Annotated[AdminState | None, Query(description="Only these.")] = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> AdminJobList:
    """Return jobs, newest first."""
    rows, total = listing.list_admin_jobs(session, source=source, status=status, limit=limit, offset=offset)
    files = listing.files_of(session, [row.latest.id for row in rows if row.latest is not None])
    items = [admin_job(row, files.get(row.latest.id if row.latest else 0, (0, 0))) for row in rows]
    return AdminJobList(items=items, total=total, limit=limit, offset=offset)


@jobs_router.get("/status-counts", Permission.WATCH)
def admin_status_counts(session: SessionDep) -> AdminCounts:
    """Return the number of jobs by status."""
    return AdminCounts(counts=listing.admin_counts(session))


@jobs_router.get("/{id}", Permission.WATCH, errors=(404,), name="admin_job")
def show_admin_job(session: SessionDep, archive: ArchiveDep, id: JobId) -> AdminJobDetail:
    """Return one job with the configuration and figures of its newest run."""
    row = listing.shown_job(session, id, scheduled=False)
    config = shown_config(row.job, row.source, delay_s=archive.settings.politeness.delay_s)
    if row.latest is None:
        return admin_detail(row, (0, 0), Counts(), config=config, stats={})
    # Read the whole row: lists omit stack and metrics.
    run = listing.execution(session, row.latest.id) or row.latest
    files = listing.files_of(session, [run.id]).get(run.id, (0, 0))
    counts = listing.counts_of(session, run)
    progress = index_progress(session, run.id)
    return admin_detail(row, files, counts, config=config, stats=run.metrics, index_progress=progress)


@jobs_router.get("/{id}/snapshots", Permission.WATCH, errors=(404,))
def admin_job_snapshots(session: SessionDep, id: JobId, limit: Limit = 50, offset: Offset = 0) -> list[AdminSnapshot]:
    """Return the page captures that a job made, its newest run first."""
    listing.shown_job(session, id, scheduled=False)
    return [
        from_row(AdminSnapshot, row, capture_timestamp=row.captured_at, status_code=row.status)
        for row in captured_by(session, job_id=id, limit=limit, offset=offset)
    ]


audit_router = LazyRouter(prefix="/api/admin/audit", tags=["admin"])


_DAY = timedelta(days=1)


@record
class AuditList:
    """A page of the audit log, newest first."""

    items: Operator[list[AuditRecord]]
    next: Operator[str | None]
    """Send it as `cursor` to continue; null at the end."""
    limit: Operator[int]
    next_before: Operator[int | None]
    """The same for `before`, for older clients."""


@audit_router.get("", Permission.ADMINISTER)
def audit_log(
    session: SessionDep,
    actor: Annotated[Words | None, Query(description="Actor.", examples=["admin@127.0.0.1"])] = None,
    action: Annotated[Words | None, Query(description="Action, or its first word.", examples=["source"])] = None,
    subject: Annotated[Words | None, Query(description="Subject.", examples=["report 1"])] = None,
    since: Since = None,
    until: Until = None,
    before: Annotated[int | None, Query(ge=0, le=MAX_ID, description="`nextBefore` of the previous response.")] = None,
    cursor: ListCursor = None,
    limit: Annotated[int, Query(ge=1, le=500, description="Events of a response.")] = 50,
) -> AuditList:
    """Return events, newest first; repeat with `cursor` set to `next` until that is null."""
    items = audit_events(
        session,
        actor=actor,
        action=action,
        subject=subject,
        since=None if since is None else datetime.combine(since, time(), UTC),
        # Include the whole last day; there is no day after `date.max`.
        until=None if until in (None, date.max) else datetime.combine(until, time(), UTC) + _DAY,
        before=before if cursor is None else decode_id(cursor),
        limit=limit,
    )
    last = items[-1].id if len(items) == limit else None
    return AuditList(items=items, next_before=last, next=None if last is None else encode_cursor(last), limit=limit)


metrics_router = LazyRouter(tags=["admin"])
_TEXT: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {"text/plain": {"example": "holdfast_snapshots_total 26.0\n"}},
        "description": "Text format 0.0.4.",
    }
}


@metrics_router.get("/metrics", Permission.WATCH, response_class=Response, responses=_TEXT)
def metrics(session: SessionDep, totals: TotalsDep, work: WorkDep, server: MetricsDep) -> Response:
    """Return the metrics of the archive and of this server's processes; slow counts come from the background."""
    found, done = totals.read(session), work.read(session)
    figures = ArchiveFigures(
        jobs={"status": done.jobs, "cleanup_status": done.cleanups},
        snapshots={source.code: source.snapshots for source in found.sources},
        pages=found.pages,
        newest_page=found.latest.timestamp() if found.latest else 0.0,
        storage=done.storage,
        scheduler=done.scheduler,
    )
    text = exposition(server, figures, RecordedFigures(done.recorded))
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")
