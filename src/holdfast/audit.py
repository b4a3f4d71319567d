"""The audit log: who did what and when. Events are only ever appended."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from holdfast import records
from holdfast.clock import Clock
from holdfast.db.audit_events import AuditAction, acting_user
from holdfast.db.models import AuditEvent
from holdfast.records import Operator, from_row


def record(session: Session, clock: Clock, *, action: AuditAction, subject: str, detail: dict[str, Any]) -> None:
    """Append an event in the caller's transaction, so that it is stored if and only if the action is."""
    session.add(AuditEvent(at=clock.now(), actor=acting_user(), action=action, subject=subject, detail=detail))


@records.record
class AuditRecord:
    """An event of the audit log."""

    id: Operator[int]
    at: Operator[datetime]
    actor: Operator[str]
    action: Operator[str]
    subject: Operator[str]
    detail: Operator[dict[str, Any]]


def audit_events(
    session: Session,
    *,
    actor: str | None = None,
    action: str | None = None,
    subject: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    before: int | None = None,
    limit: int = 50,
) -> list[AuditRecord]:
    """Return events, newest first, of `since` or later and before `until`; `before` is the id of an event.

    `action` is a whole word, or its beginning up to a dot: `source` finds `source.created`.
    """
    clauses: list[ColumnElement[bool]] = []
    if actor is not None:
        clauses.append(AuditEvent.actor == actor)
    if subject is not None:
        clauses.append(AuditEvent.subject == subject)
    if action is not None:
        # Escaped: an underscore in the name of an action stands for itself, not for any character.
        clauses.append((AuditEvent.action == action) | AuditEvent.action.startswith(f"{action}.", autoescape=True))
    if since is not None:
        clauses.append(AuditEvent.at >= since)
    if until is not None:
        clauses.append(AuditEvent.at < until)
    # By id, not by OFFSET: events that are added meanwhile do not shift the next page.
    if before is not None:
        clauses.append(AuditEvent.id < before)
    rows = session.scalars(select(AuditEvent).where(*clauses).order_by(AuditEvent.id.desc()).limit(limit))
    return [from_row(AuditRecord, row) for row in rows]
