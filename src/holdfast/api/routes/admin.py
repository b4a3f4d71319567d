"""`/api/admin/jobs`: jobs and their newest runs in an older dialect, ad-hoc crawls and imports included.

`/api/admin/audit` and `/metrics` stand here, too.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Any, Literal

from fastapi import Path, Query, Response
from sqlalchemy.orm import Session

from holdfast.api.capture_queries import captured_by, index_progress
from holdfast.api.dependencies import ArchiveDep, MetricsDep, SessionDep, Since, TotalsDep, Until, WorkDep
from holdfast.api.errors import answers
from holdfast.api.late_routes import LateRouter
from holdfast.api.schemas.archive import AuditEventShown, AuditList
from holdfast.api.schemas.base import MAX_ID, Words
from holdfast.api.schemas.lists import ListCursor, decode_cursor, encode_cursor
from holdfast.api.schemas.scheduling import AdminCounts, AdminJob, AdminJobDetail, AdminJobList, AdminSnapshot
from holdfast.audit import AuditFilter, audit_events
from holdfast.jobs.endings import Counts
from holdfast.jobs.specs import shown_config
from holdfast.jobs.store import JobNotFound
from holdfast.jobs.views import listing
from holdfast.jobs.views.dialects import admin_detail, admin_summary
from holdfast.jobs.views.listing import MAX_OFFSET, AdminFilter, ListedJob, WarcTotals
from holdfast.metrics import ArchiveFigures, RecordedFigures, exposition

jobs_router = LateRouter(prefix="/api/admin/jobs", tags=["admin"])
JobId = Annotated[int, Path(ge=0, le=MAX_ID, description="A job's id.", examples=[1])]
Status = Literal[
    "queued",
    "running",
    "retryable",
    "failed",
    "completed",
    "indexing",
    "indexed",
    "index_failed",
    "paused",
    "cancelled",
]
Limit = Annotated[int, Query(ge=1, le=500, description="Rows of a page.")]
Offset = Annotated[int, Query(ge=0, le=MAX_OFFSET, description="Rows to leave out first.")]


@jobs_router.get("", responses=answers(403, 422, 503))
def admin_jobs(
    session: SessionDep,
    source: Annotated[Words | None, Query(description="A source's code.", examples=["example"])] = None,
    status: Annotated[Status | None, Query(description="Only these.")] = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> AdminJobList:
    """Return jobs, newest first."""
    wanted = AdminFilter(source=source, status=status, limit=limit, offset=offset)
    rows, total = listing.list_admin_jobs(session, wanted)
    files = listing.files_of(session, [row.latest.id for row in rows if row.latest is not None])
    none = WarcTotals()
    items = [AdminJob(**admin_summary(row, files.get(row.latest.id if row.latest else 0, none))) for row in rows]
    return AdminJobList(items=items, total=total, limit=limit, offset=offset)


@jobs_router.get("/status-counts", responses=answers(403, 503))
def admin_status_counts(session: SessionDep) -> AdminCounts:
    """Return how many jobs there are of each status."""
    return AdminCounts(counts=listing.admin_counts(session))


@jobs_router.get("/{id}", responses=answers(403, 404, 422, 503))
def admin_job(session: SessionDep, archive: ArchiveDep, id: JobId) -> AdminJobDetail:
    """Return one job with the configuration and the figures of its newest run."""
    row = _job(session, id)
    config = shown_config(row.job, row.source, delay_s=archive.settings.politeness.delay_s)
    if row.latest is None:
        return AdminJobDetail(**admin_detail(row, WarcTotals(), Counts(), config=config, stats={}))
    # Read whole: lists leave out stack and metrics.
    run = listing.execution(session, row.latest.id) or row.latest
    files = listing.files_of(session, [run.id]).get(run.id, WarcTotals())
    counts = listing.counts_of(session, run)
    detail = admin_detail(row, files, counts, config=config, stats=run.metrics)
    return AdminJobDetail(**detail, index_progress=index_progress(session, run.id))


def _job(session: Session, job_id: int) -> ListedJob:
    found = listing.shown_job(session, job_id, scheduled=False)
    if found is None:
        raise JobNotFound
    return found


@jobs_router.get("/{id}/snapshots", responses=answers(403, 404, 422, 503))
def admin_job_snapshots(session: SessionDep, id: JobId, limit: Limit = 50, offset: Offset = 0) -> list[AdminSnapshot]:
    """Return the captures of pages that a job made, its newest run first."""
    _job(session, id)
    return [
        AdminSnapshot(
            id=row.id,
            url=row.url,
            capture_timestamp=row.captured_at,
            status_code=row.status,
            language=row.language,
            title=row.title,
        )
        for row in captured_by(session, job_id=id, limit=limit, offset=offset)
    ]


audit_router = LateRouter(prefix="/api/admin/audit", tags=["admin"])


_DAY = timedelta(days=1)


@audit_router.get("", responses=answers(403, 422, 503))
def audit_log(
    session: SessionDep,
    actor: Annotated[Words | None, Query(description="Who did it.", examples=["admin@127.0.0.1"])] = None,
    action: Annotated[Words | None, Query(description="What was done, or its first word.", examples=["source"])] = None,
    subject: Annotated[Words | None, Query(description="To what.", examples=["report 1"])] = None,
    since: Since = None,
    until: Until = None,
    before: Annotated[int | None, Query(ge=0, le=MAX_ID, description="`nextBefore` of the answer before.")] = None,
    cursor: ListCursor = None,
    limit: Annotated[int, Query(ge=1, le=500, description="Events of an answer.")] = 50,
) -> AuditList:
    """Return what was done, newest first; ask again with `cursor` set to `next` until that is null."""
    place = decode_cursor(cursor, int)
    wanted = AuditFilter(
        actor=actor,
        action=action,
        subject=subject,
        since=None if since is None else datetime.combine(since, time(), UTC),
        # The last day counts whole; behind the last of all days there is none.
        until=None if until in (None, date.max) else datetime.combine(until, time(), UTC) + _DAY,
        before=int(place[0]) if place else before,
        limit=limit,
    )
    rows = audit_events(session, wanted)
    items = [
        AuditEventShown(
            id=row.id, at=row.at, actor=row.actor, action=row.action, subject=row.subject, detail=row.detail
        )
        for row in rows
    ]
    last = rows[-1].id if len(rows) == limit else None
    return AuditList(items=items, next_before=last, next=None if last is None else encode_cursor(last), limit=limit)


metrics_router = LateRouter(tags=["admin"])
_TEXT: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {"text/plain": {"example": "holdfast_snapshots_total 26.0\n"}},
        "description": "Text format 0.0.4.",
    }
}


@metrics_router.get("/metrics", response_class=Response, responses=_TEXT | answers(403, 500, 503))
def metrics(session: SessionDep, totals: TotalsDep, work: WorkDep, server: MetricsDep) -> Response:
    """Return the archive's figures and what the processes of this server counted; what takes long is counted beside."""
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
