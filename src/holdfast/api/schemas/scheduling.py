"""The scheduler in document 003's fields: metrics, distribution, rebalance, and jobs for enabled sources."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from holdfast.api.schemas.jobs import Shown


class ExecutionFigures(Shown):
    """How runs went."""

    total: int = Field(description="Of all time.")
    average_duration_ms: float = Field(description="Of the last 24 hours.")
    success_rate: float = Field(description="Of the last 24 hours, 0 to 1; 1 if nothing ran.")


class MetricsShown(Shown):
    """How the scheduler is doing (NC-024)."""

    jobs: dict[str, int] = Field(description="By state, all seven.")
    executions: ExecutionFigures
    last_check_at: datetime | None = Field(description="When a process that schedules was last heard of.")
    last_metrics_update: datetime
    stale_locks_cleared: int
    warnings: list[str]


class HourShown(Shown):
    """One hour of the day, UTC."""

    hour: int
    job_count: int


class DistributionShown(Shown):
    """How the runs of the coming day are spread (NC-029)."""

    window_hours: int
    slot_minutes: int
    total_jobs: int
    hourly_distribution: list[HourShown]
    distribution_score: float
    peak_hour: int
    peak_count: int
    rebalance_advised: bool


class MovedShown(Shown):
    """A job that another slot suits better."""

    job_id: int
    old_time: datetime
    new_time: datetime


class SkippedShown(Shown):
    """A job that stays, and why."""

    job_id: int
    reason: str


class RebalanceShown(Shown):
    """What a rebalance does: every scheduled job is in one of the two lists (NC-030)."""

    moved: list[MovedShown]
    skipped: list[SkippedShown]
    new_distribution_score: float


class SyncShown(Shown):
    """What became of the sources (3.2 of the facts); each by its code."""

    sources_seen: int
    sources_enabled: int
    created: list[str]
    already_has_job: list[str]
    resumed: list[str]
    skipped_disabled: list[str]
    skipped_rate_limit_parse_failure: list[str] = Field(
        description="Always empty: a delay that is no number is kept out."
    )
    errors: list[str]
