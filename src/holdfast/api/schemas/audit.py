"""The audit log, as who runs the archive reads it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from holdfast.api.schemas.base import Answer


class AuditEventShown(Answer):
    """One thing that was done."""

    id: int
    at: datetime
    actor: str
    action: str
    subject: str
    detail: dict[str, Any]


class AuditList(Answer):
    """A page of the log, newest first."""

    items: list[AuditEventShown]
    next_before: int | None
