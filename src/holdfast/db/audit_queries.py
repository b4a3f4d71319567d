"""Reading the audit log: newest first, by keyset, whatever its length."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from holdfast.db.models import AuditEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Which events are wanted; what is None does not matter."""

    actor: str | None = None
    action: str | None = None
    """The whole word, or its beginning up to a dot: `source` finds `source.created`."""
    subject: str | None = None
    before: int | None = None
    """Only events with a smaller id: how a list goes on."""
    limit: int = 50


def audit_events(session: Session, wanted: AuditFilter) -> list[AuditEvent]:
    """Return what was done, newest first."""
    clauses = []
    if wanted.actor is not None:
        clauses.append(AuditEvent.actor == wanted.actor)
    if wanted.subject is not None:
        clauses.append(AuditEvent.subject == wanted.subject)
    if wanted.action is not None:
        below = AuditEvent.action.startswith(f"{wanted.action}.", autoescape=True)
        clauses.append((AuditEvent.action == wanted.action) | below)
    if wanted.before is not None:
        clauses.append(AuditEvent.id < wanted.before)
    return list(session.scalars(select(AuditEvent).where(*clauses).order_by(AuditEvent.id.desc()).limit(wanted.limit)))
