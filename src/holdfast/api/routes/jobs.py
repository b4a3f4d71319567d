"""`/api/v1/jobs` and `/api/v2/jobs`: jobs listed, made, changed, deleted, and moved from state to state."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response
from sqlalchemy.orm import Session

from holdfast.api.deps import SessionDep
from holdfast.api.errors import answers
from holdfast.api.hands import Hand, HandDep
from holdfast.api.roles import ADMIN
from holdfast.api.schemas.forms import MAX_ID, Words
from holdfast.api.schemas.jobs import (
    ForceRun,
    JobChanges,
    JobForm,
    JobList,
    JobMade,
    JobShown,
    JobStatsShown,
    Message,
)
from holdfast.db.models import Job
from holdfast.jobs.board.board import Upserted
from holdfast.jobs.listing import queries
from holdfast.jobs.listing.shapes import job_shape, stats_shape
from holdfast.jobs.listing.values import DEFAULT_LIMIT, MAX_OFFSET, JobFilter, ListedJob, bounded_limit, sort_word
from holdfast.jobs.operating.repair import reset_index
from holdfast.jobs.specs import JobNotFound, JobRefused, JobSpec
from holdfast.jobs.states import Action, State

router = APIRouter(tags=["jobs"], dependencies=[ADMIN])
_READ = answers(400, 403, 404, 503)
_CHANGED = answers(400, 403, 404, 413, 415, 503)
_COUNTED: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/json": {"schema": {"examples": [{state.value: 0 for state in State}]}}}}
}
JobId = Annotated[int, Path(ge=0, le=MAX_ID, description="A job's id.", examples=[1])]
Limit = Annotated[int, Query(description="Rows of a page; more than 250 count as 250.")]
Offset = Annotated[int, Query(description="Rows to leave out first.")]


@router.get("/api/v1/jobs", responses=_READ)
def list_jobs(
    session: SessionDep,
    limit: Limit = DEFAULT_LIMIT,
    offset: Offset = 0,
    status: Annotated[Words, Query(description="States, separated by commas.")] = "",
    source_id: Annotated[int | None, Query(ge=0, le=MAX_ID, description="Of this source.", examples=[1])] = None,
    search: Annotated[Words, Query(description="A part of a source's name or code, of a job's name or address.")] = "",
    sort_by: Annotated[
        str, Query(description="created_at, updated_at, status, source_name, next_run_at, last_run_at or type.")
    ] = "created_at",
    sort_order: Annotated[str, Query(description="asc or desc.")] = "desc",
) -> JobList:
    """Return jobs; an order that is none of ours counts as created_at, newest first (NC-004)."""
    wanted = JobFilter(
        states=_states(status), source_id=source_id, search=search.strip(), sort_by=sort_word(sort_by),
        descending=sort_order.lower() != "asc", limit=bounded_limit(limit), offset=min(max(offset, 0), MAX_OFFSET),
    )  # fmt: skip
    rows, total = queries.list_jobs(session, wanted)
    return JobList(
        jobs=[JobShown(**job_shape(row)) for row in rows], total=total, limit=wanted.limit, offset=wanted.offset,
        sort_by=wanted.sort_by, sort_order="desc" if wanted.descending else "asc",
    )  # fmt: skip


def _states(text: str) -> tuple[str, ...]:
    states = tuple(word.strip() for word in text.split(",") if word.strip())
    for state in states:
        if state not in tuple(State):
            raise JobRefused("status", f"{state[:40]!r} is none of {', '.join(State)}")
    return states


@router.post("/api/v1/jobs", status_code=201, responses=_CHANGED)
def upsert_job(hand: HandDep, form: JobForm, response: Response) -> JobMade:
    """Make the crawl job of a source, or give the one it has a new plan; one that runs goes on running (NC-003).

    Documented as the older way by document 003; there is no date at which it ends.
    """
    spec = JobSpec(
        source_id=form.source_id, url=form.url, name=form.name, interval_minutes=form.interval_minutes,
        interval_type=form.interval_type, schedule_enabled=form.schedule_enabled,
        adaptive_scheduling=form.adaptive_scheduling, max_retries=form.max_retries,
        retry_backoff_seconds=form.retry_backoff_seconds, config=form.config, details=form.metadata,
    )  # fmt: skip
    response.headers["Deprecation"] = "true"
    response.headers["Link"] = '</docs>; rel="deprecation"'
    # To say when is to replace a schedule; a wish that does not is none to end one.
    says_when = not form.model_fields_set.isdisjoint({"interval_minutes", "schedule_enabled"})
    with hand.write() as session:
        return _made(session, hand.desk.board.upsert(session, spec, replaces_schedule=says_when))


def _made(session: Session, done: Upserted) -> JobMade:
    return JobMade(**job_shape(shown(session, done.job.id)), created=done.created, warnings=list(done.warnings))


@router.get("/api/v1/jobs/status-counts", responses=_COUNTED | _READ)
def job_status_counts(session: SessionDep) -> dict[str, int]:
    """Return how many jobs are in each of the seven states (NC-010)."""
    found = queries.state_counts(session)
    return {state.value: found.get(state.value, 0) for state in State}


@router.get("/api/v1/jobs/{id}", responses=_READ)
def job_detail(session: SessionDep, id: JobId) -> JobShown:
    """Return one job."""
    return JobShown(**job_shape(shown(session, id)))


def shown(session: Session, job_id: int) -> ListedJob:
    """Return a job that document 003 knows; JobNotFound if there is none, or if no scheduler runs it."""
    found = queries.shown_job(session, job_id)
    if found is None:
        raise JobNotFound
    return found


@router.put("/api/v1/jobs/{id}", responses=_CHANGED)
def change_job(hand: HandDep, id: JobId, form: JobChanges) -> JobMade:
    """Give a job a new plan; what is left out stays as it is (NC-005)."""
    with hand.write() as session:
        job, _ = hand.desk.board.hold(session, id)
        shown(session, id)
        return _made(session, hand.desk.board.edit(session, id, _changed(job, form)))


def _changed(job: Job, form: JobChanges) -> JobSpec:
    """Return the plan of a job with what somebody wants to be otherwise."""
    wished = form.model_dump(include=form.model_fields_set - {"type", "source_name"})
    if wished.get("source_id", job.source_id) is None:
        del wished["source_id"]
    if "metadata" in wished:
        wished["details"] = wished.pop("metadata")
    return replace(JobSpec.of(job), **wished)


@router.delete("/api/v1/jobs/{id}", responses=_CHANGED)
def delete_job(hand: HandDep, id: JobId) -> Message:
    """Remove a job; its runs and what they captured stay. One that runs must be cancelled first (NC-005)."""
    with hand.write() as session:
        shown(session, id)
        hand.desk.board.delete(session, id)
    return Message(message="Job deleted")


@router.post("/api/v1/jobs/{id}/pause", responses=_CHANGED)
def pause_job(hand: HandDep, id: JobId) -> JobShown:
    """Let a scheduled job wait until it is resumed (NC-006)."""
    return _acted(hand, id, Action.PAUSE)


@router.post("/api/v1/jobs/{id}/resume", responses=_CHANGED)
def resume_job(hand: HandDep, id: JobId) -> JobShown:
    """Let a paused job go on, in the emptiest slot."""
    return _acted(hand, id, Action.RESUME)


@router.post("/api/v1/jobs/{id}/cancel", responses=_CHANGED)
def cancel_job(hand: HandDep, id: JobId) -> JobShown:
    """End a job for good; what runs is drained, and what it captured is kept."""
    return _acted(hand, id, Action.CANCEL)


@router.post("/api/v1/jobs/{id}/retry", responses=_CHANGED)
def retry_job(hand: HandDep, id: JobId) -> JobShown:
    """Let a failed job try again at once, with all its retries; where only the index failed, it alone is computed."""
    with hand.write() as session:
        shown(session, id)
        if not reset_index(session, hand.desk.clock, id):
            hand.desk.board.act(session, id, Action.RETRY)
        return JobShown(**job_shape(shown(session, id)))


def _acted(hand: Hand, job_id: int, action: Action) -> JobShown:
    with hand.write() as session:
        hand.desk.board.act(session, job_id, action)
        return JobShown(**job_shape(shown(session, job_id)))


@router.post("/api/v2/jobs/{id}/force-run", status_code=202, responses=_CHANGED)
def force_run(hand: HandDep, id: JobId) -> ForceRun:
    """Let a scheduled job run now; its rhythm stays as it is (NC-007)."""
    with hand.write() as session:
        hand.desk.board.act(session, id, Action.FORCE_RUN)
    return ForceRun(message="Job queued for immediate execution", job_id=id)


@router.get("/api/v1/jobs/{id}/stats", responses=_READ)
def job_stats(session: SessionDep, id: JobId) -> JobStatsShown:
    """Return a job's history in a few figures (NC-009)."""
    return JobStatsShown(**stats_shape(shown(session, id)))
