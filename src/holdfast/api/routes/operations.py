"""`/api/admin/operations`: work that takes long, watched and cancelled; and what starts it: verification, rebuilds.

What starts one answers 202 with its address, or 409 if the same work is under way, which it names.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Response

from holdfast.api.dependencies import SessionDep, source_of
from holdfast.api.errors import FieldRefused, answers
from holdfast.api.job_dependencies import AdminWriteDep, OperationsDep
from holdfast.api.late_routes import LateRouter
from holdfast.api.schemas.base import RowId
from holdfast.api.schemas.lists import DEFAULT_LIMIT, ListCursor, Listed, ListLimit, decode_cursor, encode_cursor
from holdfast.api.schemas.operations import IndexRebuildForm, OperationShown, VerificationForm
from holdfast.coordination.directory_id import directory_id
from holdfast.operations import long_running, operation_queries
from holdfast.operations.launching import OperationLauncher
from holdfast.operations.long_running import OperationKind, OperationState, OperationWish
from holdfast.operations.operation_queries import OperationFilter

router = LateRouter(prefix="/api/admin", tags=["operations"])
OperationId = Annotated[RowId, Path(description="An operation's id.", examples=[7])]
_STARTED = answers(403, 404, 409, 413, 415, 422, 503)


@router.get("/operations", responses=answers(403, 422, 503))
def list_operations(
    session: SessionDep,
    kind: Annotated[OperationKind | None, Query(description="Only these.")] = None,
    state: Annotated[OperationState | None, Query(description="Only these.")] = None,
    cursor: ListCursor = None,
    limit: ListLimit = DEFAULT_LIMIT,
) -> Listed[OperationShown]:
    """Return operations, newest first."""
    place = decode_cursor(cursor, int)
    before = int(place[0]) if place else None
    wanted = OperationFilter(kind=kind, state=state, before=before, limit=limit + 1)
    rows = operation_queries.listed_operations(session, wanted)
    after = encode_cursor(rows[limit - 1].id) if len(rows) > limit else None
    return Listed(items=[OperationShown.of(row) for row in rows[:limit]], next=after, limit=limit)


@router.get("/operations/{id}", responses=answers(403, 404, 422, 503))
def get_operation(session: SessionDep, id: OperationId) -> OperationShown:
    """Return how far an operation is, and what came of it."""
    return OperationShown.of(long_running.find(session, id))


@router.post("/operations/{id}/cancel", responses=answers(403, 404, 409, 422, 503))
def cancel_operation(admin: AdminWriteDep, id: OperationId) -> OperationShown:
    """End an operation that waits, or ask the one that runs to leave off: it does so within seconds."""
    with admin.write() as session:
        return OperationShown.of(long_running.cancel(session, admin.job_service.clock, id))


def begin(
    admin: AdminWriteDep, operations: OperationLauncher, response: Response, wish: OperationWish
) -> OperationShown:
    """Queue an operation and have it started at once; answer with it and its address. OperationRunning."""
    service = admin.job_service
    directory = directory_id(service.settings.home)
    with admin.write() as session:
        begun = OperationShown.of(long_running.start(session, service.clock, wish, directory=directory))
    # Behind the commit: before it there would be nothing to start.
    operations.wake()
    response.headers["Location"] = f"/api/admin/operations/{begun.id}"
    return begun


@router.post("/verifications", status_code=202, responses=_STARTED)
def start_verification(
    admin: AdminWriteDep, operations: OperationsDep, response: Response, form: VerificationForm
) -> OperationShown:
    """Read WARC files and hold them against their digests; the operation has failed if one is damaged or missing."""
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
    wish = OperationWish(kind=OperationKind.VERIFY, flight="verify", subject=subject, parameters=parameters)
    return begin(admin, operations, response, wish)


@router.post("/index/rebuild", status_code=202, responses=_STARTED)
def rebuild_index(
    admin: AdminWriteDep, operations: OperationsDep, response: Response, form: IndexRebuildForm
) -> OperationShown:
    """Register files whose rows were lost and read all files again, with the same ids; readers see no gap."""
    if form.source is not None:
        with admin.write() as session:
            source_of(session, form.source)
    subject = f"the index of {form.source}" if form.source else "the index of all files"
    parameters = form.model_dump(exclude_none=True)
    wish = OperationWish(kind=OperationKind.REBUILD_INDEX, flight="index", subject=subject, parameters=parameters)
    return begin(admin, operations, response, wish)


@router.post("/search-index/rebuild", status_code=202, responses=answers(403, 409, 422, 503))
def rebuild_search_index(admin: AdminWriteDep, operations: OperationsDep, response: Response) -> OperationShown:
    """Make the search index anew from the database; the old one serves until the new one is whole."""
    wish = OperationWish(kind=OperationKind.REBUILD_SEARCH, flight="search", subject="the search index", parameters={})
    return begin(admin, operations, response, wish)
