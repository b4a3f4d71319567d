"""The frontier's tables: pages and their attempts, domains and their robots, and the small queue heads above them.

Tables append by rowid; the unique keys start with the domain, so that a batch touches few index pages (measured:
242 thousand rows a second at ten million rows, where a hash key manages 24).
"""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, LargeBinary, SmallInteger, String, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from holdfast.db.models.base import BigId, Model


class Domain(Model):
    """One politeness key: the host, plus the port when it is neither 80 nor 443."""

    __tablename__ = "domains"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    delay_s: Mapped[float | None]
    """What an operator or the robots file asks for; null means the default."""
    next_allowed_at: Mapped[int] = mapped_column(BigInteger, server_default="0")
    lease_owner: Mapped[int | None] = mapped_column(BigInteger)
    lease_token: Mapped[int] = mapped_column(BigInteger, server_default="0")
    """Counts up with each lease; a write that carries an older one is refused."""
    lease_expires_at: Mapped[int] = mapped_column(BigInteger, server_default="0")
    circuit_state: Mapped[str] = mapped_column(String(9), server_default="closed")
    circuit_failures: Mapped[int] = mapped_column(server_default="0")
    circuit_successes: Mapped[int] = mapped_column(server_default="0")
    circuit_opened_at: Mapped[datetime | None]
    penalty: Mapped[float] = mapped_column(server_default="1")
    unreachable_since: Mapped[datetime | None]
    is_allowed: Mapped[bool] = mapped_column(server_default=text("true"))
    created_at: Mapped[datetime]
    paused_at: Mapped[datetime | None]
    """Since when an operator lets it rest: its attempts stay open, and nothing is asked."""
    robots_after: Mapped[datetime | None]
    """Answers of robots files that were read before this moment are asked for anew."""
    changed_at: Mapped[datetime | None]
    """When an operator last changed something here; a process that holds the domain gives it back then."""

    __table_args__ = (
        Index(
            "ix_domains_lease_owner",
            "lease_owner",
            sqlite_where=text("lease_owner IS NOT NULL"),
            postgresql_where=text("lease_owner IS NOT NULL"),
        ),
        Index(
            "ix_domains_circuit",
            "circuit_state",
            sqlite_where=text("circuit_state <> 'closed'"),
            postgresql_where=text("circuit_state <> 'closed'"),
        ),
        Index(
            "ix_domains_changed_at",
            "changed_at",
            sqlite_where=text("changed_at IS NOT NULL"),
            postgresql_where=text("changed_at IS NOT NULL"),
        ),
        Index(
            "ix_domains_unreachable_since",
            "unreachable_since",
            sqlite_where=text("unreachable_since IS NOT NULL"),
            postgresql_where=text("unreachable_since IS NOT NULL"),
        ),
    )


class Robots(Model):
    """What we know of one origin's robots.txt, kept across restarts."""

    __tablename__ = "robots"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    domain_id: Mapped[int] = mapped_column(ForeignKey("domains.id"), index=True)
    origin: Mapped[str] = mapped_column(unique=True)
    answer: Mapped[str] = mapped_column(String(11))
    status: Mapped[int | None]
    body: Mapped[bytes] = mapped_column(LargeBinary)
    failures: Mapped[int]
    fetched_at: Mapped[datetime]
    checked_at: Mapped[datetime]


class Page(Model):
    """The one canonical row of a URL, unique by (domain, first 64 bits of the SHA-256 of the normalised URL)."""

    __tablename__ = "pages"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    domain_id: Mapped[int] = mapped_column(BigInteger)
    url_hash: Mapped[int] = mapped_column(BigInteger)
    url: Mapped[str]
    """As found first, less the fragment; the normalised form follows from it."""
    status: Mapped[str] = mapped_column(String(10), server_default="discovered")
    """discovered, fetched, failed."""
    language: Mapped[str | None] = mapped_column(String(35))
    etag: Mapped[str | None]
    last_modified: Mapped[str | None]
    original_record_id: Mapped[str | None]
    original_url: Mapped[str | None]
    """Null if it is this page's own address."""
    original_at: Mapped[datetime | None]
    original_digest: Mapped[str | None]
    original_file_id: Mapped[int | None] = mapped_column(BigInteger)
    original_offset: Mapped[int | None] = mapped_column(BigInteger)
    error_count: Mapped[int] = mapped_column(SmallInteger, server_default="0")
    """Consecutive failures, over all executions."""
    created_at: Mapped[datetime]
    fetched_at: Mapped[datetime | None]
    failed_at: Mapped[datetime | None]
    next_crawl_at: Mapped[datetime | None]

    __table_args__ = (
        UniqueConstraint("domain_id", "url_hash"),
        Index(
            "ix_pages_language",
            "language",
            sqlite_where=text("language IS NOT NULL"),
            postgresql_where=text("language IS NOT NULL"),
        ),
    )


_OPEN_NOW = text("outcome IS NULL AND scheduled_for IS NULL")
_OPEN_LATER = text("outcome IS NULL AND scheduled_for IS NOT NULL")


class PageCrawl(Model):
    """One attempt on a page inside an execution; open (outcome null) is the frontier, closed is history."""

    __tablename__ = "page_crawls"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    execution_id: Mapped[int] = mapped_column(BigInteger)
    domain_id: Mapped[int] = mapped_column(BigInteger)
    page_id: Mapped[int] = mapped_column(BigInteger)
    attempt: Mapped[int] = mapped_column(SmallInteger)
    kind: Mapped[str] = mapped_column(String(9))
    priority: Mapped[int] = mapped_column(SmallInteger)
    depth: Mapped[int]
    hops: Mapped[int] = mapped_column(SmallInteger, server_default="0")
    """Redirects from domain to domain that led here."""
    generation: Mapped[int] = mapped_column(SmallInteger, server_default="0")
    """Of a requisite: how many requisites stand between it and its page."""
    via_page_id: Mapped[int | None] = mapped_column(BigInteger)
    scheduled_for: Mapped[int | None] = mapped_column(BigInteger)
    """Null means at once: only retries and over-eager discoveries wait, and they have an index of their own."""
    crashes: Mapped[int] = mapped_column(SmallInteger, server_default="0")
    """How many processes died while they parsed this attempt."""
    outcome: Mapped[str | None] = mapped_column(String(14))
    reason: Mapped[str | None]
    status_code: Mapped[int | None] = mapped_column(SmallInteger)
    message: Mapped[str | None]
    media_type: Mapped[str | None]
    wire_bytes: Mapped[int | None] = mapped_column(BigInteger)
    requests: Mapped[int | None]
    payload_digest: Mapped[str | None]
    content_hash: Mapped[str | None]
    title: Mapped[str | None]
    redirected_to: Mapped[str | None]
    links_count: Mapped[int | None]
    warc_file_id: Mapped[int | None] = mapped_column(BigInteger)
    warc_offset: Mapped[int | None] = mapped_column(BigInteger)
    warc_length: Mapped[int | None] = mapped_column(BigInteger)
    warc_ordinal: Mapped[int | None]
    created_at: Mapped[int] = mapped_column(BigInteger)
    started_at: Mapped[int | None] = mapped_column(BigInteger)
    completed_at: Mapped[int | None] = mapped_column(BigInteger)

    __table_args__ = (
        UniqueConstraint("execution_id", "domain_id", "page_id", "attempt"),
        Index("ix_page_crawls_page_id", "page_id", "id"),
        Index(
            "ix_page_crawls_queue",
            "execution_id",
            "domain_id",
            text("priority DESC"),
            "id",
            sqlite_where=_OPEN_NOW,
            postgresql_where=_OPEN_NOW,
        ),
        Index(
            "ix_page_crawls_deferred",
            "execution_id",
            "domain_id",
            "scheduled_for",
            "id",
            sqlite_where=_OPEN_LATER,
            postgresql_where=_OPEN_LATER,
        ),
        Index(
            "ix_page_crawls_warc_file",
            "warc_file_id",
            "warc_offset",
            sqlite_where=text("warc_file_id IS NOT NULL"),
            postgresql_where=text("warc_file_id IS NOT NULL"),
        ),
        # The newest attempts. Only those that were made: a run that ends closes all others at one moment.
        Index(
            "ix_page_crawls_made",
            "completed_at",
            sqlite_where=text("started_at IS NOT NULL"),
            postgresql_where=text("started_at IS NOT NULL"),
        ),
    )


class Queue(Model):
    """The head of one domain's queue inside one execution: how many attempts are open, and when to look next.

    Each address that an execution met is in exactly one of the four counts; a retried attempt is not an ending.
    """

    __tablename__ = "queues"

    execution_id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    domain_id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    open: Mapped[int] = mapped_column(BigInteger)
    succeeded: Mapped[int] = mapped_column(BigInteger, server_default="0")
    failed: Mapped[int] = mapped_column(BigInteger, server_default="0")
    ruled_out: Mapped[int] = mapped_column(BigInteger, server_default="0")
    due_at: Mapped[int] = mapped_column(BigInteger)
    """Nothing is to be had before; a lease looks no earlier."""

    __table_args__ = (
        Index(
            "ix_queues_due",
            "execution_id",
            "due_at",
            "domain_id",
            sqlite_where=text("open > 0"),
            postgresql_where=text("open > 0"),
        ),
    )


class Exclusion(Model):
    """Links that were not followed, counted by rule and host: out-of-scope links are never rows."""

    __tablename__ = "exclusions"

    execution_id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    rule: Mapped[str] = mapped_column(primary_key=True)
    host: Mapped[str] = mapped_column(primary_key=True)
    count: Mapped[int] = mapped_column(BigInteger)


class ExecutionCount(Model):
    """Running totals of one process in one execution, written with each settle; `status` adds them up."""

    __tablename__ = "execution_counts"

    execution_id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    owner_id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    counts: Mapped[dict[str, Any]]
    updated_at: Mapped[datetime]


class Reread(Model):
    """A page that was fetched before a shorter way to it was found: its links count from the smaller depth."""

    __tablename__ = "rereads"

    execution_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    page_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    domain_id: Mapped[int] = mapped_column(BigInteger)
    depth: Mapped[int]


class AddedUrl(Model):
    """An address that a person added to a source: it waits for the next run, or has joined one that was running.

    The next run takes it unless the frontier that it joined has closed it: so none is lost to a run that just ended.
    """

    __tablename__ = "added_urls"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    source_id: Mapped[int] = mapped_column(ForeignKey("sources.id"))
    domain: Mapped[str]
    url_hash: Mapped[int] = mapped_column(BigInteger)
    url: Mapped[str]
    priority: Mapped[int] = mapped_column(SmallInteger)
    depth: Mapped[int]
    execution_id: Mapped[int | None] = mapped_column(BigInteger)
    """The execution whose frontier it joined; null while it waits."""
    added_at: Mapped[datetime]
    added_by: Mapped[str]

    __table_args__ = (UniqueConstraint("source_id", "domain", "url_hash"),)
