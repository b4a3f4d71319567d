"""`POST /api/reports`: readers tell of problems. The only public route that takes something in."""

from __future__ import annotations

from fastapi import APIRouter

from holdfast.api.deps import ArchiveDep, UsageDep
from holdfast.api.errors import answers
from holdfast.api.roles import PUBLIC
from holdfast.api.schemas.reports import ReportForm, ReportReceipt
from holdfast.feedback.reports import Receipt, Report, submit
from holdfast.feedback.usage import UsageTally, Use
from holdfast.wiring.archive import Archive

router = APIRouter(tags=["reports"], dependencies=[PUBLIC])


@router.post("/api/reports", status_code=201, responses=answers(413, 415, 422, 429, 503))
def send_report(archive: ArchiveDep, usage: UsageDep, form: ReportForm) -> ReportReceipt:
    """Keep a report. A filled `website` is answered alike and dropped."""
    receipt = keep_report(archive, usage, form)
    return ReportReceipt(report_id=receipt.report_id, status=receipt.status, received_at=receipt.received_at)


def keep_report(archive: Archive, usage: UsageTally, form: ReportForm) -> Receipt:
    """Keep what a reader sent, and count it; return what to tell the reader."""
    receipt = submit(
        archive.database, archive.clock,
        Report(
            category=form.category, description=form.description, snapshot_id=form.snapshot_id,
            original_url=form.original_url, reporter_email=form.reporter_email, page_url=form.page_url,
            website=form.website or "",
        ),
    )  # fmt: skip
    if receipt.report_id is not None and archive.settings.api.usage:
        usage.count(Use.REPORT)
    return receipt
