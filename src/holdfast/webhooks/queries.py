"""Queries for webhooks and their deliveries: pending ones, leases, results."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, TextClause, and_, delete, func, select, text
from sqlalchemy.orm import Session

from holdfast.clock import to_micros
from holdfast.db.engine import insert_into
from holdfast.db.models import Webhook, WebhookAttempt, WebhookDelivery
from holdfast.processes import leases


def webhook(session: Session, webhook_id: int) -> Webhook | None:
    return session.get(Webhook, webhook_id)


def webhooks(session: Session, *, after: int = 0, limit: int) -> list[Webhook]:
    return list(session.scalars(select(Webhook).where(Webhook.id > after).order_by(Webhook.id).limit(limit)))


def enabled_webhooks(session: Session, *, locked: bool = False) -> list[Webhook]:
    query = select(Webhook).where(Webhook.disabled_at.is_(None)).order_by(Webhook.id)
    return list(session.scalars(query.with_for_update() if locked else query))


def pending_counts(session: Session) -> dict[int, int]:
    rows = session.execute(
        select(WebhookDelivery.webhook_id, func.count())
        .where(WebhookDelivery.state == "pending")
        .group_by(WebhookDelivery.webhook_id)
    )
    return {webhook_id: count for webhook_id, count in rows}


def insert_deliveries(session: Session, rows: Sequence[dict[str, Any]]) -> None:
    """Append deliveries; skip those that are queued already."""
    if rows:
        session.execute(insert_into(session, WebhookDelivery).on_conflict_do_nothing(), rows)


def _is_due(now: datetime) -> ColumnElement[bool]:
    return and_(WebhookDelivery.state == "pending", WebhookDelivery.next_at <= now, _free(now))


def _free(now: datetime, negated: str = "") -> TextClause:
    condition = leases.is_free(WebhookDelivery.__tablename__, ":leased_at")
    return text(negated + condition).bindparams(leased_at=to_micros(now))


def webhooks_due(session: Session, *, now: datetime) -> list[int]:
    query = select(WebhookDelivery.webhook_id).join(Webhook, Webhook.id == WebhookDelivery.webhook_id)
    return list(session.scalars(query.where(_is_due(now), Webhook.disabled_at.is_(None)).distinct()))


def leased_count(session: Session, *, webhook_id: int, now: datetime) -> int:
    leased = WebhookDelivery.state == "pending", _free(now, "NOT ")
    query = select(func.count()).select_from(WebhookDelivery)
    return session.scalar(query.where(WebhookDelivery.webhook_id == webhook_id, *leased)) or 0


def lease_due(
    session: Session, *, webhook_id: int, owner_id: int | None, now: datetime, until: datetime, limit: int
) -> list[WebhookDelivery]:
    """Lease due deliveries of a webhook, oldest first, until `until`: as long as one attempt may take."""
    due = (
        select(WebhookDelivery)
        .where(WebhookDelivery.webhook_id == webhook_id, _is_due(now))
        .order_by(WebhookDelivery.next_at, WebhookDelivery.id)
        .limit(limit)
        # Another process that leases at the same time gets other deliveries.
        .with_for_update(skip_locked=True)
    )
    rows = list(session.scalars(due))
    for row in rows:
        leases.take(row, owner_id, until=until)
    session.flush()
    return rows


def held_delivery(session: Session, leased: WebhookDelivery) -> WebhookDelivery | None:
    """Return a delivery, locked, if the lease with which it was read still holds it."""
    held = text(leases.HELD.replace("?", ":token")).bindparams(token=leased.token)
    return session.scalar(select(WebhookDelivery).where(WebhookDelivery.id == leased.id, held).with_for_update())


def delivery(session: Session, delivery_id: int) -> WebhookDelivery | None:
    return session.get(WebhookDelivery, delivery_id)


def deliveries(
    session: Session, *, webhook_id: int, before: int | None, state: str | None, limit: int
) -> list[WebhookDelivery]:
    query = select(WebhookDelivery).where(WebhookDelivery.webhook_id == webhook_id)
    if before is not None:
        query = query.where(WebhookDelivery.id < before)
    if state is not None:
        query = query.where(WebhookDelivery.state == state)
    return list(session.scalars(query.order_by(WebhookDelivery.id.desc()).limit(limit)))


def attempts_of(session: Session, delivery_ids: Sequence[int]) -> dict[int, list[WebhookAttempt]]:
    found: dict[int, list[WebhookAttempt]] = {one: [] for one in delivery_ids}
    query = select(WebhookAttempt).where(WebhookAttempt.delivery_id.in_(delivery_ids)).order_by(WebhookAttempt.id)
    for attempt in session.scalars(query):
        found[attempt.delivery_id].append(attempt)
    return found


def drop_finished(session: Session, *, before: datetime, limit: int) -> int:
    old = select(WebhookDelivery.id).where(WebhookDelivery.created_at < before, WebhookDelivery.state != "pending")
    return _drop(session, old.order_by(WebhookDelivery.created_at).limit(limit))


def drop_of_webhook(session: Session, *, webhook_id: int, limit: int) -> int:
    query = select(WebhookDelivery.id).where(WebhookDelivery.webhook_id == webhook_id)
    return _drop(session, query.order_by(WebhookDelivery.id).limit(limit))


def _drop(session: Session, which: Any) -> int:
    gone = delete(WebhookDelivery).where(WebhookDelivery.id.in_(which.scalar_subquery())).returning(WebhookDelivery.id)
    return len(session.scalars(gone.execution_options(synchronize_session=False)).all())
