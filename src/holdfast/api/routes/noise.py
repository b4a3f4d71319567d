"""`/api/admin/noise`: captures that show something else than their page, and what persons rule of them."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from holdfast.api.dependencies import ArchiveDep, SessionDep, SourceCode, source_id_of
from holdfast.api.errors import answers
from holdfast.api.job_dependencies import AdminWriteDep
from holdfast.api.late_routes import LateRouter
from holdfast.api.schemas.base import MAX_ID
from holdfast.api.schemas.noise import MarkForm, NoiseCapture, NoiseList, RulingForm, RulingReceipt
from holdfast.db.audit_events import acting
from holdfast.noise import queries
from holdfast.noise.rulings import GivenRuling, rule
from holdfast.noise.words import NoiseKind

router = LateRouter(prefix="/api/admin/noise", tags=["admin"])


@router.get("", responses=answers(403, 404, 422, 503))
def noise_list(
    session: SessionDep,
    source: SourceCode = None,
    kind: Annotated[NoiseKind | None, Query(description="Only these.")] = None,
    before: Annotated[int | None, Query(ge=0, le=MAX_ID, description="`nextBefore` of the answer before.")] = None,
    limit: Annotated[int, Query(ge=1, le=500, description="Captures of an answer.")] = 50,
) -> NoiseList:
    """Return captures that show something else than their page, and why; ask again with `before` for more."""
    source_id = source_id_of(session, source)
    rows = queries.listed(session, source_id=source_id, kind=kind, before=before, limit=limit)
    return NoiseList(
        items=[NoiseCapture.of(row) for row in rows], next_before=rows[-1].id if len(rows) == limit else None
    )


@router.post("/mark", responses=answers(403, 404, 422, 503))
def mark(archive: ArchiveDep, turn: AdminWriteDep, form: MarkForm) -> RulingReceipt:
    """Rule that a capture, or a page with all its captures, shows something else; it wins over what is found."""
    with acting(turn.actor):
        return _receipt(
            rule(
                archive.database,
                archive.clock,
                form.subject,
                kind=NoiseKind(form.kind),
                reason=form.reason,
                home=archive.home,
            )
        )


@router.post("/clear", responses=answers(403, 404, 422, 503))
def clear(archive: ArchiveDep, turn: AdminWriteDep, form: RulingForm) -> RulingReceipt:
    """Rule that a capture, or a page with all its captures, shows the page; it wins over what is found."""
    with acting(turn.actor):
        return _receipt(
            rule(archive.database, archive.clock, form.subject, kind=None, reason=form.reason, home=archive.home)
        )


def _receipt(done: GivenRuling) -> RulingReceipt:
    return RulingReceipt(subject=done.subject, noise=done.kind, snapshots=done.snapshots)
