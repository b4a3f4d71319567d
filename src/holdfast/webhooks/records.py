"""Webhooks, their deliveries and attempts, as administrators see them."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from holdfast.db.models import Webhook, WebhookAttempt, WebhookDelivery
from holdfast.records import Operator, from_row, record


@record
class WebhookRecord:
    """A webhook; its secret is shown once, when it is created."""

    id: Operator[int]
    url: Operator[str]
    description: Operator[str | None]
    events: Operator[list[str]]
    sources: Operator[list[str]]
    enabled: Operator[bool]
    disabled_at: Operator[datetime | None]
    disabled_reason: Operator[str | None]
    secret: Operator[str | None]
    """Shown only in the response that creates it."""
    previous_secret_until: Operator[datetime | None]
    """Until then messages are signed with both secrets."""
    waiting: Operator[int]
    """Number of queued deliveries."""
    created_by: Operator[str]
    created_at: Operator[datetime]
    updated_at: Operator[datetime]

    @property
    def state(self) -> str:
        """The state in a word, with the reason if it is disabled."""
        return "enabled" if self.enabled else f"disabled ({self.disabled_reason})"


@record
class AttemptRecord:
    """One attempt of a delivery."""

    at: Operator[datetime]
    took_ms: Operator[int]
    status: Operator[int | None]
    """HTTP status of the response; null without one."""
    error: Operator[str | None]
    answer: Operator[str | None]
    """The first kilobyte of the response, as text."""


@record
class DeliveryRecord:
    """One message to a webhook, and its result."""

    id: Operator[int]
    message_id: Operator[str]
    """The `webhook-id`: the same in each attempt."""
    event: Operator[str]
    state: Operator[Literal["pending", "delivered", "failed"]]
    attempts: Operator[int]
    next_at: Operator[datetime | None]
    """Time of the next attempt; null after the last one."""
    created_at: Operator[datetime]
    finished_at: Operator[datetime | None]
    body: Operator[str]
    """The message."""
    log: Operator[list[AttemptRecord]]

    @property
    def status(self) -> int | None:
        """HTTP status of the last response."""
        return self.log[-1].status if self.log else None

    @property
    def error(self) -> str | None:
        """Error of the last attempt, until the delivery succeeds."""
        return self.log[-1].error if self.log and self.state != "delivered" else None


def webhook_record(row: Webhook, *, secret: str | None = None, waiting: int = 0) -> WebhookRecord:
    """Return the record of a webhook; pass the secret only if it was just created."""
    return from_row(
        WebhookRecord,
        row,
        enabled=row.disabled_at is None,
        secret=secret,
        previous_secret_until=row.previous_until,
        waiting=waiting,
    )


def delivery_record(row: WebhookDelivery, log: list[WebhookAttempt]) -> DeliveryRecord:
    return from_row(
        DeliveryRecord,
        row,
        next_at=row.next_at if row.state == "pending" else None,
        log=[from_row(AttemptRecord, one) for one in log],
    )
