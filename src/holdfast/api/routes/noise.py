"""`/api/admin/noise`: captures that do not show their page, and manual labels for them."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Query
from pydantic import Field, StringConstraints

from holdfast.api.dependencies import AdminWriteDep, ArchiveDep, SessionDep, SourceCode, source_id_of
from holdfast.api.routing import LazyRouter
from holdfast.api.schemas.base import MAX_ID, RequestForm
from holdfast.auth.roles import Permission
from holdfast.db.audit_events import acting
from holdfast.noise import queries
from holdfast.noise.labels import RulingReceipt, set_label
from holdfast.noise.queries import NoiseList
from holdfast.noise.words import NoiseKind

router = LazyRouter(prefix="/api/admin/noise", tags=["admin"])
_KINDS = Literal["soft_404", "block_page", "consent_wall", "login_wall", "parked"]


class RulingForm(RequestForm):
    """The subject of a manual label, and the reason."""

    subject: Annotated[str, StringConstraints(min_length=1, max_length=8192)] = Field(
        description="A snapshot's id, or an address: all its captures, those to come too.", examples=["4194305"]
    )
    reason: Annotated[str, StringConstraints(min_length=1, max_length=2000)] = Field(
        description="Why; kept in the audit log.", examples=["it is the glossary's entry"]
    )


class MarkForm(RulingForm):
    """The kind of noise that a capture or page shows."""

    kind: _KINDS = Field(description="What it is.", examples=["soft_404"])


@router.get("", Permission.WATCH, errors=(404,))
def noise_list(
    session: SessionDep,
    source: SourceCode = None,
    kind: Annotated[NoiseKind | None, Query(description="Only these.")] = None,
    before: Annotated[int | None, Query(ge=0, le=MAX_ID, description="`nextBefore` of the answer before.")] = None,
    limit: Annotated[int, Query(ge=1, le=500, description="Captures of an answer.")] = 50,
) -> NoiseList:
    """Return captures that do not show their page, with the reason; repeat with `before` for more."""
    source_id = source_id_of(session, source)
    rows = queries.listed(session, source_id=source_id, kind=kind, before=before, limit=limit)
    return NoiseList(items=rows, next_before=rows[-1].id if len(rows) == limit else None)


@router.post("/mark", Permission.OPERATE, errors=(404,))
def mark(archive: ArchiveDep, turn: AdminWriteDep, form: MarkForm) -> RulingReceipt:
    """Label a capture, or a page with all its captures, as noise; overrides the classifier."""
    with acting(turn.actor):
        kind = NoiseKind(form.kind)
        return set_label(
            archive.database, archive.clock, form.subject, kind=kind, reason=form.reason, home=archive.home
        )


@router.post("/clear", Permission.OPERATE, errors=(404,))
def clear(archive: ArchiveDep, turn: AdminWriteDep, form: RulingForm) -> RulingReceipt:
    """Label a capture, or a page with all its captures, as not noise; overrides the classifier."""
    with acting(turn.actor):
        return set_label(
            archive.database, archive.clock, form.subject, kind=None, reason=form.reason, home=archive.home
        )
