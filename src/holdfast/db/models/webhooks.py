"""Webhooks with their deliveries, and the events, besides those of jobs, that they send."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, SmallInteger, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from holdfast.db.models.base import BigId, Leased, Model, partial_index


class Event(Model):
    """An event that is published outside, in commit order."""

    __tablename__ = "events"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    at: Mapped[datetime]
    name: Mapped[str] = mapped_column(String(32))
    """The name in webhooks: edition.frozen, report.created, alert.firing."""
    source_id: Mapped[int | None] = mapped_column(BigInteger)
    data: Mapped[dict[str, Any]] = mapped_column(default=dict)

    __table_args__ = (Index("ix_events_at", "at"),)


class Webhook(Model):
    """An external URL that receives events."""

    __tablename__ = "webhooks"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    url: Mapped[str] = mapped_column(Text)
    description: Mapped[str | None] = mapped_column(Text)
    events: Mapped[list[str]] = mapped_column(default=list)
    """Names, or `job.*` for all names with this prefix; empty means all."""
    sources: Mapped[list[str]] = mapped_column(default=list)
    """Source codes; empty means all. Events without a source are always sent."""
    secret: Mapped[str] = mapped_column(Text)
    """In plain text, because each message is signed with it; never shown again."""
    previous_secret: Mapped[str | None] = mapped_column(Text)
    previous_until: Mapped[datetime | None]
    """Until then messages are signed with both secrets."""
    jobs_after: Mapped[int] = mapped_column(BigInteger, server_default="0")
    """The last job event that became a delivery of this webhook, or was skipped; likewise for the other kinds."""
    events_after: Mapped[int] = mapped_column(BigInteger, server_default="0")
    changes_after: Mapped[int] = mapped_column(BigInteger, server_default="0")
    disabled_at: Mapped[datetime | None]
    disabled_reason: Mapped[str | None] = mapped_column(Text)
    created_by: Mapped[str]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class WebhookDelivery(Leased, Model):
    """One message to one webhook: work to do while it is pending, then history."""

    __tablename__ = "webhook_deliveries"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    webhook_id: Mapped[int] = mapped_column(ForeignKey("webhooks.id", ondelete="CASCADE"))
    event_key: Mapped[str] = mapped_column(String(40))
    """The event's row, such as `job:17`: it is queued once, however many processes look for events."""
    message_id: Mapped[str] = mapped_column(String(40))
    """The `webhook-id`, the same for each attempt, so that receivers can detect repeats."""
    event: Mapped[str] = mapped_column(String(32))
    body: Mapped[str] = mapped_column(Text)
    state: Mapped[str] = mapped_column(String(9))
    """pending, delivered or failed."""
    attempts: Mapped[int] = mapped_column(SmallInteger, server_default="0")
    next_at: Mapped[datetime]
    status: Mapped[int | None] = mapped_column(SmallInteger)
    """HTTP status of the last response; null if there was none."""
    created_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]

    __table_args__ = (
        UniqueConstraint("webhook_id", "event_key"),
        Index("ix_webhook_deliveries_webhook", "webhook_id", "id"),
        Index("ix_webhook_deliveries_age", "created_at"),
        partial_index("ix_webhook_deliveries_due", "webhook_id", "next_at", "id", where="state = 'pending'"),
    )


class WebhookAttempt(Model):
    """One attempt at a delivery, and its result."""

    __tablename__ = "webhook_attempts"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    delivery_id: Mapped[int] = mapped_column(ForeignKey("webhook_deliveries.id", ondelete="CASCADE"))
    at: Mapped[datetime]
    took_ms: Mapped[int]
    status: Mapped[int | None] = mapped_column(SmallInteger)
    error: Mapped[str | None] = mapped_column(Text)
    """Why there was no response, or why it does not count as delivered."""
    answer: Mapped[str | None] = mapped_column(Text)
    """The beginning of the response, as text."""

    __table_args__ = (Index("ix_webhook_attempts_delivery", "delivery_id", "id"),)
