"""Problem reports as whoever runs the archive reads them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query

from holdfast.api.deps import SessionDep
from holdfast.api.errors import answers
from holdfast.api.roles import ADMIN
from holdfast.api.schemas.reports import ReportDetail, ReportList
from holdfast.db.models import IssueReport
from holdfast.errors import NotFound
from holdfast.feedback import queries
from holdfast.feedback.reports import Category, ReportStatus

router = APIRouter(prefix="/api/admin/reports", tags=["admin"], dependencies=[ADMIN])
ReportId = Annotated[int, Path(ge=0, lt=1 << 63, description="A report's id.", examples=[1])]


@router.get("", responses=answers(403, 422, 503))
def list_reports(
    session: SessionDep,
    status: Annotated[ReportStatus | None, Query(description="Only these.", examples=["new"])] = None,
    category: Annotated[Category | None, Query(description="Only these.", examples=["takedown"])] = None,
    limit: Annotated[int, Query(ge=1, le=500, description="Rows of a page.")] = 50,
    offset: Annotated[int, Query(ge=0, le=1_000_000, description="Rows to leave out first.")] = 0,
) -> ReportList:
    """Return reports, newest first."""
    rows, total = queries.reports(session, status=status, category=category, limit=limit, offset=offset)
    return ReportList(items=[_shown(row) for row in rows], total=total, limit=limit, offset=offset)


@router.get("/{id}", responses=answers(403, 404, 422, 503))
def report_detail(session: SessionDep, id: ReportId) -> ReportDetail:
    """Return one report."""
    row = queries.report(session, id)
    if row is None:
        raise NotFound(f"there is no report {id}; they are listed at /api/admin/reports")
    return _shown(row)


def _shown(row: IssueReport) -> ReportDetail:
    return ReportDetail(
        report_id=row.id, category=row.category, description=row.description, snapshot_id=row.snapshot_id,
        original_url=row.original_url, reporter_email=row.reporter_email, page_url=row.page_url, status=row.status,
        notes=row.notes, created_at=row.created_at, updated_at=row.updated_at,
    )  # fmt: skip
