"""`/api/snapshots/raw/{id}` (HA-057): one capture with our bar, rewritten and sandboxed like every archived page."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from holdfast.api.deps import ArchiveDep
from holdfast.api.errors import answers
from holdfast.api.replaying import asking_of, replay_of, respond
from holdfast.api.roles import PUBLIC

router = APIRouter(tags=["replay"], dependencies=[PUBLIC])


@router.head("/api/snapshots/raw/{snapshot_id}", include_in_schema=False, name="snapshot_raw_head")
@router.get("/api/snapshots/raw/{snapshot_id}", response_class=HTMLResponse, responses=answers(404, 422))
def snapshot_raw(snapshot_id: int, request: Request, archive: ArchiveDep) -> Response:
    """Show a capture as it was, with a bar that says what it is; 404 if the snapshot, its file or record is missing."""
    return respond(replay_of(archive).raw(snapshot_id, asking_of(request, archive)))
