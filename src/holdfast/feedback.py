"""Problem reports, taken from any reader and read by the operator; and how often the archive is used, counted by day.

A report with a filled honeypot is thanked for and dropped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from threading import Lock
from typing import NamedTuple

from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy.orm import Session

from holdfast import audit, log
from holdfast.clock import Clock
from holdfast.coordination.events import EventName, record_event
from holdfast.db.engine import Database, insert_into
from holdfast.db.models import IssueReport, UsageCount
from holdfast.errors import NotFound, Unavailable


def report(session: Session, report_id: int) -> IssueReport | None:
    """Return one report."""
    return session.get(IssueReport, report_id)


class ReportFilter(NamedTuple):
    """Which reports are listed; what is None does not matter."""

    status: str | None = None
    category: str | None = None
    search: str | None = None
    """A part of the description, the notes or the address that it is about."""
    snapshot_id: int | None = None
    before: int | None = None
    """Only those with a smaller id: how a list goes on."""
    limit: int = 50
    offset: int = 0


def reports(session: Session, wanted: ReportFilter) -> tuple[list[IssueReport], int]:
    """Return a page of reports, newest first, and how many there are in all."""
    equal = (
        (IssueReport.status, wanted.status),
        (IssueReport.category, wanted.category),
        (IssueReport.snapshot_id, wanted.snapshot_id),
    )
    clauses: list[ColumnElement[bool]] = [column == value for column, value in equal if value is not None]
    if wanted.search:
        texts = (IssueReport.description, IssueReport.notes, IssueReport.original_url)
        clauses.append(or_(*(column.icontains(wanted.search, autoescape=True) for column in texts)))
    further = [] if wanted.before is None else [IssueReport.id < wanted.before]
    rows = session.scalars(
        select(IssueReport)
        .where(*clauses, *further)
        .order_by(IssueReport.id.desc())
        .limit(wanted.limit)
        .offset(wanted.offset)
    )
    total = session.scalar(select(func.count()).select_from(IssueReport).where(*clauses))
    return list(rows), int(total or 0)


def add_usage(session: Session, counts: Mapping[tuple[str, str], int]) -> None:
    """Add to the counts of (day, event), in the order of their keys, so that two writers never wait for each other."""
    for (day, event), count in sorted(counts.items()):
        new = insert_into(session, UsageCount).values(day=day, event=event, count=count)
        session.execute(
            new.on_conflict_do_update(
                index_elements=[UsageCount.day, UsageCount.event],
                set_={"count": UsageCount.count + new.excluded.count},
            )
        )


def usage_since(session: Session, *, day: str) -> dict[tuple[str, str], int]:
    """Return the counts by (day, event) from a day on."""
    rows = session.execute(
        select(UsageCount.day, UsageCount.event, UsageCount.count)
        .where(UsageCount.day >= day)
        .order_by(UsageCount.day, UsageCount.event)
    )
    return {(day, event): count for day, event, count in rows}


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
class ProblemReport:
    """What a reader reports."""

    category: Category
    description: str
    snapshot_id: int | None = None
    original_url: str | None = None
    reporter_email: str | None = None
    page_url: str | None = None
    website: str = ""
    """A field that people do not see; programs fill it."""


class Receipt(NamedTuple):
    """What the sender gets back."""

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
    row = report(session, report_id)
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


def submit(database: Database, clock: Clock, report: ProblemReport) -> Receipt:
    """Keep a report, and return its number; none for a filled honeypot, which looks the same otherwise."""
    now = clock.now()
    # A program that fills every field gets the same answer as a person, and learns nothing from it.
    if report.website.strip():
        return Receipt(None, ReportStatus.NEW, now)
    row = IssueReport(
        category=report.category.value,
        description=report.description,
        snapshot_id=report.snapshot_id,
        original_url=report.original_url,
        reporter_email=report.reporter_email,
        page_url=report.page_url,
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
            # Not what the reader wrote, nor who that is: operators read it here.
            data={"reportId": row.id, "category": row.category, "snapshotId": row.snapshot_id},
        )
    return Receipt(row.id, ReportStatus.NEW, now)


_log = log.get()


class Use(StrEnum):
    """What is counted."""

    SEARCH = "search_requests"
    DETAIL = "snapshot_detail_views"
    RAW = "raw_snapshot_views"
    REPORT = "report_submissions"


class Day(NamedTuple):
    """What was done on one day."""

    date: str
    counts: dict[Use, int]


class UsageTally:
    """Counts in memory, from any thread, and hands them to the database from time to time."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock
        self._lock, self._pending = Lock(), Counter[tuple[str, str]]()

    def count(self, use: Use) -> None:
        """Note that something was done now."""
        with self._lock:
            self._pending[self._clock.now().date().isoformat(), use.value] += 1

    def flush(self) -> None:
        """Write what was counted; if the database is away, it stays counted here for the next time."""
        with self._lock:
            # Taken out before the write: what is counted meanwhile is not lost, and no thread waits for the database.
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

    def days(self, window_days: int) -> list[Day]:
        """Return the last days, oldest first, today included; what is not written yet counts too."""
        today = self._clock.now().date()
        dates = [(today - timedelta(days=back)).isoformat() for back in reversed(range(window_days))]
        with self._database.read() as session:
            counts = Counter(usage_since(session, day=dates[0]))
        with self._lock:
            # `Counter.update` adds.
            counts.update(self._pending)
        return [Day(date, {use: counts[date, use.value] for use in Use}) for date in dates]
