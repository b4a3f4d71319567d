"""The schedule as document 003 shows it: the routes and `--json` answer with the same objects.

Moments are aware UTC, for whoever renders them.
"""

from __future__ import annotations

from typing import Any

from holdfast.jobs.following import Synced
from holdfast.jobs.metrics import SchedulerMetrics
from holdfast.jobs.slots import Distribution, Rebalance


def metrics_shape(found: SchedulerMetrics) -> dict[str, Any]:
    """Return how the scheduler is doing, as `/api/v1/scheduler/metrics` shows it (NC-024)."""
    return {
        "jobs": found.jobs,
        "executions": {
            "total": found.executions_total, "average_duration_ms": found.average_duration_ms,
            "success_rate": found.success_rate,
        },
        "last_check_at": found.last_check_at, "last_metrics_update": found.last_metrics_update,
        "stale_locks_cleared": found.stale_locks_cleared, "warnings": list(found.warnings()),
    }  # fmt: skip


def distribution_shape(found: Distribution) -> dict[str, Any]:
    """Return how the coming day's runs are spread, as `/api/v1/scheduler/distribution` shows it (NC-029)."""
    return {
        "window_hours": found.window_hours, "slot_minutes": found.slot_minutes, "total_jobs": found.total_jobs,
        "hourly_distribution": [{"hour": hour, "job_count": count} for hour, count in enumerate(found.hours)],
        "distribution_score": found.score, "peak_hour": found.peak_hour, "peak_count": found.peak_count,
        "rebalance_advised": found.rebalance_advised,
    }  # fmt: skip


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
        "sources_seen": done.sources_seen, "sources_enabled": done.sources_enabled, "created": list(done.created),
        "already_has_job": list(done.with_job), "resumed": list(done.woken), "skipped_disabled": list(done.disabled),
        "skipped_rate_limit_parse_failure": [], "errors": [f"{code}: {told}" for code, told in done.errors.items()],
    }  # fmt: skip
