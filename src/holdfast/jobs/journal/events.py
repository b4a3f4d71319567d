"""Events about jobs: rows in the order of their commits. They stand if and only if what they tell of does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from holdfast.db.models import JobEvent
from holdfast.jobs.journal import queries

STATUS, PROGRESS, COMPLETED = "job:status", "job:progress", "job:completed"
last_event = queries.last_event
read_events = queries.events_after


class Event(NamedTuple):
    """Something that happened to a job and is to be told."""

    name: str
    job_id: int
    execution_id: int | None
    data: dict[str, Any]


def status(job_id: int, state: str, *, execution_id: int | None = None, **details: Any) -> Event:
    """Return the event of a job's new state, or of what keeps it there."""
    return Event(STATUS, job_id, execution_id, {"status": state, "details": details})


def progress(job_id: int, execution_id: int, *, items_found: int, items_indexed: int) -> Event:
    """Return the event of a running execution's counts; each 10 items or 5 s are often enough."""
    return Event(PROGRESS, job_id, execution_id, {"items_found": items_found, "items_indexed": items_indexed})


def completed(job_id: int, execution_id: int, state: str, *, duration_ms: int, items_indexed: int,
              error: str | None) -> Event:  # fmt: skip
    """Return the event of an execution's end, good or bad."""
    return Event(COMPLETED, job_id, execution_id, {
        "status": state, "duration_ms": duration_ms, "items_indexed": items_indexed, "error_message": error,
    })  # fmt: skip


def emit(session: Session, happened: Iterable[Event], *, now: datetime) -> None:
    """Append events in the caller's transaction, as the last thing that it does."""
    rows = [{"at": now, "name": e.name, "job_id": e.job_id, "execution_id": e.execution_id, "data": e.data}
            for e in happened]  # fmt: skip
    if rows:
        queries.order_events(session)
        queries.insert_events(session, rows)


def tell_queued(session: Session, executions: Sequence[int], *, now: datetime) -> None:
    """Append the events of executions that were just queued, as the last thing that the transaction does."""
    if executions:
        data = {state: {"status": state, "details": {"queued": True}} for state in ("pending", "scheduled")}
        queries.order_events(session)
        queries.insert_status(session, executions, now=now, name=STATUS, data=data)


def payload(row: JobEvent) -> dict[str, Any]:
    """Return what a stream says about an event, in document 003's fields."""
    ids: dict[str, Any] = {"job_id": row.job_id}
    if row.execution_id is not None:
        ids["execution_id"] = row.execution_id
    return {**ids, **row.data, "timestamp": row.at.isoformat()}
