"""Figures of crawls: metrics for monitoring, and totals for readers.

The cost grows with the number of crawls, domains and sources, not with the archive.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from holdfast.clock import Clock
from holdfast.db.engine import moment_in, server_clock
from holdfast.db.models import Domain, ExecutionCount, Owner, Page, PageCrawl, Queue
from holdfast.jobs.alerts import MINUTES, AlertName, firing, open_workers, running_jobs
from holdfast.metrics import RecordedCrawls
from holdfast.processes.owners import GONE
from holdfast.series.counting import COUNTED, LATENCY, LATENCY_S, STATUSES, failures_of
from holdfast.series.queries import cleanups, last_minutes, queue_length, series_totals
from holdfast.types import FAILURES
from holdfast.withdrawals.visibility import hidden_sources, visible_run


def read_recorded(session: Session, clock: Clock) -> RecordedCrawls:
    now = moment_in(session, server_clock(clock))
    totals, minutes = series_totals(session), last_minutes(session, now=now, minutes=MINUTES)
    well = sum(point.counts["success"] for point in minutes)
    badly = sum(failures_of(point.counts) for point in minutes)
    workers, runs = open_workers(session), running_jobs(session)
    fires = {row.name for row in firing(session)}
    states = session.execute(
        select(Domain.circuit_state, func.count())
        .where(Domain.circuit_state != "closed")
        .group_by(Domain.circuit_state)
    )
    leased = select(func.count()).where(Domain.lease_owner.is_not(None))
    return RecordedCrawls(
        by_source={code: {name: counts[name] for name in COUNTED} for code, counts in totals.items()},
        latency_s=LATENCY_S,
        latency_columns=LATENCY,
        failures=FAILURES,
        statuses=STATUSES,
        pages_per_second=round(minutes[-1].counts["pages"] / 60, 4),
        success_rate=round(well / (well + badly), 4) if well + badly else None,
        queue=queue_length(session),
        # Ids are never reused: the highest id is the number of rows ever created.
        domains=session.scalar(select(func.max(Domain.id))) or 0,
        domains_leased=session.scalar(leased) or 0,
        domains_waiting=max(point.domains_waiting for point in minutes[-2:]),
        circuits={str(state): int(count) for state, count in states},
        workers=sum(now - owner.heartbeat_at < GONE for owner in workers),
        heartbeat_age_s=max(((now - owner.heartbeat_at).total_seconds() for owner in workers), default=0.0),
        progress_age_s=(now - runs[0][2]).total_seconds() if runs else 0.0,
        alerts={name.value: name.value in fires for name in AlertName},
        cleanups={row.name: (row.removed, row.last_at.timestamp()) for row in cleanups(session)},
    )


class CrawlTotals(NamedTuple):
    pages_crawled: int
    pages_failed: int
    """URLs that failed, without those that a rule excluded."""
    bytes_downloaded: int
    links_discovered: int
    frontier_pending: int
    frontier_in_progress: int
    frontier_completed: int
    frontier_failed: int
    total_domains: int
    workers: Sequence[Owner]
    top: Sequence[tuple[str, int]]


def crawl_totals(session: Session, clock: Clock) -> CrawlTotals:
    """Return the totals of crawls of sources that the viewer may see.

    Reads a few rows per crawl and domain.
    """
    seen = visible_run(Queue.execution_id)
    queues = session.execute(
        select(
            func.coalesce(func.sum(Queue.open), 0),
            func.coalesce(func.sum(Queue.succeeded), 0),
            func.coalesce(func.sum(Queue.failed), 0),
        ).where(seen)
    ).one()
    kept = func.sum(Queue.succeeded)
    top = session.execute(
        select(Domain.name, kept)
        .join(Queue, Queue.domain_id == Domain.id)
        .where(seen)
        .group_by(Domain.id)
        .order_by(kept.desc(), Domain.id)
        .limit(10)
    )
    # Domains and pages belong to no source: where something is hidden, those count that a shown crawl has queued.
    shown = [_of_domain(Domain.id)] if hidden_sources(session) else []
    counts = session.scalars(select(ExecutionCount.counts).where(visible_run(ExecutionCount.execution_id))).all()
    return CrawlTotals(
        pages_crawled=sum(one.get("pages", 0) for one in counts),
        bytes_downloaded=sum(one.get("bytes", 0) for one in counts),
        pages_failed=sum(one.get("outcomes", {}).get(word, 0) for one in counts for word in FAILURES),
        frontier_pending=int(queues[0]),
        frontier_completed=int(queues[1]),
        frontier_failed=int(queues[2]),
        frontier_in_progress=session.scalar(select(func.count()).where(Domain.lease_owner.is_not(None), *shown)) or 0,
        total_domains=session.scalar(select(func.count()).select_from(Domain).where(*shown)) or 0,
        links_discovered=_links(session, is_some_hidden=bool(shown)),
        workers=active_workers(session, clock),
        top=[(name, int(count)) for name, count in top],
    )


def _links(session: Session, *, is_some_hidden: bool) -> int:
    if not is_some_hidden:
        # Ids are never used again: the highest is how many there were, without counting them.
        return session.scalar(select(func.max(Page.id))) or 0
    # Counted, although it reads an index from end to end: the ids of all crawls come from one row of numbers.
    met = select(func.count(PageCrawl.page_id.distinct())).where(visible_run(PageCrawl.execution_id))
    return session.scalar(met) or 0


def _of_domain(domain_id: Any) -> ColumnElement[bool]:
    queued = select(Queue.domain_id).where(visible_run(Queue.execution_id))
    return domain_id.in_(queued)  # type: ignore[no-any-return]


def active_workers(session: Session, clock: Clock) -> list[Owner]:
    """Return the workers with a recent heartbeat, oldest first."""
    fresh = moment_in(session, server_clock(clock)) - GONE
    return [owner for owner in open_workers(session) if owner.heartbeat_at >= fresh]
