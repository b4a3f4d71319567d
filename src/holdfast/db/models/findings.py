"""Results derived from captures, and reports: changes, editions, problem reports, usage, feeds, signals."""

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

from holdfast.db.models.base import BigId, KeyText, Model, partial_index


class Diff(Model):
    """The differences between two bodies, stored once for all pairs of snapshots with these bodies."""

    __tablename__ = "diffs"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    from_document_id: Mapped[int] = mapped_column(ForeignKey("documents.id"))
    to_document_id: Mapped[int] = mapped_column(ForeignKey("documents.id"))
    version: Mapped[int]
    """Version of the comparison and of the text extraction together."""
    added_sections: Mapped[int]
    removed_sections: Mapped[int]
    changed_sections: Mapped[int]
    added_lines: Mapped[int]
    removed_lines: Mapped[int]
    ratio: Mapped[float] = mapped_column(Double)
    high_noise: Mapped[bool]
    truncated: Mapped[bool]
    body: Mapped[bytes | None] = mapped_column(LargeBinary)
    """The diff, compressed with zstd; None if there is nothing to show."""
    created_at: Mapped[datetime]

    __table_args__ = (UniqueConstraint("from_document_id", "to_document_id", "version"),)


def _changed_index(name: str, *columns: str) -> Index:
    """Return a partial index of changes other than unchanged captures and noise."""
    # Most comparisons find no change: an index without them stays small, and every list omits them.
    return partial_index(name, *columns, where="type <> 'unchanged' AND type <> 'noise'")


def _noise_index(name: str, *columns: str) -> Index:
    """Return a partial index of captures that are noise."""
    return partial_index(name, *columns, where="type = 'noise'")


class Change(Model):
    """The change of one page between two adjacent snapshots. One row for each later snapshot."""

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
    """The yearly edition of a source for researchers: how much of the intended content was captured."""

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
    """From then on the snapshot list below can be cited; a later list needs another digest."""
    frozen_path: Mapped[str | None]
    frozen_digest: Mapped[str | None] = mapped_column(String(71))
    """`sha256:…` of the list file."""
    frozen_count: Mapped[int | None]
    created_at: Mapped[datetime]

    __table_args__ = (UniqueConstraint("source_id", "year"),)


class IssueReport(Model):
    """A reader's report about the archive."""

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
    """How often an action was done on a day; only counts, no reader is tracked."""

    __tablename__ = "usage_counts"

    day: Mapped[str] = mapped_column(String(10), primary_key=True)
    """ISO date, UTC."""
    event: Mapped[str] = mapped_column(String(32), primary_key=True)
    count: Mapped[int] = mapped_column(BigInteger)


class Feed(Model):
    """A feed or sitemap of a source that is polled for new addresses."""

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
    """Includes polls answered with 304."""
    next_poll_at: Mapped[datetime | None]
    """Null while it is disabled."""
    etag: Mapped[str | None]
    last_modified: Mapped[str | None]
    content_hash: Mapped[str | None] = mapped_column(String(71))
    last_item_count: Mapped[int | None]
    consecutive_errors: Mapped[int] = mapped_column(server_default="0")
    """Consecutive errors of the same class."""
    last_error: Mapped[str | None] = mapped_column(Text)
    last_error_type: Mapped[str | None] = mapped_column(String(20))
    disabled_at: Mapped[datetime | None]

    __table_args__ = (
        UniqueConstraint("source_id", "url_hash"),
        partial_index("ix_feeds_due", "next_poll_at", "id", where="next_poll_at IS NOT NULL"),
        partial_index("ix_feeds_disabled", "disabled_at", "id", where="disabled_at IS NOT NULL"),
    )


class FeedItem(Model):
    """An address from a source's feed or sitemap; pending until an execution fetches it."""

    __tablename__ = "feed_items"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    source_id: Mapped[int] = mapped_column(BigInteger)
    feed_id: Mapped[int] = mapped_column(BigInteger)
    url_hash: Mapped[int] = mapped_column(BigInteger)
    url: Mapped[str] = mapped_column(Text)
    told_at: Mapped[datetime | None]
    """The date in the feed or sitemap; a newer one makes the item pending again."""
    found_at: Mapped[datetime]
    execution_id: Mapped[int | None] = mapped_column(BigInteger)
    """The execution that leased it; null while it is pending."""

    __table_args__ = (
        UniqueConstraint("source_id", "url_hash"),
        partial_index("ix_feed_items_waiting", "source_id", "id", where="execution_id IS NULL"),
    )


class SignalPage(Model):
    """A page of a signals-only source, whose body is not stored."""

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
    """The key for takedowns of the page."""

    __table_args__ = (Index("ix_signal_pages_source", "source_id", "page_id"),)


class SignalWord(Model):
    """One keyword of such a page, case-folded; the table is its own index, on every database."""

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
    """Hash of the linking group's address."""
    to_url: Mapped[str] = mapped_column(Text)

    __table_args__ = (Index("ix_signal_links_to_hash", "to_hash"),)


class LinkedHost(Model):
    """A host that captures link to and that is not archived: a candidate for a source."""

    __tablename__ = "linked_hosts"

    key: Mapped[str] = mapped_column(KeyText, primary_key=True)
    """The host's SURT without `www.` and the parenthesis: `org,example`."""
    links: Mapped[int] = mapped_column(BigInteger)
    sites: Mapped[int]
    """Number of registrable domains that link to it."""

    __table_args__ = (Index("ix_linked_hosts_sites", text("sites DESC"), text("links DESC"), "key"),)


class LinkedHostVote(Model):
    """Number of links from one site to one host that is not archived; at most 1,000 hosts per site."""

    __tablename__ = "linked_host_votes"

    key: Mapped[str] = mapped_column(KeyText, primary_key=True)
    site: Mapped[str] = mapped_column(KeyText, primary_key=True)
    """The registrable domain of the linking pages."""
    links: Mapped[int] = mapped_column(BigInteger)

    __table_args__ = (Index("ix_linked_host_votes_site", "site"),)


class LinkedHostFile(Model):
    """One WARC file's share of these counts, so that indexing it again replaces the first result."""

    __tablename__ = "linked_host_files"

    warc_file_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    read_at: Mapped[datetime]
    """When the counted indexing run ended."""
    hidden: Mapped[int] = mapped_column(BigInteger, server_default="0")
    """Fingerprint of its captures under takedown at that time; 0 if there were none."""
    counted: Mapped[bytes] = mapped_column(LargeBinary)
    """Packed: links by host and site."""
