"""Metrics of crawls for monitoring: totals of the time series, and current values from the rows.

The cost grows with the number of running crawls and sources, not with the archive.
"""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from holdfast.clock import Clock
from holdfast.db.engine import moment_in, server_clock
from holdfast.db.models import Domain
from holdfast.jobs.alerts import MINUTES, AlertName, firing, open_workers, running_jobs
from holdfast.metrics import RecordedCrawls
from holdfast.processes.owners import GONE, WORKER_KINDS
from holdfast.series.counting import COUNTED, LATENCY, LATENCY_S, STATUSES, failures_of
from holdfast.series.queries import cleanups, last_minutes, queue_length, series_totals
from holdfast.types import FAILURES


def read_recorded(session: Session, clock: Clock) -> RecordedCrawls:
    now = moment_in(session, server_clock(clock))
    totals, minutes = series_totals(session), last_minutes(session, now=now, minutes=MINUTES)
    well = sum(point.counts["success"] for point in minutes)
    badly = sum(failures_of(point.counts) for point in minutes)
    workers, runs = open_workers(session, kinds=WORKER_KINDS), running_jobs(session)
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
