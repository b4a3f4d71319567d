"""`/api/admin/operations`: long-running work, its progress and result; verifications and rebuilds.

A route that starts an operation responds 202 with its URL, or 409 with the one that already does the same work.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Response
from pydantic import Field

from holdfast.api.dependencies import AdminWriteDep, SessionDep, source_of
from holdfast.api.errors import FieldRefused
from holdfast.api.routing import LazyRouter
from holdfast.api.schemas.base import MAX_ID, RequestForm, RowId
from holdfast.api.schemas.lists import DEFAULT_LIMIT, ListCursor, ListLimit, Piece, decode_id, piece_of
from holdfast.auth.roles import Permission
from holdfast.jobs.kinds import OperationKind
from holdfast.operations import long_running, queries
from holdfast.operations.long_running import RUN_STATES, OperationRequest, OperationState
from holdfast.operations.records import OperationRecord, operation_record
from holdfast.processes.directory_id import directory_id

router = LazyRouter(prefix="/api/admin", tags=["operations"])
OperationId = Annotated[RowId, Path(description="An operation's id.", examples=[7])]


@router.get("/operations", Permission.WATCH)
def list_operations(
    session: SessionDep,
    kind: Annotated[OperationKind | None, Query(description="Only these.")] = None,
    state: Annotated[OperationState | None, Query(description="Only these.")] = None,
    cursor: ListCursor = None,
    limit: ListLimit = DEFAULT_LIMIT,
) -> Piece[OperationRecord]:
    """Return operations, newest first."""
    run_state = state and RUN_STATES[state]
    rows = queries.listed_operations(session, kind=kind, state=run_state, before=decode_id(cursor), limit=limit + 1)
    return piece_of(rows, limit, operation_record, lambda row: row.execution.id)


@router.get("/operations/{id}", Permission.WATCH, errors=(404,))
def get_operation(session: SessionDep, id: OperationId) -> OperationRecord:
    """Return the progress and the result of an operation."""
    return operation_record(long_running.find(session, id))


@router.post("/operations/{id}/cancel", Permission.OPERATE, errors=(404, 409))
def cancel_operation(admin: AdminWriteDep, id: OperationId) -> OperationRecord:
    """Cancel a queued operation, or ask the running one to stop, which it does within seconds."""
    with admin.write() as session:
        return operation_record(long_running.cancel(session, admin.clock, id))


def begin(admin: AdminWriteDep, response: Response, request: OperationRequest) -> OperationRecord:
    """Queue an operation for a worker, and return it with its URL; raise OperationRunning if it already runs."""
    service = admin.job_service
    directory = directory_id(service.settings.home)
    with admin.write() as session:
        started = operation_record(long_running.start(session, service.clock, request, directory=directory))
    response.headers["Location"] = f"/api/admin/operations/{started.id}"
    return started


class VerificationForm(RequestForm, example={"source": "example", "quick": False}):
    """The files to verify, and how thoroughly."""

    source: str | None = Field(None, max_length=64, description="Only files of this source.")
    execution: int | None = Field(None, ge=0, le=MAX_ID, description="Only files of this execution.")
    quick: bool = Field(False, description="Only compare sizes; no file is read.")


@router.post("/verifications", Permission.OPERATE, errors=(404, 409, 413, 415), status_code=202)
def start_verification(admin: AdminWriteDep, response: Response, form: VerificationForm) -> OperationRecord:
    """Verify the digests of WARC files; the operation fails if a file is damaged or missing."""
    if form.source is not None and form.execution is not None:
        raise FieldRefused("execution", "name a source or an execution, not both")
    if form.source is not None:
        with admin.write() as session:
            source_of(session, form.source)
    subject = (
        f"the WARC files of {form.source}"
        if form.source is not None
        else f"the WARC files of execution {form.execution}"
        if form.execution is not None
        else "all WARC files"
    )
    parameters = form.model_dump(exclude_none=True)
    request = OperationRequest(OperationKind.VERIFY, flight="verify", subject=subject, parameters=parameters)
    return begin(admin, response, request)


class IndexRebuildForm(RequestForm, example={"source": "example"}):
    """The files to read again."""

    source: str | None = Field(None, max_length=64, description="Only files of this source; all by default.")


@router.post("/index/rebuild", Permission.OPERATE, errors=(404, 409, 413, 415), status_code=202)
def rebuild_index(admin: AdminWriteDep, response: Response, form: IndexRebuildForm) -> OperationRecord:
    """Register files whose rows were lost and index all files again with the same ids, without a gap for readers."""
    if form.source is not None:
        with admin.write() as session:
            source_of(session, form.source)
    subject = f"the index of {form.source}" if form.source else "the index of all files"
    parameters = form.model_dump(exclude_none=True)
    request = OperationRequest(OperationKind.REBUILD_INDEX, flight="index", subject=subject, parameters=parameters)
    return begin(admin, response, request)


@router.post("/search-index/rebuild", Permission.OPERATE, errors=(409,), status_code=202)
def rebuild_search_index(admin: AdminWriteDep, response: Response) -> OperationRecord:
    """Rebuild the search index from the database; the old one is used until the new one is complete."""
    request = OperationRequest(OperationKind.REBUILD_SEARCH, flight="search", subject="the search index", parameters={})
    return begin(admin, response, request)
