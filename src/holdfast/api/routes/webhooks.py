"""`/api/admin/webhooks`: other systems that receive events, their deliveries, and their responses."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from fastapi import Query
from pydantic import Field, StringConstraints

from holdfast.api.dependencies import AdminWriteDep, ArchiveDep, SessionDep, WriteTurnsDep
from holdfast.api.routing import LazyRouter
from holdfast.api.schemas.base import RequestForm, RowId
from holdfast.api.schemas.lists import DEFAULT_LIMIT, ListCursor, ListLimit, Piece, decode_id, piece_of
from holdfast.auth.roles import Permission
from holdfast.db.audit_events import acting
from holdfast.webhooks import queries, registry
from holdfast.webhooks.delivery import send_test
from holdfast.webhooks.records import DeliveryRecord, WebhookRecord, delivery_record, webhook_record

router = LazyRouter(prefix="/api/admin/webhooks", tags=["webhooks"])


@router.get("", Permission.ADMINISTER, errors=(404,))
def list_webhooks(
    session: SessionDep, limit: ListLimit = DEFAULT_LIMIT, cursor: ListCursor = None
) -> Piece[WebhookRecord]:
    """Return webhooks by id, without their secrets."""
    rows, waiting = (
        queries.webhooks(session, after=decode_id(cursor) or 0, limit=limit + 1),
        queries.pending_counts(session),
    )
    return piece_of(rows, limit, lambda row: webhook_record(row, waiting=waiting.get(row.id, 0)), lambda row: row.id)


EventWord = Annotated[str, StringConstraints(max_length=40)]
_EVENTS = "Events to send: names such as `execution.failed`, or groups as `job.*`; empty means all."
_SOURCES = "Codes of the sources whose events are sent; empty means all."


class WebhookChangeForm(RequestForm):
    """Changes of a webhook; other fields keep their values."""

    url: str | None = Field(default=None, max_length=2048, description="On another host it gets a new secret.")
    description: str | None = Field(default=None, max_length=500)
    events: list[EventWord] | None = Field(default=None, max_length=50, description=_EVENTS)
    sources: list[EventWord] | None = Field(default=None, max_length=500, description=_SOURCES)
    enabled: bool | None = None


class WebhookForm(WebhookChangeForm):
    """A new webhook."""

    url: str = Field(max_length=2048, description="Where messages are sent: http or https, never a private address.")
    events: list[EventWord] = Field(default=[], max_length=50, description=_EVENTS)
    sources: list[EventWord] = Field(default=[], max_length=500, description=_SOURCES)
    enabled: bool = True


@router.post("", Permission.ADMINISTER, errors=(404, 409), status_code=201)
def add_webhook(archive: ArchiveDep, turn: AdminWriteDep, form: WebhookForm) -> WebhookRecord:
    """Create a webhook that receives events from now on; its secret is shown only in this response."""
    with turn.write() as session:
        return registry.add(session, turn.clock, archive.settings.webhooks, **form.model_dump())


@router.get("/{id}", Permission.ADMINISTER, errors=(404,))
def show_webhook(session: SessionDep, id: RowId) -> WebhookRecord:
    """Return one webhook, without its secret."""
    return registry.shown(session, id)


@router.patch("/{id}", Permission.ADMINISTER, errors=(404, 409))
def change_webhook(archive: ArchiveDep, turn: AdminWriteDep, id: RowId, form: WebhookChangeForm) -> WebhookRecord:
    """Change a webhook; moving it to another host creates a new secret, which is shown in this response."""
    with turn.write() as session:
        return registry.change(session, turn.clock, id, settings=archive.settings.webhooks, **form.model_dump())


@router.delete("/{id}", Permission.ADMINISTER, errors=(404, 409), status_code=204)
def remove_webhook(turns: WriteTurnsDep, id: RowId) -> None:
    """Delete a webhook with all its deliveries."""
    registry.remove(turns.write, turns.clock, id)


class RotationForm(RequestForm):
    """How a secret is replaced."""

    at_once: bool = Field(
        default=False, alias="atOnce", description="The old one is known to others: do not sign with both for a day."
    )


@router.post("/{id}/rotate-secret", Permission.ADMINISTER, errors=(404, 409))
def rotate_webhook_secret(turn: AdminWriteDep, id: RowId, form: RotationForm | None = None) -> WebhookRecord:
    """Create a new secret and show it only in this response; for a day, messages are also signed with the old one."""
    with turn.write() as session:
        return registry.rotate(session, turn.clock, id, at_once=form is not None and form.at_once)


@router.post("/{id}/test", Permission.ADMINISTER, errors=(404, 409))
def test_webhook(archive: ArchiveDep, turns: WriteTurnsDep, id: RowId) -> DeliveryRecord:
    """Send one test message and return the result; works for disabled webhooks, too."""
    with acting(turns.actor):
        number = send_test(archive.database, turns.clock, archive.settings.webhooks, id)
    return registry.find_delivery(archive.database, number)


class DeliveryState(StrEnum):
    """The state of a delivery."""

    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


@router.get("/{id}/deliveries", Permission.ADMINISTER, errors=(404,))
def list_webhook_deliveries(
    session: SessionDep,
    id: RowId,
    state: Annotated[DeliveryState | None, Query(description="Only these.")] = None,
    limit: ListLimit = DEFAULT_LIMIT,
    cursor: ListCursor = None,
) -> Piece[DeliveryRecord]:
    """Return a webhook's sent and waiting deliveries, newest first, with every attempt and its response."""
    registry.find(session, id)
    rows = queries.deliveries(session, webhook_id=id, before=decode_id(cursor), state=state, limit=limit + 1)
    logs = queries.attempts_of(session, [row.id for row in rows[:limit]])
    return piece_of(rows, limit, lambda row: delivery_record(row, logs[row.id]), lambda row: row.id)


@router.post("/{id}/deliveries/{delivery_id}/redeliver", Permission.ADMINISTER, errors=(404, 409))
def redeliver_webhook(turn: AdminWriteDep, id: RowId, delivery_id: RowId) -> DeliveryRecord:
    """Queue a delivery again, with the same id and body, and a full set of attempts."""
    with turn.write() as session:
        return registry.redeliver(session, turn.clock, id, delivery_id)
