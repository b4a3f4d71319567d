"""What is worked out from snapshots and asked of people: changes, editions, problem reports, usage counts."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Double,
    ForeignKey,
    Index,
    LargeBinary,
    SmallInteger,
    String,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from holdfast.db.models.base import BigId, Model


class Diff(Model):
    """What differs between two bodies, kept once for all pairs of snapshots that hold them."""

    __tablename__ = "diffs"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    from_document_id: Mapped[int] = mapped_column(ForeignKey("documents.id"))
    to_document_id: Mapped[int] = mapped_column(ForeignKey("documents.id"))
    version: Mapped[int]
    """Of the comparison and of the text that it compares, together."""
    added_sections: Mapped[int]
    removed_sections: Mapped[int]
    changed_sections: Mapped[int]
    added_lines: Mapped[int]
    removed_lines: Mapped[int]
    ratio: Mapped[float] = mapped_column(Double)
    high_noise: Mapped[bool]
    truncated: Mapped[bool]
    body: Mapped[bytes | None] = mapped_column(LargeBinary)
    """The diff itself, compressed with zstd; None if there is nothing to show."""
    created_at: Mapped[datetime]

    __table_args__ = (UniqueConstraint("from_document_id", "to_document_id", "version"),)


def _told(name: str, *columns: str) -> Index:
    """Return an index of the changes that are more than a capture at which nothing had changed."""
    told = text("type <> 'unchanged'")
    return Index(name, *columns, sqlite_where=told, postgresql_where=told)


class Change(Model):
    """What happened to one page between two adjacent snapshots. One row for each later snapshot."""

    __tablename__ = "changes"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    source_id: Mapped[int] = mapped_column(ForeignKey("sources.id"))
    group_id: Mapped[int | None] = mapped_column(BigInteger)
    url_hash: Mapped[int] = mapped_column(BigInteger)
    from_snapshot_id: Mapped[int | None] = mapped_column(BigInteger)
    to_snapshot_id: Mapped[int] = mapped_column(BigInteger, unique=True)
    from_execution_id: Mapped[int | None] = mapped_column(BigInteger)
    to_execution_id: Mapped[int] = mapped_column(BigInteger)
    from_captured_at: Mapped[datetime | None]
    to_captured_at: Mapped[datetime]
    type: Mapped[str] = mapped_column(String(16))
    """new_page, unchanged, updated, gone, error."""
    diff_id: Mapped[int | None] = mapped_column(ForeignKey("diffs.id"))
    error: Mapped[str | None] = mapped_column(Text)
    computed_at: Mapped[datetime]

    __table_args__ = (
        Index("ix_changes_source", "source_id", "to_captured_at", "id"),
        Index("ix_changes_source_order", "source_id", "id"),
        Index("ix_changes_moment", "to_captured_at", "id"),
        Index("ix_changes_execution", "to_execution_id", "to_captured_at", "id"),
        _told("ix_changes_execution_told", "to_execution_id", "to_captured_at", "id"),
        _told("ix_changes_source_told", "source_id", "to_captured_at", "id"),
        _told("ix_changes_moment_told", "to_captured_at", "id"),
    )


class Edition(Model):
    """The researcher's yearly view of a source: how much of what was meant to be kept was kept."""

    __tablename__ = "editions"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    source_id: Mapped[int] = mapped_column(ForeignKey("sources.id"))
    year: Mapped[int] = mapped_column(SmallInteger)
    status: Mapped[str] = mapped_column(String(16))
    """planned, in_progress, search_ready, research_ready, needs_review."""
    search_ready: Mapped[bool] = mapped_column(server_default=text("false"))
    research_ready: Mapped[bool] = mapped_column(server_default=text("false"))
    intended_url_count: Mapped[int] = mapped_column(server_default="0")
    captured_url_count: Mapped[int] = mapped_column(server_default="0")
    failed_url_count: Mapped[int] = mapped_column(server_default="0")
    missing_url_count: Mapped[int] = mapped_column(server_default="0")
    excluded_url_count: Mapped[int] = mapped_column(server_default="0")
    fallback_url_count: Mapped[int] = mapped_column(server_default="0")
    shard_count: Mapped[int] = mapped_column(server_default="0")
    indexed_shard_count: Mapped[int] = mapped_column(server_default="0")
    needs_review_shard_count: Mapped[int] = mapped_column(server_default="0")
    backend_counts: Mapped[dict[str, Any]] = mapped_column(default=dict)
    coverage_summary: Mapped[dict[str, Any]] = mapped_column(default=dict)
    target_ledger_path: Mapped[str | None]
    capture_manifest_path: Mapped[str | None]
    coverage_report_json_path: Mapped[str | None]
    coverage_report_md_path: Mapped[str | None]
    generated_at: Mapped[datetime | None]
    frozen_at: Mapped[datetime | None]
    """From then on the list of snapshots below is cited; a later one needs another digest."""
    frozen_path: Mapped[str | None]
    frozen_digest: Mapped[str | None] = mapped_column(String(71))
    """`sha256:…` of the list file."""
    frozen_count: Mapped[int | None]
    created_at: Mapped[datetime]

    __table_args__ = (UniqueConstraint("source_id", "year"),)


class IssueReport(Model):
    """What a reader told us about the archive."""

    __tablename__ = "issue_reports"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    category: Mapped[str] = mapped_column(String(32))
    description: Mapped[str] = mapped_column(Text)
    snapshot_id: Mapped[int | None] = mapped_column(BigInteger)
    original_url: Mapped[str | None] = mapped_column(Text)
    reporter_email: Mapped[str | None]
    page_url: Mapped[str | None] = mapped_column(Text)
    status: Mapped[str] = mapped_column(String(16))
    """new, triaged, resolved."""
    notes: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]

    __table_args__ = (Index("ix_issue_reports_status", "status", "id"),)


class UsageCount(Model):
    """How often something was done on a day; counts only, nobody is followed."""

    __tablename__ = "usage_counts"

    day: Mapped[str] = mapped_column(String(10), primary_key=True)
    """ISO date, UTC."""
    event: Mapped[str] = mapped_column(String(32), primary_key=True)
    count: Mapped[int] = mapped_column(BigInteger)
