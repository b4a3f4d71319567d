"""`/api/admin/audit`: who did what, when, from where; read only, for who runs the archive."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from holdfast.api.deps import SessionDep
from holdfast.api.errors import answers
from holdfast.api.roles import ADMIN
from holdfast.api.schemas.audit import AuditEventShown, AuditList
from holdfast.api.schemas.forms import MAX_ID, Words
from holdfast.db.audit_queries import AuditFilter, audit_events

router = APIRouter(prefix="/api/admin/audit", tags=["admin"], dependencies=[ADMIN])


@router.get("", responses=answers(403, 422, 503))
def audit_log(
    session: SessionDep,
    actor: Annotated[Words | None, Query(description="Who did it.", examples=["admin@127.0.0.1"])] = None,
    action: Annotated[Words | None, Query(description="What was done, or its first word.", examples=["source"])] = None,
    subject: Annotated[Words | None, Query(description="To what.", examples=["report 1"])] = None,
    before: Annotated[int | None, Query(ge=0, le=MAX_ID, description="`nextBefore` of the answer before.")] = None,
    limit: Annotated[int, Query(ge=1, le=500, description="Events of an answer.")] = 50,
) -> AuditList:
    """Return what was done, newest first; ask again with `before` until `nextBefore` is null."""
    rows = audit_events(session, AuditFilter(actor=actor, action=action, subject=subject, before=before, limit=limit))
    items = [
        AuditEventShown(
            id=row.id, at=row.at, actor=row.actor, action=row.action, subject=row.subject, detail=row.detail
        )
        for row in rows
    ]
    return AuditList(items=items, next_before=rows[-1].id if len(rows) == limit else None)
