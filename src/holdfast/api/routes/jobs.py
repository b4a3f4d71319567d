"""`/api/v1/jobs` and `/api/v2/jobs`: list, create, change and delete jobs, and change their state."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import Path, Query, Response
from pydantic import Field
from sqlalchemy.orm import Session

from holdfast.api.dependencies import AdminWrite, AdminWriteDep, ArchiveDep, JobServiceDep, SessionDep, WriteTurnsDep
from holdfast.api.routing import LazyRouter
from holdfast.api.schemas.base import MAX_ID, RequestForm, Words
from holdfast.api.schemas.source_config import SourceConfiguration
from holdfast.auth.roles import Permission
from holdfast.db.models import Job
from holdfast.jobs.administration.actions import Upserted, reset_index
from holdfast.jobs.administration.source_jobs import SyncReport, sync_enabled_sources
from holdfast.jobs.journal import last_event, payload, read_events
from holdfast.jobs.records import (
    EventList,
    ExecutionDetail,
    ExecutionList,
    ForceRun,
    JobEventRecord,
    JobList,
    JobRecord,
    JobStats,
    JobUpserted,
    Message,
    detailed_execution,
    job_record,
    stats_record,
)
from holdfast.jobs.schedule_queries import last_scheduled_at
from holdfast.jobs.slots import (
    Distribution,
    Rebalance,
    preview_rebalance,
    rebalance,
    record_rebalance,
    show_distribution,
)
from holdfast.jobs.specs import JobRefused, JobSpec
from holdfast.jobs.states import IllegalTransition, JobAction, State
from holdfast.jobs.store import ExecutionNotFound, locked_both
from holdfast.jobs.views import listing
from holdfast.jobs.views.listing import (
    DEFAULT_LIMIT,
    MAX_OFFSET,
    JobFilter,
    SchedulerMetrics,
    bounded_limit,
    count_metrics,
    shown_job,
    sort_word,
)
from holdfast.jobs.waiting import waits_of
from holdfast.records import from_row
from holdfast.sources.schedule import read_schedule

router = LazyRouter(tags=["jobs"])
_COUNTED: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/json": {"schema": {"examples": [{state.value: 0 for state in State}]}}}}
}
JobId = Annotated[int, Path(ge=0, le=MAX_ID, description="A job's id.", examples=[1])]
Limit = Annotated[int, Query(description="Rows of a page; more than 250 count as 250.")]
Offset = Annotated[int, Query(description="Rows to leave out first.")]


@router.get("/api/v1/jobs", Permission.WATCH, errors=(404,))
def list_jobs(
    archive: ArchiveDep,
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
    """Return jobs. An unknown order means `created_at`, newest first."""
    wanted = JobFilter(
        states=_states(status),
        source_id=source_id,
        kind=type or None,
        search=search.strip(),
        sort_by=sort_word(sort_by),
        descending=sort_order.lower() != "asc",
        limit=bounded_limit(limit),
        # A database counts every skipped row: an absurd offset would cost as much as reading them all.
        offset=min(max(offset, 0), MAX_OFFSET),
    )
    rows, total = listing.list_jobs(session, wanted)
    waits = waits_of(archive.settings, archive.clock, (row.latest for row in rows))
    return JobList(
        jobs=[job_record(row, waits) for row in rows],
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
            raise JobRefused("status", f"{state[:40]!r} is not one of {', '.join(State)}")
    return states


class JobChanges(RequestForm, example={"interval_minutes": 12, "interval_type": "hours"}):
    """Changes of a job; other fields keep their values."""

    source_id: int | None = Field(None, ge=0, le=MAX_ID, description="A job stays with its source.")
    url: str | None = Field(None, max_length=8192, description="The start page, a seed; null: the source's first.")
    type: Literal["crawl"] | None = Field(None, description="It stays as it is.")
    name: str | None = Field(None, max_length=200, description="For people; null: it has none.")
    source_name: str | None = Field(None, max_length=200, description="Not read: a source has its own name.")
    interval_minutes: int | None = Field(None, description="In units of `interval_type`; null: the job runs once.")
    interval_type: str = Field("minutes", description="minutes, hours or days.")
    schedule: str | None = Field(
        None,
        max_length=200,
        description="In words instead of the interval: once, every 6 hours, monthly on day 31 at 03:00 Europe/Paris.",
    )
    schedule_enabled: bool = Field(False, description="Whether it recurs; that needs an interval.")
    adaptive_scheduling: bool = Field(True, description="Whether a start page that stays the same lengthens the wait.")
    max_retries: int = Field(3, description="0 to 100.")
    retry_backoff_seconds: int = Field(60, description="0 to 3600; doubled for each further try.")
    config: SourceConfiguration = Field(
        default_factory=dict,
        description="Fields that differ from the source, replaced as a whole; groups join the source's.",
    )
    metadata: dict[str, Any] = Field(
        default_factory=dict, description="Kept and shown, never read; replaced as a whole."
    )


class JobForm(
    JobChanges,
    example={
        "source_id": 1,
        "url": "https://example.org/",
        "interval_minutes": 6,
        "interval_type": "hours",
        "schedule_enabled": True,
    },
):
    """The crawl job of a source, to create or change."""

    source_id: int = Field(ge=0, le=MAX_ID, description="The source's id.")
    url: str | None = Field(
        None,
        min_length=1,
        max_length=8192,
        description="The start page: a seed besides the source's, which need not have any then; left out: its first.",
    )
    type: Literal["crawl"] = Field("crawl", description="Other kinds are made by their own commands.")


@router.post("/api/v1/jobs", Permission.OPERATE, errors=(404, 413, 415), status_code=201)
def upsert_job(admin: AdminWriteDep, form: JobForm, response: Response) -> JobUpserted:
    """Create the source's crawl job, or update the existing one. A running job is not interrupted.

    It is marked as the older way to create a job, but no end date is planned.
    """
    given = form.model_dump(exclude={"type", "source_name", "schedule", "metadata"})
    spec = JobSpec(**given, details=form.metadata)
    if form.schedule:
        spec = spec.at(read_schedule(form.schedule, now=admin.clock.now()))
    response.headers["Deprecation"] = "true"
    response.headers["Link"] = '</docs>; rel="deprecation"'
    # A request that names a time replaces the schedule; one that does not leaves it as it is.
    says_when = not form.model_fields_set.isdisjoint({"interval_minutes", "schedule_enabled", "schedule"})
    with admin.write() as session:
        return _made(session, admin.actions.upsert(session, spec, replaces_schedule=says_when))


def _made(session: Session, done: Upserted) -> JobUpserted:
    made = job_record(shown_job(session, done.job.id))
    return from_row(JobUpserted, made, created=done.created, warnings=list(done.warnings))


@router.get("/api/v1/jobs/status-counts", Permission.WATCH, errors=(404,), responses=_COUNTED)
def job_status_counts(session: SessionDep) -> dict[str, int]:
    """Return the number of jobs in each of the seven states."""
    found = listing.state_counts(session)
    return {state.value: found.get(state.value, 0) for state in State}


@router.get("/api/v1/jobs/{id}", Permission.WATCH, errors=(404,))
def job_detail(archive: ArchiveDep, session: SessionDep, id: JobId) -> JobRecord:
    """Return one job; what its latest run counts while it runs is a few seconds old."""
    found = shown_job(session, id)
    counts = listing.counts_of(session, found.latest) if found.latest else None
    return job_record(found, waits_of(archive.settings, archive.clock, [found.latest]), counts)


@router.put("/api/v1/jobs/{id}", Permission.OPERATE, errors=(404, 413, 415))
def change_job(admin: AdminWriteDep, id: JobId, form: JobChanges) -> JobUpserted:
    """Change a job's plan; omitted fields keep their values."""
    with admin.write() as session:
        job, _ = locked_both(session, id)
        spec = _changed(job, form)
        if form.schedule:
            spec = spec.at(read_schedule(form.schedule, now=admin.clock.now()))
        return _made(session, admin.actions.edit(session, id, spec))


def _changed(job: Job, form: JobChanges) -> JobSpec:
    wished = form.model_dump(include=form.model_fields_set - {"type", "source_name", "schedule"})
    # A new interval no longer matches the dates of the schedule.
    if not wished.keys().isdisjoint({"interval_minutes", "interval_type"}):
        wished["anchor"] = None
    # null counts as left out: every job has a source.
    if wished.get("source_id", job.source_id) is None:
        del wished["source_id"]
    if "metadata" in wished:
        wished["details"] = wished.pop("metadata")
    return replace(JobSpec.of(job), **wished)


@router.delete("/api/v1/jobs/{id}", Permission.OPERATE, errors=(404, 413, 415))
def delete_job(admin: AdminWriteDep, id: JobId) -> Message:
    """Delete a job; its runs and captures remain. A running job must be cancelled first."""
    with admin.write() as session:
        admin.actions.delete(session, id)
    return Message(message="Job deleted")


@router.post("/api/v1/jobs/{id}/pause", Permission.OPERATE, errors=(404, 413, 415))
def pause_job(admin: AdminWriteDep, id: JobId) -> JobRecord:
    """Pause a scheduled job until it is resumed."""
    return _acted(admin, id, JobAction.PAUSE)


@router.post("/api/v1/jobs/{id}/resume", Permission.OPERATE, errors=(404, 413, 415))
def resume_job(admin: AdminWriteDep, id: JobId) -> JobRecord:
    """Resume a paused job, in the least busy slot."""
    return _acted(admin, id, JobAction.RESUME)


@router.post("/api/v1/jobs/{id}/cancel", Permission.OPERATE, errors=(404, 413, 415))
def cancel_job(admin: AdminWriteDep, id: JobId) -> JobRecord:
    """End a job for good; its current run drains, and its captures are preserved."""
    return _acted(admin, id, JobAction.CANCEL)


@router.post("/api/v1/jobs/{id}/retry", Permission.OPERATE, errors=(404, 413, 415))
def retry_job(admin: AdminWriteDep, id: JobId) -> JobRecord:
    """Retry a failed job immediately, with all its retries; if only indexing failed, only that is repeated."""
    with admin.write() as session:
        shown_job(session, id)
        if not reset_index(session, admin.clock, id):
            _act(admin, session, id, JobAction.RETRY)
        return job_record(shown_job(session, id))


# Possible actions for a job in each state, named when another one was requested.
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
    """Apply a job action; raise IllegalTransition, which lists the possible actions, if the state forbids it."""
    try:
        admin.actions.act(session, job_id, action)
    except IllegalTransition as exc:
        latest = shown_job(session, job_id).latest
        if latest is not None and latest.paused_at is not None:
            raise exc.with_hint("its run is paused; let that go on with POST /api/admin/crawls/resume") from exc
        raise exc.with_hint(_NEXT[exc.state].format(id=job_id)) from exc


def _acted(admin: AdminWrite, job_id: int, action: JobAction) -> JobRecord:
    with admin.write() as session:
        _act(admin, session, job_id, action)
        return job_record(shown_job(session, job_id))


@router.post("/api/v2/jobs/{id}/force-run", Permission.OPERATE, errors=(404, 413, 415), status_code=202)
def force_run(admin: AdminWriteDep, id: JobId) -> ForceRun:
    """Run a scheduled job now; its schedule does not change."""
    with admin.write() as session:
        _act(admin, session, id, JobAction.FORCE_RUN)
    return ForceRun(message="Job queued for immediate execution", job_id=id)


@router.get("/api/v1/jobs/{id}/stats", Permission.WATCH, errors=(404,))
def job_stats(session: SessionDep, id: JobId) -> JobStats:
    """Return figures of a job's history."""
    return stats_record(shown_job(session, id).job)


_EVENTS = 1000
ExecutionId = Annotated[int, Path(ge=0, le=MAX_ID, description="An execution's id.", examples=[1])]


@router.get("/api/v1/jobs/{id}/executions", Permission.WATCH, errors=(404,))
def job_executions(
    archive: ArchiveDep, session: SessionDep, id: JobId, limit: Limit = DEFAULT_LIMIT, offset: Offset = 0
) -> ExecutionList:
    """Return a job's runs, newest first."""
    shown_job(session, id)
    limit, offset = bounded_limit(limit), min(max(offset, 0), MAX_OFFSET)
    rows, total = listing.executions_of(session, job_id=id, limit=limit, offset=offset)
    waits = waits_of(archive.settings, archive.clock, rows)
    runs = [detailed_execution(row, wait=waits.get(row.id)) for row in rows]
    return ExecutionList(executions=runs, total=total, limit=limit, offset=offset)


@router.get("/api/v1/executions/{id}", Permission.WATCH, errors=(404,))
def execution_detail(archive: ArchiveDep, session: SessionDep, id: ExecutionId) -> ExecutionDetail:
    """Return one run, also of an ad-hoc crawl or an import; counts of a running one are a few seconds old."""
    row = listing.run_of_source(session, id)
    if row is None:
        raise ExecutionNotFound
    wait = waits_of(archive.settings, archive.clock, [row]).get(id)
    return detailed_execution(row, listing.counts_of(session, row), wait=wait)


@router.get("/api/v1/events", Permission.WATCH, errors=(404,))
def events(
    session: SessionDep,
    after: Annotated[int, Query(ge=0, le=MAX_ID, description="The last event that was seen.")] = 0,
    job_id: Annotated[int | None, Query(ge=0, le=MAX_ID, description="Of this job only.", examples=[1])] = None,
    limit: Annotated[int, Query(ge=1, le=_EVENTS, description="Events of an answer.")] = 100,
) -> EventList:
    """Return job events after a given one, oldest first; repeat with `next_after` to follow them."""
    # Read this before the events: a client then requests an event in between again and never misses it.
    newest = last_event(session)
    rows = read_events(session, after=after, job_id=job_id, limit=limit)
    found = [JobEventRecord(id=row.id, event=row.name, data=payload(row)) for row in rows]
    # With fewer events than the limit, everything up to the newest was read: continue after other jobs' events.
    seen = max(after, newest) if len(rows) < limit else rows[-1].id
    return EventList(events=found, next_after=max(seen, rows[-1].id) if rows else seen, last_id=newest)


scheduler_router = LazyRouter(tags=["scheduler"])


@scheduler_router.get("/api/v1/scheduler/metrics", Permission.WATCH, errors=(413, 415))
def scheduler_metrics(session: SessionDep, job_service: JobServiceDep) -> SchedulerMetrics:
    """Return the number of jobs by state, and results of the runs of the last day."""
    job_service.look(session)
    return count_metrics(session, now=job_service.clock.now(), last_check_at=last_scheduled_at(session))


@scheduler_router.get("/api/v1/scheduler/distribution", Permission.WATCH, errors=(413, 415))
def scheduler_distribution(session: SessionDep, job_service: JobServiceDep) -> Distribution:
    """Return how the runs of the next 24 hours are distributed over the hours of the day, UTC."""
    job_service.look(session)
    return show_distribution(session, now=job_service.clock.now())


@scheduler_router.post("/api/v1/scheduler/rebalance/preview", Permission.OPERATE, errors=(413, 415))
def preview_now(session: SessionDep, job_service: JobServiceDep) -> Rebalance:
    """Return what a rebalance would do now; nothing is changed."""
    job_service.look(session)
    return preview_rebalance(session, now=job_service.clock.now())


@scheduler_router.post("/api/v1/scheduler/rebalance", Permission.OPERATE, errors=(413, 415))
def rebalance_now(admin: AdminWriteDep) -> Rebalance:
    """Move jobs into less busy slots, as the preview shows; jobs that changed meanwhile are not moved."""
    job_service = admin.job_service
    # Open it only for the database's clock: the moves open their own transactions, some hundred at a time.
    with job_service.database.read() as session:
        job_service.look(session)
    done = rebalance(job_service.database, now=job_service.clock.now())
    with admin.write() as session:
        record_rebalance(session, job_service.clock, done)
    return done


@scheduler_router.post("/api/v1/admin/sync-enabled-sources", Permission.OPERATE, errors=(413, 415), tags=["sources"])
def sync_sources(turns: WriteTurnsDep) -> SyncReport:
    """Create missing crawl jobs of enabled sources, and resume those paused while their source was disabled."""
    job_service = turns.job_service
    return sync_enabled_sources(
        turns.write,
        job_service.clock,
        job_service.actions,
        interval_minutes=job_service.settings.jobs.auto_interval_minutes,
    )
