"""Problem reports as the keepers of the archive read, triage and close them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query

from holdfast.api.deps import SessionDep
from holdfast.api.errors import answers
from holdfast.api.hands import HandDep
from holdfast.api.roles import ADMIN
from holdfast.api.schemas.reports import ReportChanges, ReportDetail, ReportList
from holdfast.db.models import IssueReport
from holdfast.feedback import queries
from holdfast.feedback.reports import Category, ReportNotFound, ReportStatus, triage

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
        raise ReportNotFound(id)
    return _shown(row)


@router.patch("/{id}", responses=answers(403, 404, 413, 415, 422, 503))
def triage_report(hand: HandDep, id: ReportId, form: ReportChanges) -> ReportDetail:
    """Say how far a report is, and note what was found out; the audit log says who did."""
    with hand.write() as session:
        return _shown(triage(session, hand.desk.clock, id, status=form.status, notes=form.notes))


def _shown(row: IssueReport) -> ReportDetail:
    return ReportDetail(
        report_id=row.id, category=row.category, description=row.description, snapshot_id=row.snapshot_id,
        original_url=row.original_url, reporter_email=row.reporter_email, page_url=row.page_url, status=row.status,
        notes=row.notes, created_at=row.created_at, updated_at=row.updated_at,
    )  # fmt: skip
