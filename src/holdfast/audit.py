"""Who did what, when, from where: an append-only log of what needs an answer later."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from holdfast.clock import Clock
from holdfast.db.audit_events import acting_user
from holdfast.db.models import AuditEvent


def record(session: Session, clock: Clock, *, action: str, subject: str, detail: dict[str, Any]) -> None:
    """Append an event in the caller's transaction: it stands if and only if what it records does."""
    session.add(AuditEvent(at=clock.now(), actor=acting_user(), action=action, subject=subject, detail=detail))


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Which events are wanted; what is None does not matter."""

    actor: str | None = None
    action: str | None = None
    """The whole word, or its beginning up to a dot: `source` finds `source.created`."""
    subject: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    """From a moment on, and before another."""
    before: int | None = None
    """Only events with a smaller id: how a list goes on."""
    limit: int = 50


def audit_events(session: Session, wanted: AuditFilter) -> list[AuditEvent]:
    """Return what was done, newest first."""
    clauses: list[ColumnElement[bool]] = []
    if wanted.actor is not None:
        clauses.append(AuditEvent.actor == wanted.actor)
    if wanted.subject is not None:
        clauses.append(AuditEvent.subject == wanted.subject)
    if wanted.action is not None:
        # Escaped: an underscore in the name of an action stands for itself, not for any character.
        below = AuditEvent.action.startswith(f"{wanted.action}.", autoescape=True)
        clauses.append((AuditEvent.action == wanted.action) | below)
    if wanted.since is not None:
        clauses.append(AuditEvent.at >= wanted.since)
    if wanted.until is not None:
        clauses.append(AuditEvent.at < wanted.until)
    # By id, not by OFFSET: events that are added meanwhile do not shift the next page.
    if wanted.before is not None:
        clauses.append(AuditEvent.id < wanted.before)
    return list(session.scalars(select(AuditEvent).where(*clauses).order_by(AuditEvent.id.desc()).limit(wanted.limit)))
