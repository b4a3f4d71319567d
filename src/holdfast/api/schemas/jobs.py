"""Jobs, executions, logs and events in document 003's fields (NC-001, NC-002, 3.6 of the facts)."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from holdfast.api.schemas.forms import MAX_ID, Form


class Shown(BaseModel):
    """An object that a route of document 003 answers with; its names are snake_case outside too."""

    model_config = ConfigDict(frozen=True)


class JobForm(Form):
    """A wish for the crawl job of a source."""

    model_config = ConfigDict(json_schema_extra={"examples": [{
        "source_id": 1, "url": "https://example.org/", "interval_minutes": 6, "interval_type": "hours",
        "schedule_enabled": True,
    }]})  # fmt: skip

    source_id: int = Field(ge=0, le=MAX_ID)
    url: str = Field(min_length=1, max_length=8192, description="The start page.")
    type: Literal["crawl"] = "crawl"
    name: str | None = Field(None, max_length=200)
    source_name: str | None = Field(None, max_length=200, description="Not read: a source has its own name.")
    interval_minutes: int | None = Field(None, description="In units of `interval_type`; left out: the job runs once.")
    interval_type: str = Field("minutes", description="minutes, hours or days.")
    schedule_enabled: bool = False
    adaptive_scheduling: bool = True
    max_retries: int = Field(3, description="0 to 100.")
    retry_backoff_seconds: int = Field(60, description="0 to 3600; doubled for each further try.")
    config: dict[str, Any] = Field(
        default_factory=dict, description="Fields of the source's configuration that this job has otherwise."
    )
    metadata: dict[str, Any] = Field(default_factory=dict, description="Kept and shown, never read.")


class JobChanges(Form):
    """What is to be otherwise about a job; what is left out stays."""

    source_id: int | None = Field(None, ge=0, le=MAX_ID, description="A job stays with its source.")
    url: str | None = Field(None, max_length=8192)
    type: Literal["crawl"] | None = None
    name: str | None = Field(None, max_length=200)
    source_name: str | None = Field(None, max_length=200, description="Not read.")
    interval_minutes: int | None = Field(None, description="null: the job runs once.")
    interval_type: str = "minutes"
    schedule_enabled: bool = False
    adaptive_scheduling: bool = True
    max_retries: int = 3
    retry_backoff_seconds: int = 60
    config: dict[str, Any] = Field(default_factory=dict)
    metadata: dict[str, Any] = Field(default_factory=dict)


class JobShown(Shown):
    """A job."""

    id: int
    source_id: int
    source_code: str
    source_name: str
    name: str | None
    type: str
    url: str | None
    status: str
    interval_minutes: int | None
    interval_type: str
    schedule_enabled: bool
    adaptive_scheduling: bool
    next_run_at: datetime | None
    last_run_at: datetime | None
    is_paused: bool
    paused_at: datetime | None
    paused_by: str | None
    cancelled_at: datetime | None
    lock_token: str | None
    lock_owner: str | None
    lock_acquired_at: datetime | None
    max_retries: int
    retry_backoff_seconds: int
    current_retry_count: int
    failure_count: int
    last_failure_at: datetime | None
    error_message: str | None
    started_at: datetime | None
    completed_at: datetime | None
    config: dict[str, Any]
    metadata: dict[str, Any]
    created_at: datetime
    updated_at: datetime | None


class JobMade(JobShown):
    """A job that was just made or given a new plan."""

    created: bool = Field(description="False if the source had a job, which has a new plan now.")
    warnings: list[str] = Field(description="What is allowed but worth a second look.")


class JobList(Shown):
    """A page of jobs."""

    jobs: list[JobShown]
    total: int
    limit: int
    offset: int
    sort_by: str
    sort_order: str


class Message(Shown):
    """What was done, in a sentence."""

    message: str


class ForceRun(Shown):
    """A job that was put in front of its turn."""

    message: str
    job_id: int


class JobStatsShown(Shown):
    """A job's history in a few figures (NC-009)."""

    job_id: int
    total_executions: int
    successful_runs: int
    failed_runs: int
    average_duration_ms: float
    last_execution_at: datetime | None
    next_scheduled_at: datetime | None
    success_rate: float = Field(description="0 to 1; 0 if nothing ran.")


class ExecutionShown(Shown):
    """One run of a job."""

    id: int
    job_id: int
    execution_number: int
    status: str = Field(description="queued, running, stopped, completed, failed or cancelled.")
    reason: str | None
    queued_at: datetime | None
    started_at: datetime | None
    completed_at: datetime | None
    duration_ms: int | None
    items_crawled: int
    items_failed: int
    items_indexed: int
    index_status: str | None
    error_message: str | None
    failure: str | None
    stack_trace: str | None
    cpu_time_ms: int | None
    memory_peak_mb: float | None
    retry_attempt: int
    exit_code: int | None
    stage: str | None
    log_object_key: str | None
    log_size_bytes: int
    log_line_count: int
    log_dropped_lines: int
    metadata: dict[str, Any]


class ExecutionList(Shown):
    """A page of a job's history, newest first."""

    executions: list[ExecutionShown]
    total: int
    limit: int
    offset: int


class LogOfExecution(Shown):
    """Whether an execution's log can be read."""

    execution_id: int
    execution_number: int
    status: str
    started_at: datetime | None
    completed_at: datetime | None
    log_available: bool
    log_object_key: str | None


class LogList(Shown):
    """The logs of a job's executions, newest first."""

    job_id: int
    executions: list[LogOfExecution]
    has_live_logs: bool
    stream_v2_available: bool = Field(description="False: poll `/logs/tail`.")
    total: int
    limit: int
    offset: int


class LogEntry(Shown):
    """One line of a log."""

    id: int
    schema_version: int
    timestamp: datetime
    level: str
    category: str
    message: str
    job_id: int
    execution_id: int
    fields: dict[str, Any]


class LogView(Shown):
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


class EventShown(Shown):
    """Something that happened to a job."""

    id: int
    event: str = Field(description="job:status, job:progress or job:completed.")
    data: dict[str, Any]


class EventList(Shown):
    """Events in the order in which they were committed."""

    events: list[EventShown]
    next_after: int = Field(description="`after` of the next question.")
    last_id: int = Field(description="The newest event of all: begin there to hear of new ones only.")
