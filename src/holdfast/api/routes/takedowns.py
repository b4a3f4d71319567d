"""`/api/admin/takedowns`: hide captures and pages from every reader immediately, and show them again."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Path, Query, Response
from pydantic import AfterValidator, Field

from holdfast.api.dependencies import AdminWriteDep, ArchiveDep, SessionDep
from holdfast.api.routing import LazyRouter
from holdfast.api.schemas.base import RequestForm, RowId, Words, checked_text
from holdfast.api.schemas.lists import DEFAULT_LIMIT, ListCursor, ListLimit, Piece, decode_id, piece_of
from holdfast.auth.roles import Permission
from holdfast.db.audit_events import acting
from holdfast.withdrawals.hiding import (
    MAX_REASON_CHARS,
    MIN_REASON_CHARS,
    find_takedown,
    hide,
    list_withdrawals,
    preview_hiding,
    takedown,
    unhide_by_id,
)
from holdfast.withdrawals.records import Takedown, TakedownPreview, TakedownReceipt, TakedownState

router = LazyRouter(prefix="/api/admin/takedowns", tags=["takedowns"])
TakedownId = Annotated[RowId, Path(description="A takedown's id.", examples=[4])]
SUBJECT_CHARS: Final = 8192
"""Maximum length of a subject, in a takedown and in its preview."""
Subject = Annotated[
    str,
    Query(
        min_length=1, max_length=SUBJECT_CHARS, description="A snapshot's id, or the address of a page.", examples=["7"]
    ),
    AfterValidator(checked_text),
]


@router.get("", Permission.ADMINISTER)
def list_takedowns(
    session: SessionDep,
    state: Annotated[TakedownState | None, Query(description="Only these.")] = None,
    search: Annotated[Words | None, Query(description="A part of the subject or of the reason.")] = None,
    cursor: ListCursor = None,
    limit: ListLimit = DEFAULT_LIMIT,
) -> Piece[Takedown]:
    """Return takedowns, newest first."""
    rows = list_withdrawals(
        session,
        in_force=None if state is None else state == "in_force",
        search=search,
        before=decode_id(cursor),
        limit=limit + 1,
    )
    return piece_of(rows, limit, takedown, lambda row: row.id)


@router.get("/preview", Permission.ADMINISTER, errors=(404,))
def preview_takedown(session: SessionDep, subject: Subject) -> TakedownPreview:
    """Return what a takedown of this subject would hide; nothing is changed."""
    return preview_hiding(session, subject)


class TakedownForm(
    RequestForm, example={"subject": "https://example.org/old", "reason": "asked for by its author, letter of 3 May"}
):
    """What to hide, and why."""

    subject: str = Field(
        min_length=1,
        max_length=SUBJECT_CHARS,
        description="A snapshot's id, or a page by any spelling of its address.",
    )
    reason: str = Field(min_length=MIN_REASON_CHARS, max_length=MAX_REASON_CHARS, description="Kept in the audit log.")


@router.post("", Permission.ADMINISTER, errors=(404, 409, 413, 415), status_code=201)
def create_takedown(
    archive: ArchiveDep, turn: AdminWriteDep, response: Response, form: TakedownForm
) -> TakedownReceipt:
    """Hide a capture, or a page with all its captures, from every reader immediately, until this is undone."""
    with acting(turn.actor):
        done = hide(archive.database, archive.clock, form.subject, reason=form.reason, home=archive.home)
    response.headers["Location"] = f"/api/admin/takedowns/{done.id}"
    return done


@router.get("/{id}", Permission.ADMINISTER, errors=(404,))
def get_takedown(session: SessionDep, id: TakedownId) -> Takedown:
    """Return one takedown."""
    return takedown(find_takedown(session, id))


@router.post("/{id}/undo", Permission.ADMINISTER, errors=(404, 409))
def undo_takedown(archive: ArchiveDep, turn: AdminWriteDep, id: TakedownId) -> TakedownReceipt:
    """Show a hidden capture or page again; 409 if it is already visible."""
    with acting(turn.actor):
        return unhide_by_id(archive.database, archive.clock, id, home=archive.home)
