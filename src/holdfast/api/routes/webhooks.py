"""`/api/admin/webhooks`: other systems that are told of events, what was sent to them, and what they answered."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from holdfast.api.dependencies import ArchiveDep, SessionDep
from holdfast.api.errors import answers
from holdfast.api.job_dependencies import AdminWriteDep, WriteTurnsDep
from holdfast.api.late_routes import LateRouter
from holdfast.api.schemas.base import RowId
from holdfast.api.schemas.lists import DEFAULT_LIMIT, ListCursor, Listed, ListLimit, decode_cursor, encode_cursor
from holdfast.api.schemas.webhooks import (
    DeliveryShown,
    DeliveryState,
    RotationForm,
    WebhookChangeForm,
    WebhookForm,
    WebhookShown,
)
from holdfast.db.audit_events import acting
from holdfast.webhooks import queries, registry
from holdfast.webhooks.delivery import send_test

router = LateRouter(prefix="/api/admin/webhooks", tags=["webhooks"])
_READ = answers(403, 404, 422, 503)
_WRITE = answers(403, 404, 409, 422, 503)


@router.get("", responses=_READ)
def list_webhooks(
    session: SessionDep, limit: ListLimit = DEFAULT_LIMIT, cursor: ListCursor = None
) -> Listed[WebhookShown]:
    """Return webhooks by number, without their secrets."""
    place = decode_cursor(cursor, int)
    rows = queries.webhooks(session, after=int(place[0]) if place else 0, limit=limit + 1)
    shown = [WebhookShown.of(row) for row in rows[:limit]]
    return Listed(items=shown, next=encode_cursor(shown[-1].id) if len(rows) > limit else None, limit=limit)


@router.post("", status_code=201, responses=_WRITE)
def add_webhook(archive: ArchiveDep, turn: AdminWriteDep, form: WebhookForm) -> WebhookShown:
    """Make a webhook that is told of what happens from now on; its secret is shown in this answer and never again."""
    with turn.write() as session:
        made = registry.add(session, turn.job_service.clock, archive.settings.webhooks, form.wish())
        return WebhookShown.made(made)


@router.get("/{id}", responses=_READ)
def show_webhook(session: SessionDep, id: RowId) -> WebhookShown:
    """Return one webhook, without its secret."""
    return WebhookShown.of(registry.find(session, id))


@router.patch("/{id}", responses=_WRITE)
def change_webhook(archive: ArchiveDep, turn: AdminWriteDep, id: RowId, form: WebhookChangeForm) -> WebhookShown:
    """Change a webhook; an address on another host gets a new secret, which is shown in this answer."""
    with turn.write() as session:
        made = registry.change(session, turn.job_service.clock, archive.settings.webhooks, id, form.wish())
        return WebhookShown.made(made)


@router.delete("/{id}", status_code=204, responses=_WRITE)
def remove_webhook(turns: WriteTurnsDep, id: RowId) -> None:
    """Remove a webhook with all its deliveries."""
    registry.remove(turns.write, turns.job_service.clock, id)


@router.post("/{id}/rotate-secret", responses=_WRITE)
def rotate_webhook_secret(turn: AdminWriteDep, id: RowId, form: RotationForm | None = None) -> WebhookShown:
    """Make a new secret and show it this once; for a day messages are signed with the old one, too."""
    with turn.write() as session:
        made = registry.rotate(session, turn.job_service.clock, id, at_once=form is not None and form.at_once)
        return WebhookShown.made(made)


@router.post("/{id}/test", responses=_WRITE)
def test_webhook(archive: ArchiveDep, turns: WriteTurnsDep, id: RowId) -> DeliveryShown:
    """Send a test message, once, and return what came of it; also if the webhook is disabled."""
    with acting(turns.actor):
        number = send_test(archive.database, turns.job_service.clock, archive.settings.webhooks, id)
    with archive.database.read() as session:
        row = queries.delivery(session, number)
        if row is None:
            raise registry.DeliveryNotFound(number)
        return DeliveryShown.of(row, queries.attempts_of(session, [number])[number])


@router.get("/{id}/deliveries", responses=_READ)
def list_webhook_deliveries(
    session: SessionDep,
    id: RowId,
    state: Annotated[DeliveryState | None, Query(description="Only these.")] = None,
    limit: ListLimit = DEFAULT_LIMIT,
    cursor: ListCursor = None,
) -> Listed[DeliveryShown]:
    """Return what was sent to a webhook, or is to be, newest first, with every attempt and its answer."""
    registry.find(session, id)
    place = decode_cursor(cursor, int)
    rows = queries.deliveries(
        session, webhook_id=id, before=int(place[0]) if place else None, state=state, limit=limit + 1
    )
    logs = queries.attempts_of(session, [row.id for row in rows[:limit]])
    shown = [DeliveryShown.of(row, logs[row.id]) for row in rows[:limit]]
    return Listed(items=shown, next=encode_cursor(shown[-1].id) if len(rows) > limit else None, limit=limit)


@router.post("/{id}/deliveries/{delivery_id}/redeliver", responses=_WRITE)
def redeliver_webhook(turn: AdminWriteDep, id: RowId, delivery_id: RowId) -> DeliveryShown:
    """Queue a delivery again, with the same id and body, and all its tries before it."""
    with turn.write() as session:
        row = registry.redeliver(session, turn.job_service.clock, id, delivery_id)
        return DeliveryShown.of(row, queries.attempts_of(session, [row.id])[row.id])
