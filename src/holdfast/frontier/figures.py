"""Figures of a run's frontier for operators, and which run they mean."""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple

from sqlalchemy import exists, func, select
from sqlalchemy.orm import Session

from holdfast.clock import to_micros
from holdfast.db.models import AddedUrl, Domain, Execution, Job, Queue, Source
from holdfast.errors import NotFound
from holdfast.records import Operator, record

COUNTED: Final = 10_000
"""Limit of counts: to count millions of rows for one response would take seconds."""


class SelectedFrontier(NamedTuple):
    """An execution, and the one whose frontier it uses."""

    execution_id: int
    frontier_id: int
    state: str
    source: str
    source_id: int


_FRONTIER_ID = func.coalesce(Execution.frontier_id, Execution.id)
# Imports and polls of feeds have no frontier.
_HAS_FRONTIER = Job.kind.not_in(("feed", "import")), exists().where(Queue.execution_id == _FRONTIER_ID)


def select_frontier(session: Session, wanted: int | None, *, source_id: int | None = None) -> SelectedFrontier:
    """Return this execution, or the newest crawl (of a source) that has a frontier; raise NotFound."""
    statement = (
        select(Execution.id, _FRONTIER_ID, Execution.state, Source.code, Source.id)
        .join(Job, Job.id == Execution.job_id)
        .join(Source, Source.id == Job.source_id)
    )
    if wanted is not None:
        statement = statement.where(Execution.id == wanted)
    else:
        own = [] if source_id is None else [Job.source_id == source_id]
        statement = statement.where(*own, *_HAS_FRONTIER).order_by(Execution.id.desc()).limit(1)
    row = session.execute(statement).one_or_none()
    if row is not None:
        return SelectedFrontier(*row)
    if wanted is not None:
        raise NotFound(f"there is no execution {wanted}; leave it out for the newest crawl, or see: holdfast status")
    if source_id is not None:
        raise NotFound(f"no crawl of source {source_id} has queued anything yet; run its job, or add an address")
    raise NotFound("no crawl has queued anything yet; start one with: holdfast crawl https://example.org")


@record
class FrontierFigures:
    """Figures of an execution's frontier; each URL counts once."""

    execution_id: Operator[int]
    source_code: Operator[str]
    state: Operator[str]
    """State of the execution: queued, running, stopped, completed, failed or cancelled."""
    pending: Operator[int]
    """Queued URLs, including those that are being fetched."""
    in_progress: Operator[int]
    """Domains with a running request, one at a time each."""
    completed: Operator[int]
    failed: Operator[int]
    ruled_out: Operator[int]
    """Excluded by a rule, a limit or an operator without a request."""
    total_domains: Operator[int]
    paused_domains: Operator[int]
    """Paused domains with queued URLs."""
    waiting: Operator[int]
    """URLs that an operator added for the source's next run; counted up to 10,000."""


def frontier_figures(session: Session, selected: SelectedFrontier, *, now: datetime) -> FrontierFigures:
    """Return the figures of an execution; reads one row per domain, no attempts."""
    sums = session.execute(
        select(
            func.coalesce(func.sum(Queue.open), 0),
            func.coalesce(func.sum(Queue.succeeded), 0),
            func.coalesce(func.sum(Queue.failed), 0),
            func.coalesce(func.sum(Queue.ruled_out), 0),
            func.count(),
        ).where(Queue.execution_id == selected.frontier_id)
    ).one()
    queued = exists().where(Queue.execution_id == selected.frontier_id, Queue.domain_id == Domain.id, Queue.open > 0)
    # From the few domains that are held, or were changed by hand, to the queue: never the other way round.
    held = select(func.count()).where(Domain.lease_owner.is_not(None), Domain.lease_expires_at > to_micros(now), queued)
    paused = select(func.count()).where(Domain.changed_at.is_not(None), Domain.paused_at.is_not(None), queued)
    added = select(AddedUrl.id).where(AddedUrl.source_id == selected.source_id, AddedUrl.execution_id.is_(None))
    waiting = select(func.count()).select_from(added.limit(COUNTED).subquery())
    pending, completed, failed, ruled_out, domains = (int(value) for value in sums)
    return FrontierFigures(
        execution_id=selected.execution_id,
        source_code=selected.source,
        state=selected.state,
        pending=pending,
        completed=completed,
        failed=failed,
        ruled_out=ruled_out,
        total_domains=domains,
        in_progress=session.scalar(held) or 0,
        paused_domains=session.scalar(paused) or 0,
        waiting=session.scalar(waiting) or 0,
    )
