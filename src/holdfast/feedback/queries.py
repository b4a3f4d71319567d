"""The rows of issue reports and usage counts."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert as postgres_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.orm import Session

from holdfast.db.models import IssueReport, UsageCount


def report(session: Session, report_id: int) -> IssueReport | None:
    """Return one report."""
    return session.get(IssueReport, report_id)


def reports(
    session: Session, *, status: str | None, category: str | None, limit: int, offset: int
) -> tuple[list[IssueReport], int]:
    """Return a page of reports, newest first, and how many there are in all."""
    wanted = [
        column == value
        for column, value in ((IssueReport.status, status), (IssueReport.category, category))
        if value is not None
    ]
    rows = session.scalars(
        select(IssueReport).where(*wanted).order_by(IssueReport.id.desc()).limit(limit).offset(offset)
    )
    total = session.scalar(select(func.count()).select_from(IssueReport).where(*wanted))
    return list(rows), int(total or 0)


def add_usage(session: Session, counts: Mapping[tuple[str, str], int]) -> None:
    """Add to the counts of (day, event), in the order of their keys, so that two writers never wait for each other."""
    insert = postgres_insert if session.get_bind().dialect.name == "postgresql" else sqlite_insert
    for (day, event), count in sorted(counts.items()):
        new = insert(UsageCount).values(day=day, event=event, count=count)
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
