"""`/api/v1/executions/{id}`: the account of a run, and the rules that an operator adds while it runs."""

from __future__ import annotations

from contextlib import closing

from fastapi import Request, Response

from holdfast.api.dependencies import ArchiveDep
from holdfast.api.errors import ExecutionNotFound, answers
from holdfast.api.heavy import heavily
from holdfast.api.late_routes import LateRouter
from holdfast.api.routes.jobs import ExecutionId
from holdfast.api.schemas.executions import RunReport
from holdfast.db import connect
from holdfast.errors import NotFound
from holdfast.jobs.views.run_report import run_report

router = LateRouter(tags=["jobs"])


@router.get("/api/v1/executions/{id}/report", responses=answers(400, 403, 404, 503), response_model=RunReport)
async def execution_report(request: Request, archive: ArchiveDep, id: ExecutionId) -> Response:
    """Return the account of a run: its addresses by outcome, reason, status, type, host and depth, and what was left
    out."""

    def work() -> Response:
        # All attempts of a run are counted: on a thread for heavy work, with a connection of its own.
        with closing(connect(archive.settings.database)) as raw_db:
            try:
                found = run_report(raw_db, archive.clock, id)
            except NotFound as exc:
                raise ExecutionNotFound from exc
        return Response(RunReport.of(found).model_dump_json(), media_type="application/json")

    return await heavily(request, work)
