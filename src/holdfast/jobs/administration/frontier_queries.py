"""Queries for the runs and sources that a URL added by hand may belong to."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Row, func, select
from sqlalchemy.orm import Session

from holdfast.clock import to_micros
from holdfast.db.models import Execution, Job, Source

# Kinds of jobs whose runs take no single addresses: a poll follows no link, an import asks no server.
_OTHERS = ("feed", "import")
_MOST = 200
# States of jobs of which a run is to come, by whose run comes first.
_BY_TURN = {"scheduled": 0, "running": 1, "pending": 2, "paused": 3}


def running_crawls(session: Session, *, source_id: int | None = None) -> list[Row[Any]]:
    """Return the running crawls that have no stop request, newest first: execution_id, frontier_id, source_id,
    source_code, config.
    """
    statement = (
        select(
            Execution.id.label("execution_id"),
            func.coalesce(Execution.frontier_id, Execution.id).label("frontier_id"),
            Source.id.label("source_id"),
            Source.code.label("source_code"),
            Execution.config,
        )
        .join(Job, Job.id == Execution.job_id)
        .join(Source, Source.id == Job.source_id)
        .where(Execution.state == "running", Execution.stop_requested.is_(None), Job.kind.not_in(_OTHERS))
        .order_by(Execution.id.desc())
        .limit(_MOST)
    )
    rows = session.execute(statement if source_id is None else statement.where(Source.id == source_id))
    # A run of zimit has no plan of ours in its row, and no frontier.
    found: list[Any] = [row for row in rows if row.config.get("seeds") and row.config.get("contact")]
    return found


def next_run(session: Session, source_id: int) -> tuple[int, str, datetime | None] | None:
    """Return the job of a source that runs next (a working one first, a paused one last), its state and its time,
    which is set only while it waits to be queued.
    """
    rows = session.execute(
        select(Job.id, Job.state, Job.next_run_at)
        .where(Job.source_id == source_id, Job.kind.not_in(_OTHERS), Job.state.in_(_BY_TURN), Job.deleted_at.is_(None))
        .order_by(Job.id)
    )
    found = [(number, state, at) for number, state, at in rows if state is not None]
    return min(found, key=lambda one: (_BY_TURN[one[1]], to_micros(one[2]) if one[2] else 0), default=None)


def has_job(session: Session, source_id: int, kind: str) -> int | None:
    """Return the id of the source's job of this kind that waits for its run."""
    return session.scalar(
        select(Job.id)
        .where(Job.source_id == source_id, Job.kind == kind, Job.state == "pending", Job.deleted_at.is_(None))
        .order_by(Job.id)
        .limit(1)
    )
