"""The rows of operations: begun once for each flight, leased by one process at a time, listed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from holdfast.clock import to_micros
from holdfast.db.engine import insert_into
from holdfast.db.models import Operation

_OPEN = Operation.finished_at.is_(None)


def insert_operation(session: Session, values: dict[str, Any]) -> int | None:
    """Add an operation and return its id; None if an open one is at the same flight."""
    made = (
        insert_into(session, Operation)
        .values(**values)
        .on_conflict_do_nothing(index_elements=[Operation.flight], index_where=_OPEN)
        .returning(Operation.id)
    )
    found = session.scalar(made)
    return None if found is None else int(found)


def operation_by_id(session: Session, operation_id: int) -> Operation | None:
    """Return one operation as it is now."""
    return session.get(Operation, operation_id, populate_existing=True)


def open_operation(session: Session, *, flight: str) -> Operation | None:
    """Return the open operation of a flight."""
    return session.scalars(select(Operation).where(_OPEN, Operation.flight == flight)).one_or_none()


class OperationFilter(NamedTuple):
    """Which operations are wanted; what is None does not matter."""

    kind: str | None = None
    state: str | None = None
    before: int | None = None
    """Only those with a smaller id: how a list goes on."""
    limit: int = 50


def listed_operations(session: Session, wanted: OperationFilter) -> list[Operation]:
    """Return operations, newest first."""
    clauses = []
    if wanted.kind is not None:
        clauses.append(Operation.kind == wanted.kind)
    if wanted.state is not None:
        clauses.append(Operation.state == wanted.state)
    if wanted.before is not None:
        clauses.append(Operation.id < wanted.before)
    return list(session.scalars(select(Operation).where(*clauses).order_by(Operation.id.desc()).limit(wanted.limit)))


def open_operations(session: Session) -> list[Operation]:
    """Return those that wait or run, the oldest first; a look in the index of what is open."""
    return list(session.scalars(select(Operation).where(_OPEN).order_by(Operation.id)))


class TakenUntil(NamedTuple):
    """A lease on an operation."""

    now: datetime
    until: datetime
    run_file: str | None


def take_operation(session: Session, operation_id: int, attempt: int, lease: TakenUntil) -> bool:
    """Begin an operation, once more; False if another process did so since it was looked at."""
    taken = session.execute(
        update(Operation)
        .where(Operation.id == operation_id, _OPEN, Operation.attempt == attempt)
        .values(
            attempt=attempt + 1,
            state="running",
            run_file=lease.run_file,
            lease_until=lease.until,
            # When it was first begun: a process that goes on with it begins nothing.
            started_at=func.coalesce(Operation.started_at, to_micros(lease.now)),
            updated_at=lease.now,
        )
        .returning(Operation.id)
    )
    return taken.one_or_none() is not None


def change_held(session: Session, held: tuple[int, int], values: dict[str, Any]) -> bool | None:
    """Change an operation that a process holds; return whether it was asked to stop, None if another holds it now."""
    operation_id, attempt = held
    changed = session.execute(
        update(Operation)
        .where(Operation.id == operation_id, Operation.attempt == attempt, Operation.state == "running", _OPEN)
        .values(**values)
        .returning(Operation.stop_asked)
    ).one_or_none()
    return None if changed is None else bool(changed[0])


def is_held(session: Session, held: tuple[int, int]) -> bool:
    """Return whether a process still holds an operation; no other takes it up before this transaction ends."""
    operation_id, attempt = held
    found = select(Operation.id).where(
        Operation.id == operation_id, Operation.attempt == attempt, Operation.state == "running", _OPEN
    )
    return session.scalar(found.with_for_update()) is not None


def latest_of_kinds(session: Session, kinds: Sequence[str]) -> dict[str, Operation]:
    """Return the newest operation of each of these kinds that has one."""
    found = {}
    for kind in kinds:
        row = session.scalars(
            select(Operation).where(Operation.kind == kind).order_by(Operation.id.desc()).limit(1)
        ).one_or_none()
        if row is not None:
            found[kind] = row
    return found
