"""What sources tell by themselves and what is kept without a body: feeds and their items; signals of pages."""

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, Index, SmallInteger, String, Text, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from holdfast.db.models.base import BigId, KeyText, Model


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
    """What is kept of a page whose body is not: of signals-only sources (TR-010)."""

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
