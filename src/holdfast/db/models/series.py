"""What happened, by execution and minute; what was let go of it; and the alerts that were raised over it."""

from datetime import datetime

from sqlalchemy import BigInteger, Index, SmallInteger, String, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from holdfast.db.models.base import BigId, Model


def _count() -> Mapped[int]:
    return mapped_column(BigInteger, server_default="0")


class _Counted:
    """The columns that add up."""

    pages: Mapped[int] = _count()
    """Pages captured: attempts of kind page that ended well."""
    requests: Mapped[int] = _count()
    bytes: Mapped[int] = _count()
    links: Mapped[int] = _count()
    """Addresses that were new to the execution."""
    unchanged: Mapped[int] = _count()
    """Answers that were as before: a revisit, or 304."""
    retries: Mapped[int] = _count()
    """Attempts after which another was set; they count as none of the outcomes."""
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
    """By how much the queue grew; in a total, how long it is."""


class Series(_Counted, Model):
    """What one execution did in one minute, later one hour, later one day; and (`step_s` 0, `at` 0) in all."""

    __tablename__ = "series"

    execution_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    step_s: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    """60, 3600, 86400, or 0 for the total, which grows with each batch."""
    at: Mapped[datetime] = mapped_column(primary_key=True)
    """Where it begins."""
    domains_waiting: Mapped[int] = _count()
    """Domains with something to ask for: the most that were counted."""

    __table_args__ = (Index("ix_series_at", "step_s", "at"),)


class SeriesTotal(_Counted, Model):
    """What the executions of one source did whose own totals were let go; counters of it never fall."""

    __tablename__ = "series_totals"

    source_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)


class CleanupCount(Model):
    """How many rows of one kind were let go since the beginning, and when last."""

    __tablename__ = "cleanup_counts"

    name: Mapped[str] = mapped_column(String(32), primary_key=True)
    removed: Mapped[int] = mapped_column(BigInteger, server_default="0")
    last_at: Mapped[datetime]


class Alert(Model):
    """One time that something was wrong: since when, seen last, resolved."""

    __tablename__ = "alerts"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    name: Mapped[str] = mapped_column(String(32))
    severity: Mapped[str] = mapped_column(String(8))
    since: Mapped[datetime]
    last_seen_at: Mapped[datetime]
    resolved_at: Mapped[datetime | None]
    value: Mapped[float]
    """What was measured last while it lasted."""
    message: Mapped[str] = mapped_column(Text)

    __table_args__ = (
        # One at a time of each name that is not resolved; the database says so.
        Index(
            "uq_alerts_firing",
            "name",
            unique=True,
            sqlite_where=text("resolved_at IS NULL"),
            postgresql_where=text("resolved_at IS NULL"),
        ),
        Index("ix_alerts_resolved", "resolved_at"),
    )


class AlertTurn(Model):
    """When the alerts were last looked at, by any process: the one that moves this on has the turn."""

    __tablename__ = "alert_turns"

    id: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    looked_at: Mapped[datetime]
