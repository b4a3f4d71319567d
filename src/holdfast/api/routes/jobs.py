"""`/api/v1/jobs` and `/api/v2/jobs`: jobs listed, made, changed, deleted, and moved from state to state."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from fastapi import Path, Query, Response
from sqlalchemy.orm import Session

from holdfast.api.dependencies import SessionDep
from holdfast.api.errors import ExecutionNotFound, answers
from holdfast.api.job_dependencies import AdminWrite, AdminWriteDep, JobServiceDep, WriteTurnsDep
from holdfast.api.late_routes import LateRouter
from holdfast.api.schemas.base import MAX_ID, Words
from holdfast.api.schemas.jobs import (
    EventList,
    EventShown,
    ExecutionList,
    ExecutionShown,
    ForceRun,
    JobChanges,
    JobForm,
    JobList,
    JobMade,
    JobShown,
    JobStatsShown,
    Message,
)
from holdfast.api.schemas.scheduling import DistributionShown, MetricsShown, RebalanceShown, SyncShown
from holdfast.db.models import Job
from holdfast.jobs.administration.actions import Upserted, reset_index
from holdfast.jobs.administration.source_jobs import sync_in_portions
from holdfast.jobs.journal import last_event, payload, read_events
from holdfast.jobs.schedule_queries import last_scheduled_at
from holdfast.jobs.slots import preview_rebalance, rebalance, record_rebalance, show_distribution
from holdfast.jobs.specs import JobRefused, JobSpec
from holdfast.jobs.states import IllegalTransition, JobAction, State
from holdfast.jobs.store import JobNotFound
from holdfast.jobs.views import listing
from holdfast.jobs.views.dialects import distribution_object, metrics_object, rebalance_object, sync_object
from holdfast.jobs.views.job_view import execution_view, job_view, stats_view
from holdfast.jobs.views.listing import (
    DEFAULT_LIMIT,
    MAX_OFFSET,
    JobFilter,
    ListedJob,
    bounded_limit,
    count_metrics,
    sort_word,
)
from holdfast.sources.schedule import read_schedule

router = LateRouter(tags=["jobs"])
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
    type: Annotated[Words, Query(description="Of this type.", examples=["crawl"])] = "",
    search: Annotated[Words, Query(description="A part of a source's name or code, of a job's name or address.")] = "",
    sort_by: Annotated[
        str, Query(description="created_at, updated_at, status, source_name, next_run_at, last_run_at or type.")
    ] = "created_at",
    sort_order: Annotated[str, Query(description="asc or desc.")] = "desc",
) -> JobList:
    """Return jobs. An unknown order means `created_at`, the newest first."""
    wanted = JobFilter(
        states=_states(status),
        source_id=source_id,
        kind=type or None,
        search=search.strip(),
        sort_by=sort_word(sort_by),
        descending=sort_order.lower() != "asc",
        limit=bounded_limit(limit),
        # A database counts off every row that is left out: an absurd offset would cost as much as reading them all.
        offset=min(max(offset, 0), MAX_OFFSET),
    )
    rows, total = listing.list_jobs(session, wanted)
    return JobList(
        jobs=[JobShown(**job_view(row)) for row in rows],
        total=total,
        limit=wanted.limit,
        offset=wanted.offset,
        sort_by=wanted.sort_by,
        sort_order="desc" if wanted.descending else "asc",
    )


def _states(text: str) -> tuple[str, ...]:
    states = tuple(word.strip() for word in text.split(",") if word.strip())
    for state in states:
        if state not in tuple(State):
            raise JobRefused("status", f"{state[:40]!r} is none of {', '.join(State)}")
    return states


@router.post("/api/v1/jobs", status_code=201, responses=_CHANGED)
def upsert_job(admin: AdminWriteDep, form: JobForm, response: Response) -> JobMade:
    """Make the crawl job of a source, or give the one it has a new plan; one that runs goes on running.

    It is marked as the older way to make a job; there is no date at which it ends.
    """
    spec = JobSpec(
        source_id=form.source_id,
        url=form.url,
        name=form.name,
        interval_minutes=form.interval_minutes,
        interval_type=form.interval_type,
        schedule_enabled=form.schedule_enabled,
        adaptive_scheduling=form.adaptive_scheduling,
        max_retries=form.max_retries,
        retry_backoff_seconds=form.retry_backoff_seconds,
        config=form.config,
        details=form.metadata,
    )
    if form.schedule:
        spec = spec.at(read_schedule(form.schedule, now=admin.job_service.clock.now()))
    response.headers["Deprecation"] = "true"
    response.headers["Link"] = '</docs>; rel="deprecation"'
    # To say when is to replace a schedule; a wish that does not is none to end one.
    says_when = not form.model_fields_set.isdisjoint({"interval_minutes", "schedule_enabled", "schedule"})
    with admin.write() as session:
        return _made(session, admin.job_service.actions.upsert(session, spec, replaces_schedule=says_when))


def _made(session: Session, done: Upserted) -> JobMade:
    return JobMade(**job_view(shown(session, done.job.id)), created=done.created, warnings=list(done.warnings))


@router.get("/api/v1/jobs/status-counts", responses=_COUNTED | _READ)
def job_status_counts(session: SessionDep) -> dict[str, int]:
    """Return how many jobs are in each of the seven states."""
    found = listing.state_counts(session)
    return {state.value: found.get(state.value, 0) for state in State}


@router.get("/api/v1/jobs/{id}", responses=_READ)
def job_detail(session: SessionDep, id: JobId) -> JobShown:
    """Return one job."""
    return JobShown(**job_view(shown(session, id)))


def shown(session: Session, job_id: int) -> ListedJob:
    """Return a job that these routes show; JobNotFound if there is none, or if no scheduler runs it."""
    found = listing.shown_job(session, job_id)
    if found is None:
        raise JobNotFound
    return found


@router.put("/api/v1/jobs/{id}", responses=_CHANGED)
def change_job(admin: AdminWriteDep, id: JobId, form: JobChanges) -> JobMade:
    """Give a job a new plan; what is left out stays as it is."""
    with admin.write() as session:
        job, _ = admin.job_service.actions.hold(session, id)
        spec = _changed(job, form)
        if form.schedule:
            spec = spec.at(read_schedule(form.schedule, now=admin.job_service.clock.now()))
        return _made(session, admin.job_service.actions.edit(session, id, spec))


def _changed(job: Job, form: JobChanges) -> JobSpec:
    """Return the plan of a job with what the request wants to be otherwise."""
    wished = form.model_dump(include=form.model_fields_set - {"type", "source_name", "schedule"})
    # Another interval is no longer the one of its dates.
    if not wished.keys().isdisjoint({"interval_minutes", "interval_type"}):
        wished["anchor"] = None
    # null counts as left out: every job has a source.
    if wished.get("source_id", job.source_id) is None:
        del wished["source_id"]
    if "metadata" in wished:
        wished["details"] = wished.pop("metadata")
    return replace(JobSpec.of(job), **wished)


@router.delete("/api/v1/jobs/{id}", responses=_CHANGED)
def delete_job(admin: AdminWriteDep, id: JobId) -> Message:
    """Remove a job; its runs and what they captured stay. One that runs must be cancelled first."""
    with admin.write() as session:
        admin.job_service.actions.delete(session, id)
    return Message(message="Job deleted")


@router.post("/api/v1/jobs/{id}/pause", responses=_CHANGED)
def pause_job(admin: AdminWriteDep, id: JobId) -> JobShown:
    """Let a scheduled job wait until it is resumed."""
    return _acted(admin, id, JobAction.PAUSE)


@router.post("/api/v1/jobs/{id}/resume", responses=_CHANGED)
def resume_job(admin: AdminWriteDep, id: JobId) -> JobShown:
    """Let a paused job go on, in the emptiest slot."""
    return _acted(admin, id, JobAction.RESUME)


@router.post("/api/v1/jobs/{id}/cancel", responses=_CHANGED)
def cancel_job(admin: AdminWriteDep, id: JobId) -> JobShown:
    """End a job for good; what runs is drained, and what it captured is kept."""
    return _acted(admin, id, JobAction.CANCEL)


@router.post("/api/v1/jobs/{id}/retry", responses=_CHANGED)
def retry_job(admin: AdminWriteDep, id: JobId) -> JobShown:
    """Let a failed job try again at once, with all its retries; where only the index failed, it alone is computed."""
    with admin.write() as session:
        shown(session, id)
        if not reset_index(session, admin.job_service.clock, id):
            _act(admin, session, id, JobAction.RETRY)
        return JobShown(**job_view(shown(session, id)))


# What can be done with a job in each state, where something else was asked for.
_NEXT = {
    State.PENDING.value: "it is queued, and begins when a worker is free",
    State.SCHEDULED.value: "let it run now with POST /api/v2/jobs/{id}/force-run",
    State.RUNNING.value: "it runs now; let its run wait with POST /api/admin/crawls/pause, or end the job with "
    "POST /api/v1/jobs/{id}/cancel",
    State.PAUSED.value: "let it go on with POST /api/v1/jobs/{id}/resume",
    State.COMPLETED.value: "it has had its runs; ask for another with POST /api/v1/jobs for the same source",
    State.FAILED.value: "give it another try with POST /api/v1/jobs/{id}/retry",
    State.CANCELLED.value: "it stays cancelled; make another with POST /api/v1/jobs",
}


def _act(admin: AdminWrite, session: Session, job_id: int, action: JobAction) -> None:
    """Do it; IllegalTransition says what can be done instead."""
    try:
        admin.job_service.actions.act(session, job_id, action)
    except IllegalTransition as exc:
        latest = shown(session, job_id).latest
        if latest is not None and latest.paused_at is not None:
            raise exc.with_hint("its run is paused; let that go on with POST /api/admin/crawls/resume") from exc
        raise exc.with_hint(_NEXT[exc.state].format(id=job_id)) from exc


def _acted(admin: AdminWrite, job_id: int, action: JobAction) -> JobShown:
    with admin.write() as session:
        _act(admin, session, job_id, action)
        return JobShown(**job_view(shown(session, job_id)))


@router.post("/api/v2/jobs/{id}/force-run", status_code=202, responses=_CHANGED)
def force_run(admin: AdminWriteDep, id: JobId) -> ForceRun:
    """Let a scheduled job run now; its rhythm stays as it is."""
    with admin.write() as session:
        _act(admin, session, id, JobAction.FORCE_RUN)
    return ForceRun(message="Job queued for immediate execution", job_id=id)


@router.get("/api/v1/jobs/{id}/stats", responses=_READ)
def job_stats(session: SessionDep, id: JobId) -> JobStatsShown:
    """Return a job's history in a few figures."""
    return JobStatsShown(**stats_view(shown(session, id)))


_EVENTS = 1000
ExecutionId = Annotated[int, Path(ge=0, le=MAX_ID, description="An execution's id.", examples=[1])]


@router.get("/api/v1/jobs/{id}/executions", responses=_READ)
def job_executions(session: SessionDep, id: JobId, limit: Limit = DEFAULT_LIMIT, offset: Offset = 0) -> ExecutionList:
    """Return a job's runs, newest first."""
    shown(session, id)
    limit, offset = bounded_limit(limit), min(max(offset, 0), MAX_OFFSET)
    rows, total = listing.executions_of(session, job_id=id, limit=limit, offset=offset)
    waits = listing.awaited_machines(session, rows)
    runs = [ExecutionShown(**execution_view(row, awaited=waits.get(row.id))) for row in rows]
    return ExecutionList(executions=runs, total=total, limit=limit, offset=offset)


@router.get("/api/v1/executions/{id}", responses=_READ)
def execution_detail(session: SessionDep, id: ExecutionId) -> ExecutionShown:
    """Return one run, of an ad-hoc crawl or an import too; what it counts while it runs is a few seconds old."""
    row = listing.execution(session, id)
    if row is None:
        raise ExecutionNotFound
    awaited = listing.awaited_machines(session, [row]).get(id)
    return ExecutionShown(**execution_view(row, listing.counts_of(session, row), awaited=awaited))


@router.get("/api/v1/events", responses=_READ)
def events(
    session: SessionDep,
    after: Annotated[int, Query(ge=0, le=MAX_ID, description="The last event that was seen.")] = 0,
    job_id: Annotated[int | None, Query(ge=0, le=MAX_ID, description="Of this job only.", examples=[1])] = None,
    limit: Annotated[int, Query(ge=1, le=_EVENTS, description="Events of an answer.")] = 100,
) -> EventList:
    """Return what happened to jobs after an event, oldest first: ask again with `next_after` to follow."""
    # Before the events are read: one that comes between the two is asked for again, never missed.
    newest = last_event(session)
    rows = read_events(session, after=after, job_id=job_id, limit=limit)
    found = [EventShown(id=row.id, event=row.name, data=payload(row)) for row in rows]
    # With fewer than asked for, everything up to the newest was looked at: other jobs' events are not asked for again.
    seen = max(after, newest) if len(rows) < limit else rows[-1].id
    return EventList(events=found, next_after=max(seen, rows[-1].id) if rows else seen, last_id=newest)


scheduler_router = LateRouter(tags=["scheduler"])
_ANSWERS = answers(400, 403, 413, 415, 503)


@scheduler_router.get("/api/v1/scheduler/metrics", responses=_ANSWERS)
def scheduler_metrics(session: SessionDep, job_service: JobServiceDep) -> MetricsShown:
    """Return how many jobs are in which state, and how the runs of the last day went."""
    job_service.look(session)
    found = count_metrics(session, now=job_service.clock.now(), last_check_at=last_scheduled_at(session))
    return MetricsShown.model_validate(metrics_object(found))


@scheduler_router.get("/api/v1/scheduler/distribution", responses=_ANSWERS)
def scheduler_distribution(session: SessionDep, job_service: JobServiceDep) -> DistributionShown:
    """Return how the runs of the coming 24 hours lie over the hours of the day, UTC."""
    job_service.look(session)
    return DistributionShown.model_validate(
        distribution_object(show_distribution(session, now=job_service.clock.now()))
    )


@scheduler_router.post("/api/v1/scheduler/rebalance/preview", responses=_ANSWERS)
def preview_now(session: SessionDep, job_service: JobServiceDep) -> RebalanceShown:
    """Return what a rebalance would do now; nothing is changed."""
    job_service.look(session)
    return RebalanceShown.model_validate(rebalance_object(preview_rebalance(session, now=job_service.clock.now())))


@scheduler_router.post("/api/v1/scheduler/rebalance", responses=_ANSWERS)
def rebalance_now(admin: AdminWriteDep) -> RebalanceShown:
    """Move jobs into emptier slots, as the preview says; one to which something happened meanwhile stays."""
    job_service = admin.job_service
    # Only to take the database's clock: the moves open their own transactions, some hundred at a time.
    with job_service.database.read() as session:
        job_service.look(session)
    done = rebalance(job_service.database, now=job_service.clock.now())
    with admin.write() as session:
        record_rebalance(session, job_service.clock, done)
    return RebalanceShown.model_validate(rebalance_object(done))


@scheduler_router.post("/api/v1/admin/sync-enabled-sources", responses=_ANSWERS, tags=["sources"])
def sync_sources(turns: WriteTurnsDep) -> SyncShown:
    """Give every enabled source a crawl job that has none, and resume what its source's absence had paused."""
    job_service = turns.job_service
    done = sync_in_portions(
        turns.write,
        job_service.clock,
        job_service.actions,
        interval_minutes=job_service.settings.jobs.auto_interval_minutes,
    )
    return SyncShown.model_validate(sync_object(done))
