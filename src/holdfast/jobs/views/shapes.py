"""A job and an execution as documents 003 and 000 show them: the routes and `--json` answer with the same objects.

Document 003 writes snake_case, document 000 camelCase; moments are aware UTC, for whoever renders them.
"""

from __future__ import annotations

from typing import Any

from holdfast.db.models import Execution
from holdfast.errors import Invalid
from holdfast.jobs.administration.source_jobs import Synced
from holdfast.jobs.endings import rule_of, sentence_of
from holdfast.jobs.journal import LOG_NAME
from holdfast.jobs.slots import Distribution, Rebalance
from holdfast.jobs.specs import job_config
from holdfast.jobs.store import execution_name
from holdfast.jobs.views.listing import Files, ListedJob, Pages, SchedulerMetrics, stats_of
from holdfast.sources.config import zimit_job

_MB = 1024 * 1024
_WAITING = ("queued", "retryable")


def job_shape(listed: ListedJob) -> dict[str, Any]:
    """Return a job as `/api/v1/jobs` shows it (NC-001)."""
    job, latest = listed.job, listed.latest
    return {
        "id": job.id,
        "source_id": job.source_id,
        "source_code": listed.source.code,
        "source_name": listed.source.name,
        "name": job.name,
        "type": job.kind,
        "url": job.url,
        "status": job.state,
        "interval_minutes": job.interval_minutes,
        "interval_type": job.interval_type,
        "schedule_enabled": job.schedule_enabled,
        "adaptive_scheduling": job.adaptive_scheduling,
        "next_run_at": job.next_run_at,
        "last_run_at": job.last_execution_at,
        "is_paused": job.state == "paused",
        "paused_at": job.paused_at,
        "paused_by": job.paused_by,
        "cancelled_at": job.cancelled_at,
        "lock_token": job.lock_token,
        "lock_owner": job.lock_owner,
        "lock_acquired_at": job.lock_acquired_at,
        "max_retries": job.max_retries,
        "retry_backoff_seconds": job.retry_backoff_seconds,
        "current_retry_count": job.current_retry_count,
        "failure_count": job.failed_runs,
        "last_failure_at": job.last_failure_at,
        "error_message": job.error_message,
        "started_at": latest.started_at if latest else None,
        "completed_at": latest.finished_at if latest else None,
        "config": job.config,
        "metadata": job.details,
        "created_at": job.created_at,
        "updated_at": job.updated_at,
    }


def execution_shape(execution: Execution, pages: Pages | None = None) -> dict[str, Any]:
    """Return an execution as `/api/v1/executions/:id` shows it (NC-002); `pages` are newer counts of one that runs."""
    memory, is_over = execution.peak_memory_bytes, execution.state not in ("queued", "running")
    return {
        "id": execution.id,
        "job_id": execution.job_id,
        "execution_number": execution.number,
        "status": execution.state,
        "reason": execution.reason,
        "shortfalls": execution.shortfalls,
        "sentence": sentence_of(execution.state, execution.reason, execution.shortfalls) if is_over else None,
        "research_ready": rule_of(execution.state, execution.reason).is_ready if is_over else None,
        "queued_at": execution.queued_at,
        "started_at": execution.started_at,
        "completed_at": execution.finished_at,
        "duration_ms": execution.duration_ms,
        "items_crawled": pages.crawled if pages else execution.items_crawled,
        "items_failed": pages.failed if pages else execution.items_failed,
        "items_indexed": execution.items_indexed,
        "index_status": execution.index_state,
        "error_message": execution.error,
        "failure": execution.failure,
        "stack_trace": execution.stack,
        "cpu_time_ms": execution.cpu_ms,
        "memory_peak_mb": None if memory is None else round(memory / _MB, 1),
        "retry_attempt": execution.retry_attempt,
        "exit_code": execution.exit_code,
        "stage": execution.stage,
        "log_object_key": log_key(execution),
        "log_size_bytes": execution.log_bytes,
        "log_line_count": execution.log_lines,
        "log_dropped_lines": execution.log_dropped,
        "metadata": {"crawl_metrics": execution.metrics} if execution.metrics else {},
    }


def log_key(execution: Execution) -> str | None:
    """Return the name under which an execution's log is kept, None if it has no line (or none any more)."""
    if not execution.log_lines or execution.pruned_at is not None:
        return None
    return LOG_NAME.format(job_id=execution.job_id, number=execution.number)


def stats_shape(listed: ListedJob) -> dict[str, Any]:
    """Return a job's stats as `/api/v1/jobs/:id/stats` shows them (NC-009)."""
    return {"job_id": listed.job.id, **stats_of(listed.job)._asdict()}


def admin_summary(listed: ListedJob, files: Files) -> dict[str, Any]:
    """Return a job as `/api/admin/jobs` lists it (1.7 of the facts)."""
    job, run, status = listed.job, listed.latest, listed.admin_status
    queued = (run.queued_at or run.created_at) if run is not None else None
    return {
        "id": job.id,
        "executionId": run.id if run else None,
        "sourceCode": listed.source.code,
        "sourceName": listed.source.name,
        "name": admin_name(listed),
        "status": status,
        "retryCount": listed.retries,
        "createdAt": job.created_at,
        "queuedAt": (job.next_run_at if status in _WAITING else None) or queued or job.next_run_at,
        "startedAt": run.started_at if run else None,
        "finishedAt": run.finished_at if run else None,
        "cleanupStatus": run.cleanup_status if run else "none",
        "cleanedAt": run.cleaned_at if run else None,
        "crawlerExitCode": run.exit_code if run else None,
        "crawlerStatus": _crawler_status(run),
        "warcFileCount": files.number,
        "warcBytesTotal": files.size,
        "indexedPageCount": run.items_indexed if run else 0,
        "storageScannedAt": run.storage.get("scanned_at") if run else None,
        "editionId": job.edition_id,
        "shardKey": job.shard_key,
        "shardKind": job.shard_kind,
        "acceptanceState": job.acceptance_state,
    }


def admin_detail(listed: ListedJob, files: Files, pages: Pages, stats: dict[str, Any]) -> dict[str, Any]:
    """Return a job as `/api/admin/jobs/{id}` shows it; `stats` are the newest that its crawl wrote."""
    run = listed.latest
    storage: dict[str, Any] = run.storage if run else {}
    artifacts: dict[str, Any] = run.artifacts if run else {}
    return {
        **admin_summary(listed, files),
        "outputDir": (run.output_dir if run else None) or None,
        "crawlerStage": run.stage if run else None,
        "pagesCrawled": pages.crawled,
        "pagesTotal": pages.total,
        "pagesFailed": pages.failed,
        "outputBytesTotal": storage.get("output_bytes"),
        "tmpBytesTotal": storage.get("tmp_bytes"),
        "tmpNonWarcBytesTotal": storage.get("tmp_non_warc_bytes"),
        "finalZimPath": artifacts.get("final_zim"),
        "combinedLogPath": artifacts.get("combined_log"),
        "stateFilePath": artifacts.get("state_file"),
        "coverageReportPath": artifacts.get("coverage_report"),
        "config": admin_config(listed),
        "lastStats": stats,
    }


def admin_name(listed: ListedJob) -> str:
    """Return what document 000 calls a job: its own name, or that of its newest run."""
    if listed.job.name:
        return listed.job.name
    return execution_name(listed.source.code, listed.latest.id) if listed.latest else listed.source.code


def admin_config(listed: ListedJob) -> dict[str, Any]:
    """Return a job's configuration in document 000's shape; as it is stored if it cannot be read any more."""
    try:
        return zimit_job(job_config(listed.job, listed.source))
    except Invalid:
        return listed.job.config


def _crawler_status(run: Execution | None) -> str | None:
    if run is None:
        return None
    return run.failure or ("success" if run.state == "completed" else None)


def metrics_shape(found: SchedulerMetrics) -> dict[str, Any]:
    """Return how the scheduler is doing, as `/api/v1/scheduler/metrics` shows it (NC-024)."""
    return {
        "jobs": found.jobs,
        "executions": {
            "total": found.executions_total,
            "average_duration_ms": found.average_duration_ms,
            "success_rate": found.success_rate,
        },
        "last_check_at": found.last_check_at,
        "last_metrics_update": found.last_metrics_update,
        "stale_locks_cleared": found.stale_locks_cleared,
        "warnings": list(found.warnings()),
    }


def distribution_shape(found: Distribution) -> dict[str, Any]:
    """Return how the coming day's runs are spread, as `/api/v1/scheduler/distribution` shows it (NC-029)."""
    return {
        "window_hours": found.window_hours,
        "slot_minutes": found.slot_minutes,
        "total_jobs": found.total_jobs,
        "hourly_distribution": [{"hour": hour, "job_count": count} for hour, count in enumerate(found.hours)],
        "distribution_score": found.score,
        "peak_hour": found.peak_hour,
        "peak_count": found.peak_count,
        "rebalance_advised": found.rebalance_advised,
    }


def rebalance_shape(plan: Rebalance) -> dict[str, Any]:
    """Return what a rebalance does, as `/api/v1/scheduler/rebalance` shows it (NC-030)."""
    return {
        "moved": [{"job_id": one.job_id, "old_time": one.old_time, "new_time": one.new_time} for one in plan.moved],
        "skipped": [{"job_id": one.job_id, "reason": one.reason.value} for one in plan.skipped],
        "new_distribution_score": plan.score,
    }


def sync_shape(done: Synced) -> dict[str, Any]:
    """Return what became of the sources, each by its code (3.2 of the facts; NC-051)."""
    return {
        "sources_seen": done.sources_seen,
        "sources_enabled": done.sources_enabled,
        "created": list(done.created),
        "already_has_job": list(done.with_job),
        "resumed": list(done.woken),
        "skipped_disabled": list(done.disabled),
        "skipped_rate_limit_parse_failure": [],
        "errors": [f"{code}: {told}" for code, told in done.errors.items()],
    }
