"""What is worked out from captures, reported or found: changes, editions, problem reports, usage, feeds, signals."""

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

from holdfast.db.models.base import BigId, KeyText, Model


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


def _changed_index(name: str, *columns: str) -> Index:
    """Return an index of the changes that are more than a capture at which nothing had changed, or that is noise."""
    # Most comparisons find nothing: an index of the others stays small, and every list leaves the unchanged ones out.
    changed = text("type <> 'unchanged' AND type <> 'noise'")
    return Index(name, *columns, sqlite_where=changed, postgresql_where=changed)


def _noise_index(name: str, *columns: str) -> Index:
    """Return an index of the captures that do not show their page."""
    noise = text("type = 'noise'")
    return Index(name, *columns, sqlite_where=noise, postgresql_where=noise)


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
    """new_page, unchanged, updated, gone, error, noise."""
    diff_id: Mapped[int | None] = mapped_column(ForeignKey("diffs.id"))
    error: Mapped[str | None] = mapped_column(Text)
    computed_at: Mapped[datetime]

    __table_args__ = (
        Index("ix_changes_source", "source_id", "to_captured_at", "id"),
        Index("ix_changes_source_order", "source_id", "id"),
        Index("ix_changes_moment", "to_captured_at", "id"),
        Index("ix_changes_execution", "to_execution_id", "to_captured_at", "id"),
        _changed_index("ix_changes_execution_told", "to_execution_id", "to_captured_at", "id"),
        _changed_index("ix_changes_source_told", "source_id", "to_captured_at", "id"),
        _changed_index("ix_changes_moment_told", "to_captured_at", "id"),
        _noise_index("ix_changes_execution_noise", "to_execution_id", "to_captured_at", "id"),
        _noise_index("ix_changes_source_noise", "source_id", "to_captured_at", "id"),
        _noise_index("ix_changes_moment_noise", "to_captured_at", "id"),
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
    """What a reader reported about the archive."""

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
    """How often something was done on a day; counts only, no reader is followed."""

    __tablename__ = "usage_counts"

    day: Mapped[str] = mapped_column(String(10), primary_key=True)
    """ISO date, UTC."""
    event: Mapped[str] = mapped_column(String(32), primary_key=True)
    count: Mapped[int] = mapped_column(BigInteger)


class Feed(Model):
    """A feed or a sitemap of a source that is asked again and again for what is new."""

    __tablename__ = "feeds"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    source_id: Mapped[int] = mapped_column(ForeignKey("sources.id"))
    url: Mapped[str] = mapped_column(Text)
    url_hash: Mapped[int] = mapped_column(BigInteger)
    kind: Mapped[str] = mapped_column(String(8))
    """feed or sitemap."""
    origin: Mapped[str] = mapped_column(String(10))
    """configured, discovered, robots or index."""
    created_at: Mapped[datetime]
    last_polled_at: Mapped[datetime | None]
    """A 304 counts."""
    next_poll_at: Mapped[datetime | None]
    """Null while it is disabled."""
    etag: Mapped[str | None]
    last_modified: Mapped[str | None]
    content_hash: Mapped[str | None] = mapped_column(String(71))
    last_item_count: Mapped[int | None]
    consecutive_errors: Mapped[int] = mapped_column(server_default="0")
    """In a row, of the same class."""
    last_error: Mapped[str | None] = mapped_column(Text)
    last_error_type: Mapped[str | None] = mapped_column(String(20))
    disabled_at: Mapped[datetime | None]

    __table_args__ = (
        UniqueConstraint("source_id", "url_hash"),
        Index(
            "ix_feeds_due",
            "next_poll_at",
            "id",
            sqlite_where=text("next_poll_at IS NOT NULL"),
            postgresql_where=text("next_poll_at IS NOT NULL"),
        ),
        Index(
            "ix_feeds_disabled",
            "disabled_at",
            "id",
            sqlite_where=text("disabled_at IS NOT NULL"),
            postgresql_where=text("disabled_at IS NOT NULL"),
        ),
    )


class FeedItem(Model):
    """An address that a feed or a sitemap of a source named; waiting until an execution has taken it."""

    __tablename__ = "feed_items"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    source_id: Mapped[int] = mapped_column(BigInteger)
    feed_id: Mapped[int] = mapped_column(BigInteger)
    url_hash: Mapped[int] = mapped_column(BigInteger)
    url: Mapped[str] = mapped_column(Text)
    told_at: Mapped[datetime | None]
    """The date that the feed or the sitemap gives; a newer one makes the item wait again."""
    found_at: Mapped[datetime]
    execution_id: Mapped[int | None] = mapped_column(BigInteger)
    """The one that took it; null while it waits."""

    __table_args__ = (
        UniqueConstraint("source_id", "url_hash"),
        Index(
            "ix_feed_items_waiting",
            "source_id",
            "id",
            sqlite_where=text("execution_id IS NULL"),
            postgresql_where=text("execution_id IS NULL"),
        ),
    )


class SignalPage(Model):
    """What is kept of a page whose body is not: of signals-only sources."""

    __tablename__ = "signal_pages"

    page_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    source_id: Mapped[int] = mapped_column(BigInteger)
    execution_id: Mapped[int] = mapped_column(BigInteger)
    fetched_at: Mapped[datetime]
    status_code: Mapped[int | None] = mapped_column(SmallInteger)
    media_type: Mapped[str | None]
    content_hash: Mapped[str | None] = mapped_column(String(71))
    language: Mapped[str | None] = mapped_column(String(35))
    title: Mapped[str | None]
    description: Mapped[str | None] = mapped_column(Text)
    word_count: Mapped[int] = mapped_column(server_default="0")
    links_count: Mapped[int] = mapped_column(server_default="0")
    page_key: Mapped[str] = mapped_column(KeyText, server_default="")
    """The key that the page is withdrawn under."""

    __table_args__ = (Index("ix_signal_pages_source", "source_id", "page_id"),)


class SignalWord(Model):
    """One keyword of such a page, folded; the table is its own index, on every database."""

    __tablename__ = "signal_words"

    word: Mapped[str] = mapped_column(String(64), primary_key=True)
    page_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    count: Mapped[int] = mapped_column(SmallInteger)

    __table_args__ = (Index("ix_signal_words_page", "page_id"),)


class SignalLink(Model):
    """An edge of the link graph from such a page."""

    __tablename__ = "signal_links"

    page_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    to_hash: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    from_hash: Mapped[int] = mapped_column(BigInteger)
    """Of the linking group's address."""
    to_url: Mapped[str] = mapped_column(Text)

    __table_args__ = (Index("ix_signal_links_to_hash", "to_hash"),)


class LinkedHost(Model):
    """A host that captures link to and of which nothing is kept: a candidate for a source."""

    __tablename__ = "linked_hosts"

    key: Mapped[str] = mapped_column(KeyText, primary_key=True)
    """Its SURT without `www.` and the parenthesis: `org,example`."""
    links: Mapped[int] = mapped_column(BigInteger)
    sites: Mapped[int]
    """Registrable domains that link to it."""

    __table_args__ = (Index("ix_linked_hosts_sites", text("sites DESC"), text("links DESC"), "key"),)


class LinkedHostVote(Model):
    """How many links lead from one site to one host that is not kept; at most 1,000 hosts a site."""

    __tablename__ = "linked_host_votes"

    key: Mapped[str] = mapped_column(KeyText, primary_key=True)
    site: Mapped[str] = mapped_column(KeyText, primary_key=True)
    """The registrable domain of the linking pages."""
    links: Mapped[int] = mapped_column(BigInteger)

    __table_args__ = (Index("ix_linked_host_votes_site", "site"),)


class LinkedHostFile(Model):
    """What one WARC file has added to these counts, so that a second reading of it replaces the first."""

    __tablename__ = "linked_host_files"

    warc_file_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    read_at: Mapped[datetime]
    """When the reading that was counted had ended."""
    hidden: Mapped[int] = mapped_column(BigInteger, server_default="0")
    """A mark of those of its captures that were withdrawn then; 0 for none."""
    counted: Mapped[bytes] = mapped_column(LargeBinary)
    """Packed: links by host and site."""
