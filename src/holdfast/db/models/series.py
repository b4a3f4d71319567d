"""Statistics by execution and minute, totals of deleted ones, and alerts based on them."""

from datetime import datetime

from sqlalchemy import BigInteger, Index, SmallInteger, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from holdfast.db.models.base import BigId, Model, partial_index


def _count() -> Mapped[int]:
    return mapped_column(BigInteger, server_default="0")


class _Counted:
    """The columns that are summed."""

    pages: Mapped[int] = _count()
    """Pages captured: successful attempts of kind page."""
    requests: Mapped[int] = _count()
    bytes: Mapped[int] = _count()
    links: Mapped[int] = _count()
    """Addresses that were new to the execution."""
    unchanged: Mapped[int] = _count()
    """Unchanged responses: a revisit, or 304."""
    retries: Mapped[int] = _count()
    """Attempts that were rescheduled; they count as none of the outcomes."""
    success: Mapped[int] = _count()
    failed: Mapped[int] = _count()
    timeout: Mapped[int] = _count()
    blocked_robots: Mapped[int] = _count()
    blocked_4xx: Mapped[int] = _count()
    blocked_5xx: Mapped[int] = _count()
    excluded: Mapped[int] = _count()
    status_2xx: Mapped[int] = _count()
    status_3xx: Mapped[int] = _count()
    status_4xx: Mapped[int] = _count()
    status_5xx: Mapped[int] = _count()
    status_other: Mapped[int] = _count()
    latency_50ms: Mapped[int] = _count()
    latency_100ms: Mapped[int] = _count()
    latency_250ms: Mapped[int] = _count()
    latency_500ms: Mapped[int] = _count()
    latency_1s: Mapped[int] = _count()
    latency_2500ms: Mapped[int] = _count()
    latency_5s: Mapped[int] = _count()
    latency_10s: Mapped[int] = _count()
    latency_30s: Mapped[int] = _count()
    latency_longer: Mapped[int] = _count()
    latency_ms: Mapped[int] = _count()
    circuits_opened: Mapped[int] = _count()
    circuits_closed: Mapped[int] = _count()
    imported_records: Mapped[int] = _count()
    imported_bytes: Mapped[int] = _count()
    queue: Mapped[int] = _count()
    """Growth of the queue; in a total, its length."""


class Series(_Counted, Model):
    """Counts of one execution in one minute, later one hour, later one day; and (`step_s` 0, `at` 0) in total."""

    __tablename__ = "series"

    execution_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    step_s: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    """60, 3600, 86400, or 0 for the total, which grows with each batch."""
    at: Mapped[datetime] = mapped_column(primary_key=True)
    """Start of the interval."""
    domains_waiting: Mapped[int] = _count()
    """Highest number of domains with pending requests."""

    __table_args__ = (Index("ix_series_at", "step_s", "at"),)


class SeriesTotal(_Counted, Model):
    """Counts of a source's executions whose own totals were deleted, so that its counters never fall."""

    __tablename__ = "series_totals"

    source_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)


class CleanupCount(Model):
    """Number of rows of one kind deleted so far, and when last."""

    __tablename__ = "cleanup_counts"

    name: Mapped[str] = mapped_column(String(32), primary_key=True)
    removed: Mapped[int] = mapped_column(BigInteger, server_default="0")
    last_at: Mapped[datetime]


class Alert(Model):
    """One occurrence of a problem: when it started, was last seen and was resolved."""

    __tablename__ = "alerts"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    name: Mapped[str] = mapped_column(String(32))
    severity: Mapped[str] = mapped_column(String(8))
    since: Mapped[datetime]
    last_seen_at: Mapped[datetime]
    resolved_at: Mapped[datetime | None]
    value: Mapped[float]
    """The last measured value while the problem lasted."""
    message: Mapped[str] = mapped_column(Text)

    __table_args__ = (
        # The database enforces one unresolved alert per name.
        partial_index("uq_alerts_firing", "name", where="resolved_at IS NULL", unique=True),
        Index("ix_alerts_resolved", "resolved_at"),
    )


class AlertTurn(Model):
    """When alerts were last evaluated, by any process; the process that updates this may evaluate them."""

    __tablename__ = "alert_turns"

    id: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    looked_at: Mapped[datetime]
