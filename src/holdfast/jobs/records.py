"""Jobs, their executions and their logs, as operators and observers see them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

from holdfast.db.models import Execution, Job, LogLine
from holdfast.jobs.endings import Counts, ending_word, rule_of, sentence_of
from holdfast.jobs.journal import LOG_NAME, entry
from holdfast.jobs.pauses import RunWait, WaitCode, may_wait
from holdfast.jobs.store import is_own_run, schedule_of_job
from holdfast.jobs.views.listing import JobRow
from holdfast.records import Operator, from_row, record
from holdfast.sources.schedule import words_of

_MB: Final = 1024 * 1024
Configuration = Annotated[dict[str, Any], "SourceConfiguration"]


@record
class ExecutionRecord:
    """One run of a job, without its stack and metrics."""

    id: Operator[int]
    job_id: Operator[int]
    number: Operator[int]
    """1 for the first run of the job."""
    state: Operator[str]
    """queued, running, stopped, completed, failed or cancelled."""
    ending: Operator[str | None]
    """How it ended: completed, incomplete, stopped, failed, cancelled or discarded; null until it ends."""
    reason: Operator[str | None]
    """Why it ended, in a word: done, hosts_given_up, max_pages, stopped…"""
    shortfalls: Operator[dict[str, int]]
    """Shortfalls of the run by reason and count, worst first; then the rules behind `limits`."""
    sentence: Operator[str | None]
    """The ending in a sentence; for a queued run, why it waits and what to do; null while it is running."""
    waits_for: Operator[WaitCode | None]
    """Reason why a queued run waits: its scheduled time, its disabled source, the machine that has its files, disk
    space, a contact for the User-Agent, a worker, a free worker, or only its turn.
    """
    research_ready: Operator[bool | None]
    """Whether an edition may use it without a decision by a person; null while it is running."""
    created_at: Operator[datetime]
    queued_at: Operator[datetime | None]
    started_at: Operator[datetime | None]
    finished_at: Operator[datetime | None]
    duration_ms: Operator[int | None]
    paused_at: Operator[datetime | None]
    """When an operator paused it; `status` is still running, or queued while no worker holds it."""
    paused_by: Operator[str | None]
    """The operator who paused it."""
    paused_seconds: Operator[float]
    """Total length of its past pauses; `duration_ms` includes them."""
    items_crawled: Operator[int]
    """Pages; while it is running, as of a few seconds ago."""
    items_failed: Operator[int]
    items_total: Operator[int]
    """URLs that it knows."""
    items_indexed: Operator[int]
    index_state: Operator[str | None]
    """pending, indexing, indexed or index_failed; null: nothing to index."""
    error: Operator[str | None]
    failure: Operator[str | None]
    """failed, infra_error, infra_error_config or lease_lost."""
    cpu_ms: Operator[int | None]
    memory_peak_mb: Operator[float | None]
    peak_memory_bytes: Operator[int | None]
    retry_attempt: Operator[int]
    resumed_from: Operator[int | None]
    """The execution that it retries, in the same directory."""
    exit_code: Operator[int | None]
    """Exit code of zimit."""
    stage: Operator[str | None]
    """Stage of zimit."""
    cleanup_status: Operator[str]
    """Clean-up status of its directory; `none` if it was not cleaned up."""
    cleaned_at: Operator[datetime | None]
    output_dir: Operator[str]
    """Where it writes; empty before it starts."""
    storage: Operator[dict[str, Any]]
    """Size of its directory, and when that was measured."""
    artifacts: Operator[dict[str, Any]]
    """Files beside its WARC files, by kind."""
    log_object_key: Operator[str | None]
    """The log's name; null without a log, or once it was deleted."""
    log_size_bytes: Operator[int]
    log_lines: Operator[int]
    log_dropped_lines: Operator[int]
    """Lines that exceeded the limit of the log."""


@record
class ExecutionDetail(ExecutionRecord):
    """One run of a job."""

    stack_trace: Operator[str | None]
    metadata: Operator[dict[str, Any]]
    """`crawl_metrics`: requests by status, errors, response times."""


@record
class JobRecord:
    """A job and its newest run."""

    id: Operator[int]
    source_id: Operator[int]
    source_code: Operator[str]
    source_name: Operator[str]
    name: Operator[str | None]
    kind: Operator[str]
    """crawl, annual, shard, feed or canary."""
    url: Operator[str | None]
    """The start page."""
    state: Operator[str | None]
    """pending, scheduled, running, paused, completed, failed or cancelled."""
    admin_status: Operator[str]
    """`status` of `/api/admin/jobs`, which includes retries and the progress of the index."""
    interval_minutes: Operator[int | None]
    """In units of `interval_type`; null if it runs once."""
    interval_type: Operator[str]
    schedule: Operator[str]
    """The interval in words, with the time of day if it has one."""
    schedule_enabled: Operator[bool]
    adaptive_scheduling: Operator[bool]
    next_run_at: Operator[datetime | None]
    """When it is queued next; null while it is queued, running, or not scheduled."""
    last_execution_at: Operator[datetime | None]
    """When its last run ended."""
    is_paused: Operator[bool]
    paused_at: Operator[datetime | None]
    paused_by: Operator[str | None]
    """user, or source if its source was disabled."""
    cancelled_at: Operator[datetime | None]
    lock_token: Operator[str | None]
    """Lock token of the worker that runs it."""
    lock_owner: Operator[str | None]
    lock_acquired_at: Operator[datetime | None]
    max_retries: Operator[int]
    retry_backoff_seconds: Operator[int]
    # Machine failures use no retry, so this excludes `infra_retry_count`.
    current_retry_count: Operator[int]
    """Retries of the current failure so far."""
    failure_count: Operator[int]
    """Failed runs in total."""
    last_failure_at: Operator[datetime | None]
    error_message: Operator[str | None]
    """Error of its last failure."""
    started_at: Operator[datetime | None]
    """When its newest run started."""
    completed_at: Operator[datetime | None]
    """When its newest run ended."""
    edition_id: Operator[int | None]
    """The annual edition that the job belongs to."""
    shard_key: Operator[str | None]
    shard_kind: Operator[str | None]
    acceptance_state: Operator[str | None]
    """A person's decision about the job in its edition: accepted_gap…"""
    config: Operator[Configuration]
    """Settings that differ from its source."""
    metadata: Operator[dict[str, Any]]
    created_at: Operator[datetime]
    updated_at: Operator[datetime | None]
    run_may: Operator[Literal["pause", "resume"] | None]
    """The action that `/api/admin/crawls/pause` or `/resume` can apply to its newest run now; null if neither."""
    latest_execution: Operator[ExecutionRecord | None]
    """Its newest run."""


@record
class JobUpserted(JobRecord):
    """A job that was created or changed."""

    created: Operator[bool]
    """False if the source already had a job; it was changed."""
    warnings: Operator[list[str]]
    """Warnings about allowed values."""


@record
class JobList:
    """A page of jobs."""

    jobs: Operator[list[JobRecord]]
    total: Operator[int]
    limit: Operator[int]
    offset: Operator[int]
    sort_by: Operator[str]
    sort_order: Operator[str]


@record
class ExecutionList:
    """A page of a job's runs, newest first."""

    executions: Operator[list[ExecutionDetail]]
    total: Operator[int]
    limit: Operator[int]
    offset: Operator[int]


@record
class Message:
    """The result in a sentence."""

    message: Operator[str]


@record
class ForceRun:
    """A job that was forced to run now."""

    message: Operator[str]
    job_id: Operator[int]


@record
class JobStats:
    """Totals of a job's history."""

    job_id: Operator[int]
    total_executions: Operator[int]
    """All runs, including cancelled ones."""
    successful_runs: Operator[int]
    failed_runs: Operator[int]
    average_duration_ms: Operator[float]
    last_execution_at: Operator[datetime | None]
    next_scheduled_at: Operator[datetime | None]
    success_rate: Operator[float]
    """0 to 1; 0 without runs."""


@record
class LogOfExecution:
    """The log of an execution, if there is one."""

    execution_id: Operator[int]
    execution_number: Operator[int]
    status: Operator[str]
    started_at: Operator[datetime | None]
    completed_at: Operator[datetime | None]
    log_available: Operator[bool]
    log_object_key: Operator[str | None]


@record
class LogList:
    """The logs of a job's runs, newest first."""

    job_id: Operator[int]
    executions: Operator[list[LogOfExecution]]
    has_live_logs: Operator[bool]
    stream_v2_available: Operator[bool]
    """Whether `/logs/stream/v2` streams it."""
    total: Operator[int]
    limit: Operator[int]
    offset: Operator[int]


@record
class LogEntry:
    """One line of a log."""

    id: Operator[int]
    schema_version: Operator[int]
    timestamp: Operator[datetime]
    level: Operator[str]
    category: Operator[str]
    """crawler.lifecycle, .fetch, .extract, .error, .rate_limit, .queue or .metrics."""
    message: Operator[str]
    job_id: Operator[int]
    execution_id: Operator[int]
    fields: Operator[dict[str, Any]]


@record
class LogView:
    """Some lines of an execution's log."""

    job_id: Operator[int]
    execution_id: Operator[int]
    execution_number: Operator[int]
    status: Operator[str]
    lines: Operator[list[LogEntry]]
    line_count: Operator[int]
    """Lines of this response."""
    total_lines: Operator[int]
    """Lines of the whole log."""
    dropped_lines: Operator[int]
    """Lines that exceeded the limit of the log."""
    next_after: Operator[int]
    """`after` of the next request."""


@record
class JobEventRecord:
    """An event of a job."""

    id: Operator[int]
    event: Operator[str]
    """job:status, job:progress or job:completed."""
    data: Operator[dict[str, Any]]


@record
class EventList:
    """Events in commit order."""

    events: Operator[list[JobEventRecord]]
    next_after: Operator[int]
    """`after` of the next request."""
    last_id: Operator[int]
    """Id of the newest event; start there to receive only new ones."""


def job_record(
    row: JobRow, waits: Mapping[int, RunWait] = MappingProxyType({}), counts: Counts | None = None
) -> JobRecord:
    """Return the record of a job; `waits` holds the reasons of queued executions (`waiting.waits_of`), `counts` those
    of its latest execution if they are newer than its row.
    """
    job, latest = row.job, row.latest
    return from_row(
        JobRecord,
        job,
        source_code=row.source.code,
        source_name=row.source.name,
        admin_status=row.admin_status,
        schedule=words_of(schedule_of_job(job)),
        is_paused=job.state == "paused",
        failure_count=job.failed_runs,
        started_at=latest and latest.started_at,
        completed_at=latest and latest.finished_at,
        metadata=job.details,
        run_may=latest
        and may_wait(job, latest, is_own=is_own_run(job.kind, latest.config, job.config, row.source.config)),
        latest_execution=latest and execution_record(latest, counts, waits.get(latest.id)),
    )


def detailed_execution(run: Execution, counts: Counts | None = None, wait: RunWait | None = None) -> ExecutionDetail:
    metrics = {"crawl_metrics": run.metrics} if run.metrics else {}
    return from_row(ExecutionDetail, execution_record(run, counts, wait), stack_trace=run.stack, metadata=metrics)


def execution_record(run: Execution, counts: Counts | None, wait: RunWait | None) -> ExecutionRecord:
    """Return an execution without stack and metrics; `counts` are newer ones, `wait` is the reason if it is queued."""
    memory, is_over = run.peak_memory_bytes, run.state not in ("queued", "running")
    items = counts or run
    return from_row(
        ExecutionRecord,
        run,
        ending=ending_word(run.state, run.reason),
        sentence=sentence_of(run.state, run.reason, run.shortfalls) if is_over else wait and wait.sentence,
        waits_for=wait and wait.code,
        # While it runs nothing is known, for it or against it.
        research_ready=rule_of(run.state, run.reason).is_ready if is_over else None,
        paused_seconds=round(run.paused_seconds, 1),
        items_crawled=items.items_crawled,
        items_failed=items.items_failed,
        items_total=items.items_total,
        memory_peak_mb=None if memory is None else round(memory / _MB, 1),
        storage=run.storage or {},
        artifacts=run.artifacts or {},
        log_object_key=log_key(run),
        log_size_bytes=run.log_bytes,
        log_dropped_lines=run.log_dropped,
    )


def log_key(run: Execution) -> str | None:
    """Return the name of an execution's log; None if it has no lines, or was deleted."""
    if not run.log_lines or run.pruned_at is not None:
        return None
    return LOG_NAME.format(job_id=run.job_id, number=run.number)


def log_record(run: Execution) -> LogOfExecution:
    key = log_key(run)
    return from_row(
        LogOfExecution,
        run,
        execution_id=run.id,
        execution_number=run.number,
        status=run.state,
        completed_at=run.finished_at,
        log_available=key is not None,
        log_object_key=key,
    )


def log_entry(line: LogLine, *, job_id: int) -> LogEntry:
    return LogEntry(**{**entry(line, job_id=job_id), "id": line.id, "timestamp": line.at})


def stats_record(job: Job) -> JobStats:
    """Return a job's totals, read from its row: the cost does not depend on the length of the history."""
    finished = job.successful_runs + job.failed_runs
    return from_row(
        JobStats,
        job,
        job_id=job.id,
        total_executions=job.total_runs,
        average_duration_ms=job.total_duration_ms / job.total_runs if job.total_runs else 0.0,
        next_scheduled_at=job.next_run_at,
        success_rate=job.successful_runs / finished if finished else 0.0,
    )
