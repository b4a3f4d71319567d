"""Problem reports from readers to operators, and daily usage counts.

A report with a filled honeypot field gets the usual response and is discarded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from threading import Lock

from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy.orm import Session

from holdfast import audit, log
from holdfast.clock import Clock
from holdfast.db.engine import Database, insert_into
from holdfast.db.models import IssueReport, UsageCount
from holdfast.errors import NotFound, Unavailable
from holdfast.events import EventName, record_event
from holdfast.records import Operator, Public, record


class Category(StrEnum):
    BROKEN_SNAPSHOT = "broken_snapshot"
    INCORRECT_METADATA = "incorrect_metadata"
    MISSING_SNAPSHOT = "missing_snapshot"
    TAKEDOWN = "takedown"
    GENERAL_FEEDBACK = "general_feedback"


class ReportStatus(StrEnum):
    NEW = "new"
    TRIAGED = "triaged"
    RESOLVED = "resolved"


@record
class Report:
    """A problem report, for operators."""

    id: Operator[int]
    category: Operator[Category]
    status: Operator[ReportStatus]
    description: Operator[str]
    snapshot_id: Operator[int | None]
    original_url: Operator[str | None]
    page_url: Operator[str | None]
    reporter_email: Operator[str | None]
    notes: Operator[str | None]
    created_at: Operator[datetime]
    updated_at: Operator[datetime]


@record
class ReportList:
    """A page of reports, newest first."""

    items: Operator[list[Report]]
    next: Operator[str | None]
    """Send it as `cursor` to continue; null at the end."""
    limit: Operator[int]
    total: Operator[int]
    offset: Operator[int]


@record
class ReportReceipt:
    """The receipt for the sender of a report."""

    report_id: Public[int | None]
    status: Public[ReportStatus]
    received_at: Public[datetime]


class ReportNotFound(NotFound):
    """The report does not exist."""

    code = "report_not_found"

    def __init__(self, report_id: int) -> None:
        super().__init__(f"there is no report {report_id}; see them with: holdfast problem-report list")


def find_report(session: Session, report_id: int) -> IssueReport:
    """Return one report; raise ReportNotFound."""
    found = session.get(IssueReport, report_id)
    if found is None:
        raise ReportNotFound(report_id)
    return found


def reports(
    session: Session,
    *,
    status: str | None = None,
    category: str | None = None,
    search: str | None = None,
    snapshot_id: int | None = None,
    before: int | None = None,
    limit: int,
    offset: int = 0,
) -> tuple[list[IssueReport], int]:
    """Return a page of reports, newest first, and the total number.

    `search` is a part of the description, the notes or the address; `before` is the id of a report.
    """
    equal = ((IssueReport.status, status), (IssueReport.category, category), (IssueReport.snapshot_id, snapshot_id))
    clauses: list[ColumnElement[bool]] = [column == value for column, value in equal if value is not None]
    if search:
        texts = (IssueReport.description, IssueReport.notes, IssueReport.original_url)
        clauses.append(or_(*(column.icontains(search, autoescape=True) for column in texts)))
    further = [] if before is None else [IssueReport.id < before]
    rows = session.scalars(
        select(IssueReport).where(*clauses, *further).order_by(IssueReport.id.desc()).limit(limit).offset(offset)
    )
    total = session.scalar(select(func.count()).select_from(IssueReport).where(*clauses))
    return list(rows), int(total or 0)


def triage(
    session: Session, clock: Clock, report_id: int, *, status: ReportStatus | None, notes: str | None
) -> IssueReport:
    """Set status and notes of a report, if given, and return it; empty notes are deleted. Raise ReportNotFound.

    An audit event is written in the same transaction.
    """
    row = find_report(session, report_id)
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


def submit(
    database: Database,
    clock: Clock,
    *,
    category: Category,
    description: str,
    snapshot_id: int | None = None,
    original_url: str | None = None,
    reporter_email: str | None = None,
    page_url: str | None = None,
    website: str | None = None,
) -> ReportReceipt:
    """Store a report and return its number; None if `website` is filled, a field hidden from people."""
    now = clock.now()
    # A program that fills every field gets the same answer as a person, and learns nothing from it.
    if website is not None and website.strip():
        return ReportReceipt(report_id=None, status=ReportStatus.NEW, received_at=now)
    row = IssueReport(
        category=category.value,
        description=description,
        snapshot_id=snapshot_id,
        original_url=original_url,
        reporter_email=reporter_email,
        page_url=page_url,
        status=ReportStatus.NEW.value,
        notes=None,
        created_at=now,
        updated_at=now,
    )
    with database.write() as session:
        session.add(row)
        session.flush()
        record_event(
            session,
            EventName.REPORT_CREATED,
            at=now,
            # Neither what the reader wrote nor the address: operators read those here.
            data={"reportId": row.id, "category": row.category, "snapshotId": row.snapshot_id},
        )
    return ReportReceipt(report_id=row.id, status=ReportStatus.NEW, received_at=now)


def add_usage(session: Session, counts: Mapping[tuple[str, str], int]) -> None:
    """Add to the counts of (day, event), in key order, so that concurrent writers cannot deadlock."""
    for (day, event), count in sorted(counts.items()):
        new = insert_into(session, UsageCount).values(day=day, event=event, count=count)
        session.execute(
            new.on_conflict_do_update(
                index_elements=[UsageCount.day, UsageCount.event],
                set_={"count": UsageCount.count + new.excluded.count},
            )
        )


def usage_since(session: Session, *, day: str) -> dict[tuple[str, str], int]:
    rows = session.execute(
        select(UsageCount.day, UsageCount.event, UsageCount.count)
        .where(UsageCount.day >= day)
        .order_by(UsageCount.day, UsageCount.event)
    )
    return {(day, event): count for day, event, count in rows}


_log = log.get()


class Use(StrEnum):
    """A counted action."""

    SEARCH = "search_requests"
    DETAIL = "snapshot_detail_views"
    RAW = "raw_snapshot_views"
    REPORT = "report_submissions"


@record
class UsageTotals:
    """Usage counts."""

    search_requests: Public[int]
    snapshot_detail_views: Public[int]
    raw_snapshot_views: Public[int]
    report_submissions: Public[int]


@record
class UsageDay(UsageTotals):
    """Usage counts of one day."""

    date: Public[str]


@record
class Usage:
    """Usage counts of the last days."""

    enabled: Public[bool]
    window_days: Public[int]
    totals: Public[UsageTotals]
    daily: Public[list[UsageDay]]


class UsageTally:
    """Counts in memory, from any thread, until `flush` writes them to the database."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock
        self._lock, self._pending = Lock(), Counter[tuple[str, str]]()

    def count(self, use: Use) -> None:
        with self._lock:
            self._pending[self._clock.now().date().isoformat(), use.value] += 1

    def flush(self) -> None:
        """Write the counts; if the database is unavailable, keep them for the next flush."""
        with self._lock:
            # Swapped before the write: counts of the meantime are not lost, and no thread waits for the database.
            taken, self._pending = self._pending, Counter()
        if not taken:
            return
        try:
            with self._database.write() as session:
                add_usage(session, taken)
        except Unavailable as exc:
            _log.warning("usage.kept", message=str(exc), counts=taken.total())
            with self._lock:
                self._pending.update(taken)

    def days(self, window_days: int) -> dict[str, dict[Use, int]]:
        """Return the last days including today, oldest first, with counts that are not yet written."""
        today = self._clock.now().date()
        dates = [(today - timedelta(days=back)).isoformat() for back in reversed(range(window_days))]
        with self._database.read() as session:
            counts = Counter(usage_since(session, day=dates[0]))
        with self._lock:
            # `Counter.update` adds.
            counts.update(self._pending)
        return {date: {use: counts[date, use.value] for use in Use} for date in dates}
