"""Which runs and sources an address that is added by hand may belong to."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from holdfast.clock import to_micros
from holdfast.db.models import Execution, Job, Source

# Kinds of jobs whose runs take no single addresses: a poll follows no link, an import asks no server.
_OTHERS = ("feed", "import")
_MOST = 200
# States of jobs of which a run is to come, by whose run comes first.
_BY_TURN = {"scheduled": 0, "running": 1, "pending": 2, "paused": 3}


class RunningCrawl(NamedTuple):
    """A crawl of ours that runs, and the plan that it runs by."""

    execution_id: int
    frontier_id: int
    source_id: int
    source_code: str
    config: dict[str, Any]


def running_crawls(session: Session, *, source_id: int | None = None) -> list[RunningCrawl]:
    """Return the crawls that run and are not told to stop, the newest first."""
    statement = (
        select(Execution.id, Execution.frontier_id, Source.id, Source.code, Execution.config)
        .join(Job, Job.id == Execution.job_id)
        .join(Source, Source.id == Job.source_id)
        .where(Execution.state == "running", Execution.stop_requested.is_(None), Job.kind.not_in(_OTHERS))
        .order_by(Execution.id.desc())
        .limit(_MOST)
    )
    rows = session.execute(statement if source_id is None else statement.where(Source.id == source_id))
    # A run of zimit has no plan of ours in its row, and no frontier.
    return [
        RunningCrawl(number, frontier_id or number, owner, code, config)
        for number, frontier_id, owner, code, config in rows
        if config.get("seeds") and config.get("contact")
    ]


class NextRun(NamedTuple):
    """The job of a source that takes addresses next."""

    job_id: int
    state: str
    at: datetime | None
    """Set only while it waits to be queued."""


def next_run(session: Session, source_id: int) -> NextRun | None:
    """Return the job of a source that takes addresses next: one at work first, a paused one last; None if none will."""
    rows = session.execute(
        select(Job.id, Job.state, Job.next_run_at)
        .where(
            Job.source_id == source_id,
            Job.kind.not_in(_OTHERS),
            Job.state.in_(_BY_TURN),
            Job.deleted_at.is_(None),
        )
        .order_by(Job.id)
    )
    found = [NextRun(number, state, at) for number, state, at in rows if state is not None]
    return min(found, key=lambda one: (_BY_TURN[one.state], to_micros(one.at) if one.at else 0), default=None)


def has_job(session: Session, source_id: int, kind: str) -> int | None:
    """Return the job of a kind that waits for its run, if a source has one."""
    return session.scalar(
        select(Job.id)
        .where(Job.source_id == source_id, Job.kind == kind, Job.state == "pending", Job.deleted_at.is_(None))
        .order_by(Job.id)
        .limit(1)
    )
