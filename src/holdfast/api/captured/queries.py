"""The captures of a job, over all its runs; what was withdrawn is left out."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from holdfast.db.models import Document, Execution, Snapshot
from holdfast.index.queries import visible


class Captured(NamedTuple):
    """A capture of a page."""

    id: int
    url: str
    captured_at: datetime
    status: int | None
    language: str | None
    title: str | None


def captured_by(session: Session, *, job_id: int, limit: int, offset: int) -> list[Captured]:
    """Return the captures of pages by a job, its newest run first, each run in the order of its files.

    Only what a page passes over is read: one run after the other, each by its index.
    """
    runs = session.scalars(select(Execution.id).where(Execution.job_id == job_id).order_by(Execution.number.desc()))
    found: list[Captured] = []
    for run in runs.all():
        page = _of_run(run).order_by(Snapshot.id).limit(limit - len(found)).offset(offset)
        rows = [Captured(*row) for row in session.execute(page)]
        found += rows
        if len(found) >= limit:
            break
        if offset and not rows:
            offset -= min(offset, session.scalar(select(func.count()).select_from(_of_run(run).subquery())) or 0)
        else:
            offset = 0
    return found


def _of_run(run: int) -> Select[int, str, datetime, int | None, str | None, str | None]:
    return (
        select(Snapshot.id, Snapshot.url, Snapshot.captured_at, Snapshot.status, Document.language, Document.title)
        .outerjoin(Document, Document.id == Snapshot.document_id)
        .where(Snapshot.execution_id == run, Snapshot.is_page, *visible())
    )
