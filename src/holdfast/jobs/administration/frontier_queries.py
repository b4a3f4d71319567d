"""Which runs and sources an address that is added by hand may belong to."""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from holdfast.db.models import Execution, Job, Source

# Kinds of jobs whose runs take no single addresses: a poll follows no link, an import asks no server.
_OTHERS = ("feed", "import")
_MOST = 200
_AT_WORK = ("pending", "scheduled", "running", "paused")


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


def will_run(session: Session, source_id: int) -> bool:
    """Return whether a job of a source waits or runs that takes addresses."""
    return bool(
        session.scalar(
            select(
                exists().where(
                    Job.source_id == source_id,
                    Job.kind.not_in(_OTHERS),
                    Job.state.in_(_AT_WORK),
                    Job.deleted_at.is_(None),
                )
            )
        )
    )


def has_job(session: Session, source_id: int, kind: str) -> int | None:
    """Return the job of a kind that waits for its run, if a source has one."""
    return session.scalar(
        select(Job.id)
        .where(Job.source_id == source_id, Job.kind == kind, Job.state == "pending", Job.deleted_at.is_(None))
        .order_by(Job.id)
        .limit(1)
    )
