"""Jobs, executions, logs and events as the routes below `/api/v1` show them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from holdfast.api.schemas.base import MAX_ID, RequestForm
from holdfast.api.schemas.source_config import SourceConfiguration
from holdfast.jobs.views.job_view import EXECUTION_ALIASES, JOB_ALIASES


class JobAnswer(BaseModel):
    """An object that a route below `/api/v1` answers with; its names are snake_case outside too."""

    model_config = ConfigDict(frozen=True, defer_build=True)


_SCHEDULE = "In words instead of the interval: once, every 6 hours, monthly on day 31 at 03:00 Europe/Paris."


class JobForm(RequestForm):
    """A wish for the crawl job of a source."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "source_id": 1,
                    "url": "https://example.org/",
                    "interval_minutes": 6,
                    "interval_type": "hours",
                    "schedule_enabled": True,
                }
            ]
        }
    )

    source_id: int = Field(ge=0, le=MAX_ID, description="The source's id.")
    url: str | None = Field(
        None,
        min_length=1,
        max_length=8192,
        description="The start page: a seed besides the source's, which need not have any then; left out: its first.",
    )
    type: Literal["crawl"] = Field("crawl", description="Other kinds are made by their own commands.")
    name: str | None = Field(None, max_length=200, description="For people; may be left out.")
    source_name: str | None = Field(None, max_length=200, description="Not read: a source has its own name.")
    interval_minutes: int | None = Field(None, description="In units of `interval_type`; left out: the job runs once.")
    interval_type: str = Field("minutes", description="minutes, hours or days.")
    schedule: str | None = Field(None, max_length=200, description=_SCHEDULE)
    schedule_enabled: bool = Field(False, description="Whether it recurs; that needs an interval.")
    adaptive_scheduling: bool = Field(True, description="Whether a start page that stays the same lengthens the wait.")
    max_retries: int = Field(3, description="0 to 100.")
    retry_backoff_seconds: int = Field(60, description="0 to 3600; doubled for each further try.")
    config: SourceConfiguration = Field(
        default_factory=dict, description="Fields of the source's configuration that this job has otherwise."
    )
    metadata: dict[str, Any] = Field(default_factory=dict, description="Kept and shown, never read.")


class JobChanges(RequestForm):
    """What is to be otherwise about a job; what is left out stays."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"interval_minutes": 12, "interval_type": "hours"}]})

    source_id: int | None = Field(None, ge=0, le=MAX_ID, description="A job stays with its source.")
    url: str | None = Field(None, max_length=8192, description="The start page, a seed; null: the source's first.")
    type: Literal["crawl"] | None = Field(None, description="It stays as it is.")
    name: str | None = Field(None, max_length=200, description="For people; null takes it away.")
    source_name: str | None = Field(None, max_length=200, description="Not read.")
    interval_minutes: int | None = Field(None, description="null: the job runs once.")
    interval_type: str = Field("minutes", description="minutes, hours or days.")
    schedule: str | None = Field(None, max_length=200, description=_SCHEDULE)
    schedule_enabled: bool = Field(False, description="Whether it recurs.")
    adaptive_scheduling: bool = Field(True, description="Whether a start page that stays the same lengthens the wait.")
    max_retries: int = Field(3, description="0 to 100.")
    retry_backoff_seconds: int = Field(60, description="0 to 3600.")
    config: SourceConfiguration = Field(
        default_factory=dict,
        description="What the job has otherwise than its source, written anew as a whole; groups join the source's.",
    )
    metadata: dict[str, Any] = Field(default_factory=dict, description="Written anew as a whole.")


_EXECUTION: dict[str, Any] = {
    "id": 12,
    "job_id": 1,
    "execution_number": 12,
    "status": "completed",
    "ending": "completed",
    "reason": "done",
    "shortfalls": {},
    "sentence": "everything in scope was asked for, and nothing was cut short",
    "research_ready": True,
    "created_at": "2026-11-15T12:15:00Z",
    "queued_at": "2026-11-15T12:15:00Z",
    "started_at": "2026-11-15T12:15:03Z",
    "completed_at": "2026-11-15T12:20:41Z",
    "duration_ms": 338000,
    "paused_at": None,
    "paused_by": None,
    "paused_seconds": 0.0,
    "items_crawled": 560,
    "items_failed": 2,
    "items_total": 562,
    "items_indexed": 558,
    "index_status": "indexed",
    "error_message": None,
    "failure": None,
    "cpu_time_ms": 7300,
    "memory_peak_mb": 64.7,
    "peak_memory_bytes": 67842867,
    "retry_attempt": 0,
    "resumed_from": None,
    "exit_code": None,
    "stage": None,
    "cleanup_status": "none",
    "cleaned_at": None,
    "output_dir": "/srv/holdfast/warcs/example/20261115T121503Z__example-12",
    "storage": {},
    "artifacts": {},
    "log_object_key": "logs/1/12.log.gz",
    "log_size_bytes": 6120,
    "log_line_count": 70,
    "log_dropped_lines": 0,
}
_EXECUTION |= {alias: _EXECUTION[name] for alias, name in EXECUTION_ALIASES.items()}


class ExecutionSummary(JobAnswer):
    """One run of a job, without its stack and metrics."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXECUTION]})

    id: int
    job_id: int
    execution_number: int
    number: int = Field(description="The same as `execution_number`.")
    status: str = Field(description="queued, running, stopped, completed, failed or cancelled.")
    state: str = Field(description="The same as `status`.")
    ending: str | None = Field(
        description="How it ended in a word: completed, incomplete, stopped, failed, cancelled or discarded; null "
        "while it is queued or runs."
    )
    reason: str | None = Field(description="Why it ended, in a word: done, hosts_given_up, max_pages, stopped…")
    shortfalls: dict[str, int] = Field(
        description="What it fell short of, by word and count, the worst first; the rules behind `limits` follow it."
    )
    sentence: str | None = Field(
        description="The same for people; of a queued run, which machine it waits for; null while it runs."
    )
    research_ready: bool | None = Field(description="Whether an edition may rest on it as it is; null while it runs.")
    created_at: datetime
    queued_at: datetime | None
    started_at: datetime | None
    completed_at: datetime | None
    finished_at: datetime | None = Field(description="The same as `completed_at`.")
    duration_ms: int | None
    paused_at: datetime | None = Field(
        description="Since when the run waits because an operator paused it; `status` is running meanwhile, or queued "
        "while no worker has it."
    )
    paused_by: str | None = Field(description="Who paused it.")
    paused_seconds: float = Field(description="How long its pauses lasted that are over; `duration_ms` has them in it.")
    items_crawled: int = Field(description="Pages; while it runs, as of a few seconds ago.")
    items_failed: int
    items_total: int = Field(description="Addresses that it knows of.")
    items_indexed: int
    index_status: str | None = Field(description="pending, indexing, indexed or index_failed; null: nothing to index.")
    index_state: str | None = Field(description="The same as `index_status`.")
    error_message: str | None
    error: str | None = Field(description="The same as `error_message`.")
    failure: str | None = Field(description="failed, infra_error, infra_error_config or lease_lost.")
    cpu_time_ms: int | None
    cpu_ms: int | None = Field(description="The same as `cpu_time_ms`.")
    memory_peak_mb: float | None
    peak_memory_bytes: int | None
    retry_attempt: int
    resumed_from: int | None = Field(description="The execution that it retries, in the same directory.")
    exit_code: int | None = Field(description="Of zimit.")
    stage: str | None = Field(description="Of zimit.")
    cleanup_status: str = Field(description="How far its directory was cleaned up; `none`: not at all.")
    cleaned_at: datetime | None
    output_dir: str = Field(description="Where it wrote; empty before it began.")
    storage: dict[str, Any] = Field(description="What its directory weighed, and when that was looked at.")
    artifacts: dict[str, Any] = Field(description="Files beside its WARC files, by kind.")
    log_object_key: str | None = Field(description="The log's name; null: it has none, or none any more.")
    log_size_bytes: int
    log_line_count: int
    log_lines: int = Field(description="The same as `log_line_count`.")
    log_dropped_lines: int = Field(description="Lines that found no room.")


class ExecutionShown(ExecutionSummary):
    """One run of a job."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    **_EXECUTION,
                    "stack_trace": None,
                    "metadata": {"crawl_metrics": {"requests_total": 562, "status_codes": {"200": 560, "404": 2}}},
                }
            ]
        }
    )

    stack_trace: str | None
    metadata: dict[str, Any] = Field(description="`crawl_metrics`: requests by status, errors, response times.")


_JOB: dict[str, Any] = {
    "id": 1,
    "source_id": 1,
    "source_code": "example",
    "source_name": "Example",
    "name": None,
    "type": "crawl",
    "url": "https://example.org/",
    "status": "scheduled",
    "admin_status": "indexed",
    "interval_minutes": 6,
    "interval_type": "hours",
    "schedule": "every 6 hours, less often while nothing changes",
    "schedule_enabled": True,
    "adaptive_scheduling": True,
    "next_run_at": "2026-11-15T18:15:00Z",
    "last_run_at": "2026-11-15T12:20:41Z",
    "is_paused": False,
    "paused_at": None,
    "paused_by": None,
    "cancelled_at": None,
    "lock_token": None,
    "lock_owner": None,
    "lock_acquired_at": None,
    "max_retries": 3,
    "retry_backoff_seconds": 60,
    "current_retry_count": 0,
    "failure_count": 0,
    "last_failure_at": None,
    "error_message": None,
    "started_at": "2026-11-15T12:15:03Z",
    "completed_at": "2026-11-15T12:20:41Z",
    "edition_id": None,
    "shard_key": None,
    "shard_kind": None,
    "acceptance_state": None,
    "config": {},
    "metadata": {},
    "created_at": "2026-11-01T09:00:00Z",
    "updated_at": "2026-11-15T12:20:41Z",
    "run_may": None,
    "latest_execution": _EXECUTION,
}
_JOB |= {alias: _JOB[name] for alias, name in JOB_ALIASES.items()}


class JobShown(JobAnswer):
    """A job."""

    model_config = ConfigDict(json_schema_extra={"examples": [_JOB]})

    id: int
    source_id: int
    source_code: str
    source: str = Field(description="The same as `source_code`.")
    source_name: str
    name: str | None
    type: str = Field(description="crawl, annual, shard, feed or canary.")
    kind: str = Field(description="The same as `type`.")
    url: str | None = Field(description="The start page.")
    status: str = Field(description="pending, scheduled, running, paused, completed, failed or cancelled.")
    state: str = Field(description="The same as `status`.")
    admin_status: str = Field(description="`status` of `/api/admin/jobs`: with retries and how far its index is.")
    interval_minutes: int | None = Field(description="In units of `interval_type`; null: it runs once.")
    interval_type: str
    schedule: str = Field(description="The same in words, with the time of day where it names one.")
    schedule_enabled: bool
    adaptive_scheduling: bool
    next_run_at: datetime | None = Field(description="When it is queued next; null while it is queued, runs or rests.")
    last_run_at: datetime | None = Field(description="When its last run ended.")
    last_execution_at: datetime | None = Field(description="The same as `last_run_at`.")
    is_paused: bool
    paused_at: datetime | None
    paused_by: str | None = Field(description="user, or source if its source was disabled.")
    cancelled_at: datetime | None
    # Shown to administrators only, as all of these routes are.
    lock_token: str | None = Field(description="Of the worker that runs it.")
    lock_owner: str | None
    lock_acquired_at: datetime | None
    max_retries: int
    retry_backoff_seconds: int
    current_retry_count: int = Field(description="Retries of the present failure so far.")
    retries: int = Field(description="The same as `current_retry_count`.")
    failure_count: int = Field(description="Failed runs of all time.")
    last_failure_at: datetime | None
    error_message: str | None = Field(description="Of its last failure.")
    error: str | None = Field(description="The same as `error_message`.")
    started_at: datetime | None = Field(description="When its newest run began.")
    completed_at: datetime | None = Field(description="When its newest run ended.")
    edition_id: int | None = Field(description="The annual edition that it is a part of.")
    shard_key: str | None
    shard_kind: str | None
    acceptance_state: str | None = Field(description="What a person decided about it for its edition: accepted_gap…")
    config: SourceConfiguration = Field(description="What it has otherwise than its source.")
    metadata: dict[str, Any]
    created_at: datetime
    updated_at: datetime | None
    run_may: Literal["pause", "resume"] | None = Field(
        description="What `/api/admin/crawls/pause` and `/resume` may do to its newest run now; null: neither."
    )
    latest_execution: ExecutionSummary | None = Field(description="Its newest run.")


class JobMade(JobShown):
    """A job that was just made or given a new plan."""

    model_config = ConfigDict(json_schema_extra={"examples": [{**_JOB, "created": True, "warnings": []}]})

    created: bool = Field(description="False if the source had a job, which has a new plan now.")
    warnings: list[str] = Field(description="What is allowed but worth a second look.")


class JobList(JobAnswer):
    """A page of jobs."""

    jobs: list[JobShown]
    total: int
    limit: int
    offset: int
    sort_by: str
    sort_order: str


class Message(JobAnswer):
    """What was done, in a sentence."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"message": "Job deleted"}]})

    message: str


class ForceRun(JobAnswer):
    """A job that was put in front of its turn."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"message": "Job queued for immediate execution", "job_id": 1}]}
    )

    message: str
    job_id: int


class JobStatsShown(JobAnswer):
    """A job's history in a few figures."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "job_id": 1,
                    "total_executions": 12,
                    "successful_runs": 11,
                    "failed_runs": 1,
                    "average_duration_ms": 338000.0,
                    "last_execution_at": "2026-11-15T12:20:41Z",
                    "next_scheduled_at": "2026-11-15T18:15:00Z",
                    "success_rate": 0.9166666666666666,
                }
            ]
        }
    )

    job_id: int
    total_executions: int = Field(description="Runs of all time, those that were cancelled too.")
    successful_runs: int
    failed_runs: int
    average_duration_ms: float
    last_execution_at: datetime | None
    next_scheduled_at: datetime | None
    success_rate: float = Field(description="0 to 1; 0 if nothing ran.")


class ExecutionList(JobAnswer):
    """A page of a job's history, newest first."""

    executions: list[ExecutionShown]
    total: int
    limit: int
    offset: int


class LogOfExecution(JobAnswer):
    """Whether an execution's log can be read."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "execution_id": 12,
                    "execution_number": 12,
                    "status": "completed",
                    "started_at": "2026-11-15T12:15:03Z",
                    "completed_at": "2026-11-15T12:20:41Z",
                    "log_available": True,
                    "log_object_key": "logs/1/12.log.gz",
                }
            ]
        }
    )

    execution_id: int
    execution_number: int
    status: str
    started_at: datetime | None
    completed_at: datetime | None
    log_available: bool
    log_object_key: str | None


class LogList(JobAnswer):
    """The logs of a job's executions, newest first."""

    job_id: int
    executions: list[LogOfExecution]
    has_live_logs: bool
    stream_v2_available: bool = Field(description="Whether `/logs/stream/v2` streams it.")
    total: int
    limit: int
    offset: int


class LogEntry(JobAnswer):
    """One line of a log."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": 7,
                    "schema_version": 1,
                    "timestamp": "2026-11-15T12:20:41Z",
                    "level": "info",
                    "category": "crawler.lifecycle",
                    "message": "run completed",
                    "job_id": 1,
                    "execution_id": 12,
                    "fields": {"reason": "done", "items_crawled": 560},
                }
            ]
        }
    )

    id: int
    schema_version: int
    timestamp: datetime
    level: str
    category: str = Field(description="crawler.lifecycle, .fetch, .extract, .error, .rate_limit, .queue or .metrics.")
    message: str
    job_id: int
    execution_id: int
    fields: dict[str, Any]


class LogView(JobAnswer):
    """Some lines of an execution's log."""

    job_id: int
    execution_id: int
    execution_number: int
    status: str
    lines: list[LogEntry]
    line_count: int = Field(description="Of this answer.")
    total_lines: int = Field(description="Of the whole log.")
    dropped_lines: int = Field(description="Those that found no room.")
    next_after: int = Field(description="`after` of the next question.")


class EventShown(JobAnswer):
    """Something that happened to a job."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": 40,
                    "event": "job:status",
                    "data": {"job_id": 1, "status": "running", "timestamp": "2026-11-15T12:15:03Z", "details": {}},
                }
            ]
        }
    )

    id: int
    event: str = Field(description="job:status, job:progress or job:completed.")
    data: dict[str, Any]


class EventList(JobAnswer):
    """Events in the order in which they were committed."""

    events: list[EventShown]
    next_after: int = Field(description="`after` of the next question.")
    last_id: int = Field(description="The newest event of all: begin there to hear of new ones only.")
