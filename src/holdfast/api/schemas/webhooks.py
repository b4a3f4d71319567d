"""Request bodies of the webhook routes."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from holdfast.api.schemas.base import RequestForm


class DeliveryState(StrEnum):
    """The state of a delivery."""

    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


EventWord = Annotated[str, StringConstraints(max_length=40)]
_EVENTS = "Events to be told of: names as `execution.failed`, or groups as `job.*`; empty means all."
_SOURCES = "Codes of the sources whose events are sent; empty means all."


class WebhookForm(RequestForm):
    """A new webhook."""

    url: str = Field(max_length=2048, description="Where messages are sent: http or https, never a private address.")
    description: str | None = Field(default=None, max_length=500)
    events: list[EventWord] = Field(default=[], max_length=50, description=_EVENTS)
    sources: list[EventWord] = Field(default=[], max_length=500, description=_SOURCES)
    enabled: bool = True


class WebhookChangeForm(RequestForm):
    """Changes of a webhook; other fields keep their values."""

    url: str | None = Field(default=None, max_length=2048, description="On another host it gets a new secret.")
    description: str | None = Field(default=None, max_length=500)
    events: list[EventWord] | None = Field(default=None, max_length=50, description=_EVENTS)
    sources: list[EventWord] | None = Field(default=None, max_length=500, description=_SOURCES)
    enabled: bool | None = None


class RotationForm(RequestForm):
    """How a secret is replaced."""

    at_once: bool = Field(
        default=False, alias="atOnce", description="The old one is known to others: do not sign with both for a day."
    )
