"""Captures for the tools: only those that the viewer may see, each list limited."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ColumnElement, func, literal, select, tuple_
from sqlalchemy.orm import Session

from holdfast.assistants.moments import Period
from holdfast.db.models import Snapshot
from holdfast.withdrawals.visibility import visible

# Larger numbers are reported as "more than": counting a million captures would take seconds.
COUNTED = 10_000


def captures_of(session: Session, *, url_hash: int, key: str) -> tuple[ColumnElement[bool], bool]:
    """Return the clause for the captures of a URL, and whether they have this very URL.

    Without any, the clause selects by the key, which all its spellings share.
    """
    exact = Snapshot.url_hash == url_hash
    if session.scalar(select(Snapshot.id).where(exact, *visible()).limit(1)) is not None:
        return exact, True
    return Snapshot.url_key == key, False


def history(
    session: Session,
    which: ColumnElement[bool],
    period: Period | None,
    *,
    before: tuple[datetime, int] | None,
    limit: int,
) -> list[Snapshot]:
    """Return captures, newest first, starting before a position."""
    query = select(Snapshot).where(which, *visible())
    if period is not None:
        query = query.where(Snapshot.captured_at.between(*period))
    if before is not None:
        place = tuple_(literal(before[0], Snapshot.captured_at.type), literal(before[1], Snapshot.id.type))
        query = query.where(tuple_(Snapshot.captured_at, Snapshot.id) < place)
    return list(session.scalars(query.order_by(Snapshot.captured_at.desc(), Snapshot.id.desc()).limit(limit)))


def count(session: Session, which: ColumnElement[bool]) -> int:
    """Return the number of captures, at most one more than COUNTED."""
    found = select(Snapshot.id).where(which, *visible()).limit(COUNTED + 1).subquery()
    return session.scalar(select(func.count()).select_from(found)) or 0


def near(session: Session, which: ColumnElement[bool], period: Period | None) -> list[Snapshot]:
    """Return the captures with text around a period: the last one in or before it, and the first one after it.

    Without a period, return the newest.
    """
    readable = select(Snapshot).where(which, Snapshot.document_id.is_not(None), *visible()).limit(1)
    newest = readable.order_by(Snapshot.captured_at.desc(), Snapshot.id.desc())
    if period is None:
        return list(session.scalars(newest))
    later = readable.order_by(Snapshot.captured_at, Snapshot.id)
    return [
        *session.scalars(newest.where(Snapshot.captured_at <= period[1])),
        *session.scalars(later.where(Snapshot.captured_at > period[1])),
    ]
