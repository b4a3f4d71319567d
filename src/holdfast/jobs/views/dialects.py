"""Older dialects of the one view (`job_view`), each at its own routes: other field names for the same facts.

`/api/admin/jobs` writes camelCase and a status of its own, which `--json` of the commands prints as `status`, too; the
scheduler's routes have their own objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.jobs.endings import Counts
from holdfast.jobs.slots import Distribution, Rebalance
from holdfast.jobs.store import execution_name
from holdfast.jobs.views.job_view import job_view
from holdfast.jobs.views.listing import ListedJob, SchedulerMetrics, WarcTotals

if TYPE_CHECKING:
    # `holdfast job list` loads this file: all that makes jobs for sources would come along for a type's sake.
    from holdfast.jobs.administration.source_jobs import Synced

_WAITING = ("queued", "retryable")


def command_job(listed: ListedJob) -> dict[str, Any]:
    """Return a job as `--json` prints it: the one view, but `status` is the admin word; `state` is the route's."""
    view = job_view(listed)
    return {**view, "status": view["admin_status"]}


def admin_summary(listed: ListedJob, files: WarcTotals) -> dict[str, Any]:
    """Return a job as `/api/admin/jobs` lists it."""
    view = job_view(listed)
    run: dict[str, Any] = view["latest_execution"] or {}
    queued_at, next_run_at = run.get("queued_at") or run.get("created_at"), view["next_run_at"]
    # A job that waits shows when it will be queued; one that ran shows when that run was queued.
    waits = view["admin_status"] in _WAITING
    return {
        "id": view["id"],
        "executionId": run.get("id"),
        "sourceCode": view["source_code"],
        "sourceName": view["source_name"],
        "name": view["name"] or _name_of_run(view["source_code"], run.get("id")),
        "status": view["admin_status"],
        "retryCount": view["current_retry_count"],
        "createdAt": view["created_at"],
        "queuedAt": (next_run_at if waits else None) or queued_at or next_run_at,
        "startedAt": view["started_at"],
        "finishedAt": view["completed_at"],
        "cleanupStatus": run.get("cleanup_status", "none"),
        "cleanedAt": run.get("cleaned_at"),
        "crawlerExitCode": run.get("exit_code"),
        "crawlerStatus": run.get("failure") or ("success" if run.get("status") == "completed" else None),
        "warcFileCount": files.number,
        "warcBytesTotal": files.size,
        "indexedPageCount": run.get("items_indexed", 0),
        "storageScannedAt": run.get("storage", {}).get("scanned_at"),
        "editionId": view["edition_id"],
        "shardKey": view["shard_key"],
        "shardKind": view["shard_kind"],
        "acceptanceState": view["acceptance_state"],
    }


def _name_of_run(source_code: str, execution_id: int | None) -> str:
    """Return what a job without a name is called: by its newest run, or by its source before the first."""
    return source_code if execution_id is None else execution_name(source_code, execution_id)


def admin_detail(
    listed: ListedJob, files: WarcTotals, counts: Counts, *, config: dict[str, Any], stats: dict[str, Any]
) -> dict[str, Any]:
    """Return a job as `/api/admin/jobs/{id}` shows it; `stats` are the newest that its crawl wrote."""
    run: dict[str, Any] = job_view(listed)["latest_execution"] or {}
    storage, artifacts = run.get("storage", {}), run.get("artifacts", {})
    return {
        **admin_summary(listed, files),
        "outputDir": run.get("output_dir") or None,
        "crawlerStage": run.get("stage"),
        "pagesCrawled": counts.items_crawled,
        "pagesTotal": counts.items_total,
        "pagesFailed": counts.items_failed,
        "outputBytesTotal": storage.get("output_bytes"),
        "tmpBytesTotal": storage.get("tmp_bytes"),
        "tmpNonWarcBytesTotal": storage.get("tmp_non_warc_bytes"),
        "finalZimPath": artifacts.get("final_zim"),
        "combinedLogPath": artifacts.get("combined_log"),
        "stateFilePath": artifacts.get("state_file"),
        "coverageReportPath": artifacts.get("coverage_report"),
        "config": config,
        "lastStats": stats,
    }


def metrics_object(found: SchedulerMetrics) -> dict[str, Any]:
    """Return how the scheduler is doing, as `/api/v1/scheduler/metrics` shows it."""
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


def distribution_object(found: Distribution) -> dict[str, Any]:
    """Return how the coming day's runs are spread, as `/api/v1/scheduler/distribution` shows it."""
    return {
        "window_hours": found.window_hours,
        "slot_minutes": found.slot_minutes,
        "total_jobs": found.total_jobs,
        "hourly_distribution": [{"hour": hour, "job_count": count} for hour, count in enumerate(found.hours)],
        "slot_distribution": [{"starts_at": slot.starts_at, "job_count": slot.runs} for slot in found.slots],
        "distribution_score": found.score,
        "peak_hour": found.peak_hour,
        "peak_count": found.peak_count,
        "rebalance_advised": found.rebalance_advised,
    }


def rebalance_object(plan: Rebalance) -> dict[str, Any]:
    """Return what a rebalance does, as `/api/v1/scheduler/rebalance` shows it."""
    return {
        "moved": [{"job_id": one.job_id, "old_time": one.old_time, "new_time": one.new_time} for one in plan.moved],
        "skipped": [{"job_id": one.job_id, "reason": one.reason.value} for one in plan.skipped],
        "new_distribution_score": plan.score,
    }


def sync_object(done: Synced) -> dict[str, Any]:
    """Return how many sources each thing happened to, and the errors by source."""
    return {
        "sources_seen": done.sources_seen,
        "sources_enabled": done.sources_enabled,
        "created": len(done.created),
        "already_has_job": len(done.with_job),
        "resumed": len(done.woken),
        "skipped_disabled": len(done.disabled),
        "skipped_rate_limit_parse_failure": 0,
        "errors": [f"{code}: {message}" for code, message in done.errors.items()],
    }
