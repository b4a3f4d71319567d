"""`/api/v1/executions/{id}`: the account of a run, and the rules that an operator adds while it runs."""

from __future__ import annotations

from fastapi import Request, Response
from sqlalchemy.orm import Session

from holdfast.api.dependencies import ArchiveDep, SessionDep
from holdfast.api.errors import ExecutionNotFound, answers
from holdfast.api.heavy import heavily
from holdfast.api.job_dependencies import FrontierDep, RunReportsDep
from holdfast.api.late_routes import LateRouter
from holdfast.api.routes.frontier import within
from holdfast.api.routes.jobs import ExecutionId
from holdfast.api.schemas.executions import ExclusionsForm, ExclusionsPreview, ExclusionsShown, RunReport
from holdfast.jobs.administration.run_exclusions import (
    RunExclusions,
    exclude_from_run,
    matched_urls,
    run_exclusions,
)

router = LateRouter(tags=["jobs"])
_PREVIEW_S = 3.0


@router.get("/api/v1/executions/{id}/report", responses=answers(400, 403, 404, 503), response_model=RunReport)
async def execution_report(request: Request, reports: RunReportsDep, id: ExecutionId) -> Response:
    """Return the account of a run: its addresses by outcome, reason, status, type, host and depth, and what was left
    out."""

    def work() -> Response:
        # All attempts of a run are counted: on a thread for heavy work.
        return Response(RunReport.of(reports.read(id)).model_dump_json(), media_type="application/json")

    return await heavily(request, work)


@router.get("/api/v1/executions/{id}/exclusions", responses=answers(400, 403, 404, 503))
def list_exclusions(session: SessionDep, id: ExecutionId) -> ExclusionsShown:
    """Return the patterns by which a run leaves addresses out, and whether more can be added now."""
    return ExclusionsShown.of(_exclusions(session, id))


def _exclusions(session: Session, execution_id: int) -> RunExclusions:
    found = run_exclusions(session, execution_id)
    if found is None:
        raise ExecutionNotFound
    return found


@router.post("/api/v1/executions/{id}/exclusions/preview", responses=answers(400, 403, 404, 413, 415, 422, 503))
def preview_exclusions(
    archive: ArchiveDep, session: SessionDep, id: ExecutionId, form: ExclusionsForm
) -> ExclusionsPreview:
    """Return how many of a run's queued addresses patterns match; nothing is changed.

    It looks at 50,000 at most and says whether that was all.
    """
    found = matched_urls(session, id, form.rules, goes_on=within(archive.clock, _PREVIEW_S))
    if found is None:
        raise ExecutionNotFound
    return ExclusionsPreview.of(found)


@router.put("/api/v1/executions/{id}/exclusions", responses=answers(400, 403, 404, 413, 415, 422, 503))
def set_exclusions(
    archive: ArchiveDep, frontier: FrontierDep, id: ExecutionId, form: ExclusionsForm
) -> ExclusionsShown:
    """Let a run under way leave out what patterns match, in the place of those that were added before.

    It hears of them within a second; what is queued and matches is not asked for any more. 400 if it does not run.
    """
    with archive.database.read() as session:
        before = _exclusions(session, id)
    with frontier.open() as runtime:
        return ExclusionsShown.of(exclude_from_run(runtime.raw_db, runtime.clock, before, form.rules))
