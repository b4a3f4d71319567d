"""What the routes of webhooks take and answer with."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from holdfast.api.schemas.base import Answer, RequestForm
from holdfast.db.models import Webhook, WebhookAttempt, WebhookDelivery
from holdfast.webhooks.registry import Made, WebhookWish


class DeliveryState(StrEnum):
    """How far a delivery is."""

    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


EventWord = Annotated[str, StringConstraints(max_length=40)]
_EVENTS = "Events to be told of: names as `execution.failed`, or groups as `job.*`; empty means all."
_SOURCES = "Codes of the sources whose events are told; empty means all."


class WebhookForm(RequestForm):
    """A new webhook."""

    url: str = Field(max_length=2048, description="Where messages are sent: http or https, never a private address.")
    description: str | None = Field(default=None, max_length=500)
    events: list[EventWord] = Field(default=[], max_length=50, description=_EVENTS)
    sources: list[EventWord] = Field(default=[], max_length=500, description=_SOURCES)
    enabled: bool = True

    def wish(self) -> WebhookWish:
        """Return it as the registry takes it."""
        return WebhookWish(
            url=self.url,
            description=self.description,
            events=tuple(self.events),
            sources=tuple(self.sources),
            enabled=self.enabled,
        )


class WebhookChangeForm(RequestForm):
    """What changes of a webhook; what is left out stays as it is."""

    url: str | None = Field(default=None, max_length=2048, description="On another host it gets a new secret.")
    description: str | None = Field(default=None, max_length=500)
    events: list[EventWord] | None = Field(default=None, max_length=50, description=_EVENTS)
    sources: list[EventWord] | None = Field(default=None, max_length=500, description=_SOURCES)
    enabled: bool | None = None

    def wish(self) -> WebhookWish:
        """Return it as the registry takes it."""
        return WebhookWish(
            url=self.url,
            description=self.description,
            events=None if self.events is None else tuple(self.events),
            sources=None if self.sources is None else tuple(self.sources),
            enabled=self.enabled,
        )


class RotationForm(RequestForm):
    """How a secret is replaced."""

    at_once: bool = Field(
        default=False, alias="atOnce", description="The old one is known to others: do not sign with both for a day."
    )


class WebhookShown(Answer):
    """A webhook; its secret is shown once, when it is made."""

    id: int
    url: str
    description: str | None
    events: list[str]
    sources: list[str]
    enabled: bool
    disabled_at: datetime | None
    disabled_reason: str | None
    secret: str | None = Field(default=None, description="Shown this once, where one was made.")
    previous_secret_until: datetime | None = Field(description="Until then messages are signed with both secrets.")
    created_by: str
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, row: Webhook, secret: str | None = None) -> WebhookShown:
        """Return what is shown of a webhook."""
        return cls(
            id=row.id,
            url=row.url,
            description=row.description,
            events=row.events,
            sources=row.sources,
            enabled=row.disabled_at is None,
            disabled_at=row.disabled_at,
            disabled_reason=row.disabled_reason,
            secret=secret,
            previous_secret_until=row.previous_until,
            created_by=row.created_by,
            created_at=row.created_at,
            updated_at=row.updated_at,
        )

    @classmethod
    def made(cls, made: Made) -> WebhookShown:
        """Return what is shown of a webhook that has just been made or changed."""
        return cls.of(made.webhook, made.secret)


class AttemptShown(Answer):
    """One try at a delivery."""

    at: datetime
    took_ms: int
    status: int | None = Field(description="Of the answer; null if there was none.")
    error: str | None
    answer: str | None = Field(description="The first kilobyte of the answer, as text.")

    @classmethod
    def of(cls, row: WebhookAttempt) -> AttemptShown:
        """Return what is shown of an attempt."""
        return cls(at=row.at, took_ms=row.took_ms, status=row.status, error=row.error, answer=row.answer)


class DeliveryShown(Answer):
    """One message to a webhook, and what came of it."""

    id: int
    message_id: str = Field(description="The `webhook-id`: the same at each attempt.")
    event: str
    state: DeliveryState
    attempts: int
    next_at: datetime | None = Field(description="When it is tried next; null if it is over.")
    created_at: datetime
    finished_at: datetime | None
    body: str = Field(description="What is sent.")
    log: list[AttemptShown]

    @classmethod
    def of(cls, row: WebhookDelivery, log: list[WebhookAttempt]) -> DeliveryShown:
        """Return what is shown of a delivery."""
        return cls(
            id=row.id,
            message_id=row.message_id,
            event=row.event,
            state=DeliveryState(row.state),
            attempts=row.attempts,
            next_at=row.next_at if row.state == DeliveryState.PENDING else None,
            created_at=row.created_at,
            finished_at=row.finished_at,
            body=row.body,
            log=[AttemptShown.of(one) for one in log],
        )
