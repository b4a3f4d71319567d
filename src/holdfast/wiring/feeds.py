"""Feeds of one execution's source, for the process or runner that polls them."""

from __future__ import annotations

from holdfast.feeds.polling import FeedPolling
from holdfast.feeds.polling_queries import source_of
from holdfast.sources.plan import CrawlPlan
from holdfast.wiring import Runtime


def open_feeds(runtime: Runtime, plan: CrawlPlan, execution_id: int) -> FeedPolling | None:
    """Return the recorder of feed responses for an execution's source; None if its plan ignores feeds."""
    if plan.feeds == "off":
        return None
    with runtime.raw_db.read() as tx:
        source_id = source_of(tx, execution_id=execution_id)
    if source_id is None:
        return None
    start = plan.first_seed_url().hash64 if plan.polls and plan.search else None
    return FeedPolling(
        runtime.raw_db,
        runtime.frontier,
        runtime.clock,
        runtime.settings,
        source_id=source_id,
        execution_id=execution_id,
        polls=plan.polls,
        start=start,
    )
