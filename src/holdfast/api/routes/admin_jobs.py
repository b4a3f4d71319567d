"""`/api/admin/jobs`: jobs and their newest runs in the words of document 000, ad-hoc crawls and imports included."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query
from sqlalchemy.orm import Session

from holdfast.api.captured.queries import captured_by
from holdfast.api.deps import SessionDep
from holdfast.api.errors import answers
from holdfast.api.roles import ADMIN
from holdfast.api.schemas.admin_jobs import AdminCounts, AdminJob, AdminJobDetail, AdminJobList, AdminSnapshot
from holdfast.api.schemas.forms import MAX_ID, Words
from holdfast.jobs.listing import queries
from holdfast.jobs.listing.shapes import admin_detail, admin_summary
from holdfast.jobs.listing.values import MAX_OFFSET, AdminFilter, Files, ListedJob, Pages
from holdfast.jobs.specs import JobNotFound

router = APIRouter(prefix="/api/admin/jobs", tags=["admin"], dependencies=[ADMIN])
JobId = Annotated[int, Path(ge=0, le=MAX_ID, description="A job's id.", examples=[1])]
Status = Literal[
    "queued", "running", "retryable", "failed", "completed", "indexing", "indexed", "index_failed", "paused",
    "cancelled",
]  # fmt: skip
Limit = Annotated[int, Query(ge=1, le=500, description="Rows of a page.")]
Offset = Annotated[int, Query(ge=0, le=MAX_OFFSET, description="Rows to leave out first.")]


@router.get("", responses=answers(403, 422, 503))
def admin_jobs(
    session: SessionDep,
    source: Annotated[Words | None, Query(description="A source's code.", examples=["example"])] = None,
    status: Annotated[Status | None, Query(description="Only these.")] = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> AdminJobList:
    """Return jobs, newest first (HA-081)."""
    wanted = AdminFilter(source=source, status=status, limit=limit, offset=offset)
    rows, total = queries.list_admin_jobs(session, wanted)
    files = queries.files_of(session, [row.latest.id for row in rows if row.latest is not None])
    items = [AdminJob(**admin_summary(row, files.get(row.latest.id if row.latest else 0, Files()))) for row in rows]
    return AdminJobList(items=items, total=total, limit=limit, offset=offset)


@router.get("/status-counts", responses=answers(403, 503))
def admin_status_counts(session: SessionDep) -> AdminCounts:
    """Return how many jobs there are of each status (HA-083)."""
    return AdminCounts(counts=queries.admin_counts(session))


@router.get("/{id}", responses=answers(403, 404, 422, 503))
def admin_job(session: SessionDep, id: JobId) -> AdminJobDetail:
    """Return one job with the configuration and the figures of its newest run (HA-082)."""
    row = _job(session, id)
    if row.latest is None:
        return AdminJobDetail(**admin_detail(row, Files(), Pages(), {}))
    run = queries.execution(session, row.latest.id) or row.latest
    files = queries.files_of(session, [run.id]).get(run.id, Files())
    return AdminJobDetail(**admin_detail(row, files, queries.pages_of(session, run), run.metrics))


def _job(session: Session, job_id: int) -> ListedJob:
    found = queries.shown_job(session, job_id, scheduled=False)
    if found is None:
        raise JobNotFound
    return found


@router.get("/{id}/snapshots", responses=answers(403, 404, 422, 503))
def admin_job_snapshots(session: SessionDep, id: JobId, limit: Limit = 50, offset: Offset = 0) -> list[AdminSnapshot]:
    """Return the captures of pages that a job made, its newest run first (HA-084)."""
    _job(session, id)
    return [
        AdminSnapshot(id=row.id, url=row.url, capture_timestamp=row.captured_at, status_code=row.status,
                      language=row.language, title=row.title)
        for row in captured_by(session, job_id=id, limit=limit, offset=offset)
    ]  # fmt: skip
