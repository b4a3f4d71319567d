"""The processes of all machines, and what each works on, as operators see them."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from enum import StrEnum

from sqlalchemy import select
from sqlalchemy.orm import Session

from holdfast.db.models import Domain, Execution, Job, Owner, Page, PageCrawl, Source
from holdfast.records import Operator, from_row, record


class ProcessKind(StrEnum):
    WORKER = "worker"
    RUNNER = "runner"
    SCHEDULER = "scheduler"
    SUPERVISOR = "supervisor"
    PROCESS = "process"
    INDEXER = "indexer"
    VISITOR = "visitor"
    OTHER = "other"


@record
class ActiveExecution:
    """An execution that a process works on."""

    id: Operator[int]
    job_id: Operator[int]
    source: Operator[str]
    state: Operator[str]


@record
class ProcessRecord:
    """A process and its current work."""

    id: Operator[int]
    name: Operator[str]
    """Name in the leases of jobs."""
    kind: Operator[ProcessKind]
    host: Operator[str]
    pid: Operator[int]
    is_alive: Operator[bool]
    """Whether it holds its lock, or sent a heartbeat within two minutes."""
    started_at: Operator[datetime]
    heartbeat_at: Operator[datetime]
    age_seconds: Operator[float]
    silent_seconds: Operator[float]
    """Seconds since its last heartbeat."""
    executions: Operator[list[ActiveExecution]]
    domains: Operator[list[str]]
    """Some of the domains that it has leased."""
    urls: Operator[list[str]]
    """Pages that it is parsing, if it runs on this machine."""


def open_owners(session: Session, *, limit: int = 1000) -> list[Owner]:
    """Return the processes of all machines whose rows are open, by id."""
    return list(session.scalars(select(Owner).where(Owner.ended_at.is_(None)).order_by(Owner.id).limit(limit)))


def executions_at_work(session: Session, ids: Collection[int]) -> dict[int, ActiveExecution]:
    rows = session.execute(
        select(Execution.id, Execution.job_id, Source.code, Execution.state)
        .join(Job, Job.id == Execution.job_id)
        .join(Source, Source.id == Job.source_id)
        .where(Execution.id.in_(sorted(ids)))
    )
    return {row.id: from_row(ActiveExecution, row, source=row.code) for row in rows}


def held_executions(session: Session) -> dict[int | None, list[int]]:
    """Return the executions that workers hold, by the worker's id."""
    rows = session.execute(
        select(Job.lock_owner_id, Execution.id)
        .join(Execution, Execution.job_id == Job.id)
        .where(Job.lock_token.is_not(None), Execution.state == "running")
        .order_by(Execution.id)
    )
    found: dict[int | None, list[int]] = {}
    for owner_id, execution_id in rows:
        found.setdefault(owner_id, []).append(execution_id)
    return found


def addresses_of(session: Session, attempt_ids: Collection[int]) -> dict[int, str]:
    rows = session.execute(
        select(PageCrawl.id, Page.url)
        .join(Page, Page.id == PageCrawl.page_id)
        .where(PageCrawl.id.in_(sorted(attempt_ids)))
    )
    return {row[0]: row[1] for row in rows}


def domains_held(session: Session, owner_id: int, *, limit: int) -> list[str]:
    held = select(Domain.name).where(Domain.lease_owner == owner_id).order_by(Domain.name).limit(limit)
    return list(session.scalars(held))
