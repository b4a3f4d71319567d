"""Problem reports: taken from anybody, read by whoever runs the archive. A filled honeypot is thanked and dropped."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from sqlalchemy.orm import Session

from holdfast import audit
from holdfast.clock import Clock
from holdfast.db.engine import Database
from holdfast.db.models import IssueReport
from holdfast.errors import NotFound
from holdfast.feedback import queries


class Category(StrEnum):
    """What a report is about."""

    BROKEN_SNAPSHOT = "broken_snapshot"
    INCORRECT_METADATA = "incorrect_metadata"
    MISSING_SNAPSHOT = "missing_snapshot"
    TAKEDOWN = "takedown"
    GENERAL_FEEDBACK = "general_feedback"


class ReportStatus(StrEnum):
    """How far a report is."""

    NEW = "new"
    TRIAGED = "triaged"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What somebody told us."""

    category: Category
    description: str
    snapshot_id: int | None = None
    original_url: str | None = None
    reporter_email: str | None = None
    page_url: str | None = None
    website: str = ""
    """A field that people do not see; programs fill it."""


class Receipt(NamedTuple):
    """What the sender is told."""

    report_id: int | None
    status: ReportStatus
    received_at: datetime


class ReportNotFound(NotFound):
    """There is no such report."""

    code = "report_not_found"

    def __init__(self, report_id: int) -> None:
        super().__init__(f"there is no report {report_id}; see them with: holdfast problem-report list")


def triage(
    session: Session, clock: Clock, report_id: int, *, status: ReportStatus | None, notes: str | None
) -> IssueReport:
    """Note how far a report is and what was found out; return it. What is None stays; empty notes are taken away.

    ReportNotFound. The audit log says who did it, in the same transaction.
    """
    row = queries.report(session, report_id)
    if row is None:
        raise ReportNotFound(report_id)
    before = row.status
    row.status = row.status if status is None else status.value
    row.notes = row.notes if notes is None else notes.strip() or None
    row.updated_at = clock.now()
    audit.record(
        session,
        clock,
        action="report.triaged",
        subject=f"report {report_id}",
        detail={"from": before, "to": row.status, "notes": notes is not None},
    )
    return row


def submit(database: Database, clock: Clock, report: Report) -> Receipt:
    """Keep a report, and return its number; none for a filled honeypot, which looks the same otherwise."""
    now = clock.now()
    if report.website.strip():
        return Receipt(None, ReportStatus.NEW, now)
    row = IssueReport(
        category=report.category.value, description=report.description, snapshot_id=report.snapshot_id,
        original_url=report.original_url, reporter_email=report.reporter_email, page_url=report.page_url,
        status=ReportStatus.NEW.value, notes=None, created_at=now, updated_at=now,
    )  # fmt: skip
    with database.write() as session:
        session.add(row)
        session.flush()
    return Receipt(row.id, ReportStatus.NEW, now)
