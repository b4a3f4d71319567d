"""Who did what, when, from where: an append-only log of what needs an answer later."""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session

from holdfast.clock import Clock
from holdfast.db.audits import acting, actor
from holdfast.db.models import AuditEvent

__all__ = ["acting", "actor", "record"]


def record(session: Session, clock: Clock, *, action: str, subject: str, detail: dict[str, Any]) -> None:
    """Append an event in the caller's transaction: it stands if and only if the deed does."""
    session.add(AuditEvent(at=clock.now(), actor=actor(), action=action, subject=subject, detail=detail))
