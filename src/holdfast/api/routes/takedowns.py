"""`/api/admin/takedowns`: captures and pages are taken out of sight, for every reader at once, and brought back."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Response
from pydantic import AfterValidator

from holdfast.api.dependencies import ArchiveDep, SessionDep
from holdfast.api.errors import answers
from holdfast.api.job_dependencies import AdminWriteDep
from holdfast.api.late_routes import LateRouter
from holdfast.api.schemas.base import RowId, Words, checked_text
from holdfast.api.schemas.lists import DEFAULT_LIMIT, ListCursor, Listed, ListLimit, decode_cursor, encode_cursor
from holdfast.api.schemas.takedowns import (
    SUBJECT_CHARS,
    Takedown,
    TakedownCapture,
    TakedownForm,
    TakedownKind,
    TakedownPreview,
    TakedownReceipt,
    TakedownState,
)
from holdfast.db.audit_events import acting
from holdfast.wiring.archive import Archive
from holdfast.withdrawals.hiding import (
    WithdrawalFilter,
    find_withdrawal,
    hide,
    listed_withdrawals,
    preview_hiding,
    unhide_by_id,
)

router = LateRouter(prefix="/api/admin/takedowns", tags=["takedowns"])
TakedownId = Annotated[RowId, Path(description="A takedown's id.", examples=[4])]
Subject = Annotated[
    str,
    Query(
        min_length=1, max_length=SUBJECT_CHARS, description="A snapshot's id, or the address of a page.", examples=["7"]
    ),
    AfterValidator(checked_text),
]


@router.get("", responses=answers(403, 422, 503))
def list_takedowns(
    session: SessionDep,
    state: Annotated[TakedownState | None, Query(description="Only these.")] = None,
    search: Annotated[Words | None, Query(description="A part of the subject or of the reason.")] = None,
    cursor: ListCursor = None,
    limit: ListLimit = DEFAULT_LIMIT,
) -> Listed[Takedown]:
    """Return what was taken out of sight, newest first."""
    place = decode_cursor(cursor, int)
    wanted = WithdrawalFilter(
        in_force=None if state is None else state is TakedownState.IN_FORCE,
        search=search,
        before=int(place[0]) if place else None,
        limit=limit + 1,
    )
    rows = listed_withdrawals(session, wanted)
    after = encode_cursor(rows[limit - 1].id) if len(rows) > limit else None
    return Listed(items=[Takedown.of(row) for row in rows[:limit]], next=after, limit=limit)


@router.get("/preview", responses=answers(403, 404, 422, 503))
def preview_takedown(session: SessionDep, subject: Subject) -> TakedownPreview:
    """Return what no reader would see any more if this were taken out of sight; nothing is changed."""
    found = preview_hiding(session, subject)
    return TakedownPreview(
        subject=found.subject,
        kind=TakedownKind.SNAPSHOT if found.snapshot_id is not None else TakedownKind.PAGE,
        snapshot_id=found.snapshot_id,
        url_key=found.key,
        captures=found.captures,
        first_capture=found.first,
        last_capture=found.last,
        sources=found.sources,
        sample=[
            TakedownCapture(id=row.id, url=row.url, captured_at=row.captured_at, source=code, status_code=row.status)
            for row, code in found.sample
        ],
        in_force=[Takedown.of(row) for row in found.in_force],
    )


@router.post("", status_code=201, responses=answers(403, 404, 409, 413, 415, 422, 503))
def create_takedown(
    archive: ArchiveDep, turn: AdminWriteDep, response: Response, form: TakedownForm
) -> TakedownReceipt:
    """Take a capture, or a page with all its captures, out of sight: at once, for every reader, until it is undone."""
    with acting(turn.actor):
        done = hide(archive.database, archive.clock, form.subject, reason=form.reason, home=archive.home)
    assert done.withdrawal_id is not None
    response.headers["Location"] = f"/api/admin/takedowns/{done.withdrawal_id}"
    return TakedownReceipt(**_now(archive, done.withdrawal_id).model_dump(by_alias=False), captures=done.snapshots)


@router.get("/{id}", responses=answers(403, 404, 422, 503))
def get_takedown(session: SessionDep, id: TakedownId) -> Takedown:
    """Return one takedown."""
    return Takedown.of(find_withdrawal(session, id))


@router.post("/{id}/undo", responses=answers(403, 404, 409, 422, 503))
def undo_takedown(archive: ArchiveDep, turn: AdminWriteDep, id: TakedownId) -> TakedownReceipt:
    """Show again what was taken out of sight; 409 if that was done already."""
    with acting(turn.actor):
        done = unhide_by_id(archive.database, archive.clock, id, home=archive.home)
    return TakedownReceipt(**_now(archive, id).model_dump(by_alias=False), captures=done.snapshots)


def _now(archive: Archive, withdrawal_id: int) -> Takedown:
    with archive.database.read() as session:
        return Takedown.of(find_withdrawal(session, withdrawal_id))
