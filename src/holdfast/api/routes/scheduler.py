"""`/api/v1/scheduler`: how it is doing and how runs are spread; and jobs for all enabled sources (NC-051)."""

from __future__ import annotations

from fastapi import APIRouter

from holdfast import audit
from holdfast.api.deps import SessionDep
from holdfast.api.errors import answers
from holdfast.api.hands import DeskDep, HandDep, TurnsDep
from holdfast.api.roles import ADMIN
from holdfast.api.schemas.scheduling import DistributionShown, MetricsShown, RebalanceShown, SyncShown
from holdfast.jobs.following import sync_in_portions
from holdfast.jobs.metrics import count_metrics
from holdfast.jobs.placement import preview_rebalance, rebalance, show_distribution
from holdfast.jobs.schedule.queries import last_scheduled_at
from holdfast.jobs.shapes import distribution_shape, metrics_shape, rebalance_shape, sync_shape

router = APIRouter(tags=["scheduler"], dependencies=[ADMIN])
_ANSWERS = answers(400, 403, 413, 415, 503)


@router.get("/api/v1/scheduler/metrics", responses=_ANSWERS)
def scheduler_metrics(session: SessionDep, desk: DeskDep) -> MetricsShown:
    """Return how many jobs are in which state, and how the runs of the last day went (NC-024)."""
    desk.look(session)
    found = count_metrics(session, now=desk.clock.now(), last_check_at=last_scheduled_at(session))
    return MetricsShown.model_validate(metrics_shape(found))


@router.get("/api/v1/scheduler/distribution", responses=_ANSWERS)
def scheduler_distribution(session: SessionDep, desk: DeskDep) -> DistributionShown:
    """Return how the runs of the coming 24 hours lie over the hours of the day, UTC (NC-029)."""
    desk.look(session)
    return DistributionShown.model_validate(distribution_shape(show_distribution(session, now=desk.clock.now())))


@router.post("/api/v1/scheduler/rebalance/preview", responses=_ANSWERS)
def preview_now(session: SessionDep, desk: DeskDep) -> RebalanceShown:
    """Return what a rebalance would do now; nothing is changed (NC-030)."""
    desk.look(session)
    return RebalanceShown.model_validate(rebalance_shape(preview_rebalance(session, now=desk.clock.now())))


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
    return RebalanceShown.model_validate(rebalance_shape(done))


@router.post("/api/v1/admin/sync-enabled-sources", responses=_ANSWERS, tags=["sources"])
def sync_sources(turns: TurnsDep) -> SyncShown:
    """Give every enabled source a crawl job that has none, and resume what its source's absence had paused (NC-051)."""
    desk = turns.desk
    done = sync_in_portions(
        turns.write, desk.clock, desk.board, interval_minutes=desk.settings.jobs.auto_interval_minutes
    )
    return SyncShown.model_validate(sync_shape(done))
