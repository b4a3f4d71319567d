"""The scheduler in document 003's fields: metrics, distribution, rebalance, and jobs for enabled sources."""

from __future__ import annotations

from datetime import datetime

from pydantic import ConfigDict, Field

from holdfast.api.schemas.jobs import Shown
from holdfast.jobs.slots import Reason


class ExecutionFigures(Shown):
    """How runs went."""

    total: int = Field(description="Of all time.")
    average_duration_ms: float = Field(description="Of the last 24 hours.")
    success_rate: float = Field(description="Of the last 24 hours, 0 to 1; 1 if nothing ran.")


class MetricsShown(Shown):
    """How the scheduler is doing (NC-024)."""

    model_config = ConfigDict(json_schema_extra={"examples": [{
        "jobs": {"pending": 0, "scheduled": 40, "running": 2, "paused": 1, "completed": 3, "failed": 0, "cancelled": 0},
        "executions": {"total": 1200, "average_duration_ms": 338000.0, "success_rate": 0.98},
        "last_check_at": "2026-11-15T12:20:40Z", "last_metrics_update": "2026-11-15T12:20:41Z",
        "stale_locks_cleared": 1, "warnings": [],
    }]})  # fmt: skip

    jobs: dict[str, int] = Field(description="By state, all seven.")
    executions: ExecutionFigures
    last_check_at: datetime | None = Field(description="When a process that schedules was last heard of.")
    last_metrics_update: datetime
    stale_locks_cleared: int = Field(description="Of all time; when it grows, workers die or hang.")
    warnings: list[str] = Field(description="A success rate below 0.8, stale locks again and again.")


class HourShown(Shown):
    """One hour of the day, UTC."""

    hour: int
    job_count: int


class DistributionShown(Shown):
    """How the runs of the coming day are spread (NC-029)."""

    model_config = ConfigDict(json_schema_extra={"examples": [{
        "window_hours": 24, "slot_minutes": 15, "total_jobs": 2,
        "hourly_distribution": [{"hour": 0, "job_count": 1}, {"hour": 1, "job_count": 1}],
        "distribution_score": 0.92, "peak_hour": 0, "peak_count": 1, "rebalance_advised": False,
    }]})  # fmt: skip

    window_hours: int
    slot_minutes: int
    total_jobs: int
    hourly_distribution: list[HourShown]
    distribution_score: float = Field(description="0 to 1; 1 is even.")
    peak_hour: int
    peak_count: int
    rebalance_advised: bool = Field(description="The score is below 0.7.")


class MovedShown(Shown):
    """A job that another slot suits better."""

    job_id: int
    old_time: datetime
    new_time: datetime


class SkippedShown(Shown):
    """A job that stays, and why."""

    job_id: int
    reason: str = Field(description=f"One of {', '.join(Reason)}.")


class RebalanceShown(Shown):
    """What a rebalance does: every scheduled job is in one of the two lists (NC-030)."""

    model_config = ConfigDict(json_schema_extra={"examples": [{
        "moved": [{"job_id": 1, "old_time": "2026-11-15T18:15:00Z", "new_time": "2026-11-15T20:30:00Z"}],
        "skipped": [{"job_id": 2, "reason": "placement_cooldown"}], "new_distribution_score": 0.95,
    }]})  # fmt: skip

    moved: list[MovedShown]
    skipped: list[SkippedShown]
    new_distribution_score: float


class SyncShown(Shown):
    """What became of the sources (3.2 of the facts); each by its code."""

    model_config = ConfigDict(json_schema_extra={"examples": [{
        "sources_seen": 3, "sources_enabled": 2, "created": ["new"], "already_has_job": ["example"], "resumed": [],
        "skipped_disabled": ["old"], "skipped_rate_limit_parse_failure": [], "errors": [],
    }]})  # fmt: skip

    sources_seen: int
    sources_enabled: int
    created: list[str] = Field(description="Have a job now.")
    already_has_job: list[str]
    resumed: list[str] = Field(description="Of those, whose jobs go on.")
    skipped_disabled: list[str]
    skipped_rate_limit_parse_failure: list[str] = Field(
        description="Always empty: a delay that is no number is kept out."
    )
    errors: list[str] = Field(description="Code and reason of those whose configuration cannot be used.")
