"""Which executions and captures there are to be checked. What is withdrawn is left out: nobody may replay it."""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from holdfast.db.models import Snapshot, WarcFile
from holdfast.db.visibility import visible


def executions_after(session: Session, *, after: int, limit: int) -> list[int]:
    """Return the next executions that have sealed files, by id."""
    query = select(WarcFile.execution_id).where(WarcFile.execution_id > after, WarcFile.state == "sealed").distinct()
    return list(session.scalars(query.order_by(WarcFile.execution_id).limit(limit)))


def files_of(session: Session, *, execution_id: int) -> list[WarcFile]:
    """Return the sealed files of an execution, by id."""
    return list(
        session.scalars(
            select(WarcFile)
            .where(WarcFile.execution_id == execution_id, WarcFile.state == "sealed")
            .order_by(WarcFile.id)
        )
    )


def capture_count(session: Session, *, execution_id: int) -> int:
    """Return how many captures of an execution may be seen."""
    return session.scalar(select(func.count()).where(Snapshot.execution_id == execution_id, *visible())) or 0


def captures_after(session: Session, *, execution_id: int, after: int, limit: int) -> list[Snapshot]:
    """Return the next captures of an execution that may be seen, by id."""
    query = select(Snapshot).where(Snapshot.execution_id == execution_id, Snapshot.id > after, *visible())
    return list(session.scalars(query.order_by(Snapshot.id).limit(limit)))
