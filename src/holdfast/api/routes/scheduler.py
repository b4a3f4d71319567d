"""`/api/v1/scheduler`: how it is doing and how runs are spread; and jobs for all enabled sources (NC-051)."""

from __future__ import annotations

from fastapi import APIRouter

from holdfast import audit
from holdfast.api.deps import SessionDep
from holdfast.api.errors import answers
from holdfast.api.hands import DeskDep, HandDep
from holdfast.api.roles import ADMIN
from holdfast.api.schemas.scheduling import (
    DistributionShown,
    ExecutionFigures,
    HourShown,
    MetricsShown,
    MovedShown,
    RebalanceShown,
    SkippedShown,
    SyncShown,
)
from holdfast.jobs.following import sync_in_portions
from holdfast.jobs.metrics import count_metrics
from holdfast.jobs.placement import preview_rebalance, rebalance, show_distribution
from holdfast.jobs.schedule.queries import last_scheduled_at
from holdfast.jobs.slots import Rebalance

router = APIRouter(tags=["scheduler"], dependencies=[ADMIN])
_ANSWERS = answers(400, 403, 413, 415, 503)


@router.get("/api/v1/scheduler/metrics", responses=_ANSWERS)
def scheduler_metrics(session: SessionDep, desk: DeskDep) -> MetricsShown:
    """Return how many jobs are in which state, and how the runs of the last day went (NC-024)."""
    desk.look(session)
    found = count_metrics(session, now=desk.clock.now(), last_check_at=last_scheduled_at(session))
    return MetricsShown(
        jobs=found.jobs,
        executions=ExecutionFigures(
            total=found.executions_total, average_duration_ms=found.average_duration_ms,
            success_rate=found.success_rate,
        ),
        last_check_at=found.last_check_at, last_metrics_update=found.last_metrics_update,
        stale_locks_cleared=found.stale_locks_cleared, warnings=list(found.warnings()),
    )  # fmt: skip


@router.get("/api/v1/scheduler/distribution", responses=_ANSWERS)
def scheduler_distribution(session: SessionDep, desk: DeskDep) -> DistributionShown:
    """Return how the runs of the coming 24 hours lie over the hours of the day, UTC (NC-029)."""
    desk.look(session)
    found = show_distribution(session, now=desk.clock.now())
    return DistributionShown(
        window_hours=found.window_hours, slot_minutes=found.slot_minutes, total_jobs=found.total_jobs,
        hourly_distribution=[HourShown(hour=hour, job_count=count) for hour, count in enumerate(found.hours)],
        distribution_score=found.score, peak_hour=found.peak_hour, peak_count=found.peak_count,
        rebalance_advised=found.rebalance_advised,
    )  # fmt: skip


@router.post("/api/v1/scheduler/rebalance/preview", responses=_ANSWERS)
def preview_now(session: SessionDep, desk: DeskDep) -> RebalanceShown:
    """Return what a rebalance would do now; nothing is changed (NC-030)."""
    desk.look(session)
    return _shown(preview_rebalance(session, now=desk.clock.now()))


@router.post("/api/v1/scheduler/rebalance", responses=_ANSWERS)
def rebalance_now(hand: HandDep) -> RebalanceShown:
    """Move jobs into emptier slots, as the preview says; one to which something happened meanwhile stays."""
    desk = hand.desk
    with desk.database.read() as session:
        desk.look(session)
    done = rebalance(desk.database, now=desk.clock.now())
    with hand.write() as session:
        audit.record(session, desk.clock, action="scheduler.rebalanced", subject="scheduler",
                     detail={"moved": len(done.moved), "skipped": len(done.skipped)})  # fmt: skip
    return _shown(done)


def _shown(plan: Rebalance) -> RebalanceShown:
    return RebalanceShown(
        moved=[MovedShown(job_id=one.job_id, old_time=one.old_time, new_time=one.new_time) for one in plan.moved],
        skipped=[SkippedShown(job_id=one.job_id, reason=one.reason.value) for one in plan.skipped],
        new_distribution_score=plan.score,
    )  # fmt: skip


@router.post("/api/v1/admin/sync-enabled-sources", responses=_ANSWERS, tags=["sources"])
def sync_sources(hand: HandDep) -> SyncShown:
    """Give every enabled source a crawl job that has none, and resume what its source's absence had paused (NC-051)."""
    desk = hand.desk
    done = sync_in_portions(
        hand.write, desk.clock, desk.board, interval_minutes=desk.settings.jobs.auto_interval_minutes
    )
    return SyncShown(
        sources_seen=done.sources_seen, sources_enabled=done.sources_enabled, created=list(done.created),
        already_has_job=list(done.with_job), resumed=list(done.woken), skipped_disabled=list(done.disabled),
        skipped_rate_limit_parse_failure=[], errors=[f"{code}: {told}" for code, told in done.errors.items()],
    )  # fmt: skip
