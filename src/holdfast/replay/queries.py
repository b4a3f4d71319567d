"""What replay asks of snapshots: a few index seeks each, never what was withdrawn, nothing linear in the archive."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, literal, select, tuple_
from sqlalchemy.orm import Session

from holdfast.db.models import Execution, Snapshot
from holdfast.index.queries import is_ok, visible

HTML_TYPES = ("text/html", "application/xhtml+xml")


class Sighting(NamedTuple):
    """One capture of an address, with just enough to choose among many."""

    id: int
    url: str
    captured_at: datetime
    status: int | None
    media_type: str | None
    redirect_to: str | None
    record_type: str
    original_id: int | None

    @property
    def has_lost_body(self) -> bool:
        """Whether it is a revisit whose original nobody has."""
        return self.record_type == "revisit" and self.original_id is None


_COLUMNS = (
    Snapshot.id,
    Snapshot.url,
    Snapshot.captured_at,
    Snapshot.status,
    Snapshot.media_type,
    Snapshot.redirect_to,
    Snapshot.record_type,
    Snapshot.original_id,
)
_FORWARD = (Snapshot.captured_at, Snapshot.id)
_BACKWARD = (Snapshot.captured_at.desc(), Snapshot.id.desc())


def of_key(url_key: str) -> ColumnElement[bool]:
    """Return the clause for the captures that other archives would call the same address."""
    return Snapshot.url_key == url_key


def of_page(url_hash: int) -> ColumnElement[bool]:
    """Return the clause for the captures of one normalised address."""
    return Snapshot.url_hash == url_hash


def around(session: Session, which: ColumnElement[bool], moment: datetime, *, each: int) -> list[Sighting]:
    """Return the nearest captures of an address, at most `each` before a moment and as many from it on, in order."""
    wanted = select(*_COLUMNS).where(which, *visible()).limit(each)
    before = session.execute(wanted.where(Snapshot.captured_at < moment).order_by(*_BACKWARD))
    after = session.execute(wanted.where(Snapshot.captured_at >= moment).order_by(*_FORWARD))
    return [*map(Sighting._make, reversed(before.all())), *map(Sighting._make, after)]


class Neighbours(NamedTuple):
    """Where a capture stands among those of its address."""

    first: Sighting | None
    previous: Sighting | None
    next: Sighting | None
    last: Sighting | None


def neighbours(session: Session, url_key: str, captured_at: datetime, snapshot_id: int) -> Neighbours:
    """Return the captures before and after this one, and the ends. Four seeks."""
    wanted = select(*_COLUMNS).where(of_key(url_key), *visible()).limit(1)
    place = tuple_(Snapshot.captured_at, Snapshot.id)
    here = tuple_(literal(captured_at, Snapshot.captured_at.type), literal(snapshot_id, Snapshot.id.type))
    statements = (
        wanted.order_by(*_FORWARD),
        wanted.where(place < here).order_by(*_BACKWARD),
        wanted.where(place > here).order_by(*_FORWARD),
        wanted.order_by(*_BACKWARD),
    )
    found = [session.execute(statement).one_or_none() for statement in statements]
    return Neighbours(*(None if row is None else Sighting._make(row) for row in found))


def ends(session: Session, url_key: str) -> tuple[Sighting, Sighting] | None:
    """Return the first and the last capture of an address; None if there is none."""
    wanted = select(*_COLUMNS).where(of_key(url_key), *visible()).limit(1)
    first = session.execute(wanted.order_by(*_FORWARD)).one_or_none()
    last = session.execute(wanted.order_by(*_BACKWARD)).one_or_none()
    return None if first is None or last is None else (Sighting._make(first), Sighting._make(last))


def sightings(
    session: Session, url_key: str, *, after: tuple[datetime, int] | None, until: datetime | None, limit: int
) -> list[Sighting]:
    """Return captures of an address in order, behind a place and up to a moment."""
    wanted = select(*_COLUMNS).where(of_key(url_key), *visible()).order_by(*_FORWARD).limit(limit)
    if after is not None:
        here = tuple_(literal(after[0], Snapshot.captured_at.type), literal(after[1], Snapshot.id.type))
        wanted = wanted.where(tuple_(Snapshot.captured_at, Snapshot.id) > here)
    if until is not None:
        wanted = wanted.where(Snapshot.captured_at <= until)
    return [*map(Sighting._make, session.execute(wanted))]


def moments(session: Session, url_key: str, *, limit: int) -> Sequence[datetime]:
    """Return when an address was captured, latest first, at most `limit` of them: all that a calendar counts."""
    wanted = select(Snapshot.captured_at).where(of_key(url_key), *visible()).order_by(*_BACKWARD).limit(limit)
    return session.scalars(wanted).all()


class Known(NamedTuple):
    """One address of the archive, with its first and last capture."""

    url_key: str
    url: str
    first: datetime
    last: datetime


def addresses(session: Session, low: str, high: str, *, limit: int) -> list[Known]:
    """Return the addresses whose keys lie in [low, high), in order: one seek to each, however often it was captured."""
    first_key = _next_key(Snapshot.url_key >= low, high)
    chain = select(first_key.label("url_key")).cte("chain", recursive=True)
    following = _next_key(Snapshot.url_key > chain.c.url_key, high)
    chain = chain.union_all(select(following).where(chain.c.url_key.is_not(None)))
    keys = select(chain.c.url_key).where(chain.c.url_key.is_not(None)).limit(limit).subquery()
    url = _of_one(keys.c.url_key, Snapshot.url, latest=True)
    first = _of_one(keys.c.url_key, Snapshot.captured_at, latest=False)
    last = _of_one(keys.c.url_key, Snapshot.captured_at, latest=True)
    found = session.execute(select(keys.c.url_key, url, first, last))
    return sorted(Known._make(row) for row in found if row[1] is not None)


def _next_key(where: ColumnElement[bool], high: str) -> Any:
    return (
        select(Snapshot.url_key)
        .where(where, Snapshot.url_key < high, *visible())
        .order_by(Snapshot.url_key)
        .limit(1)
        .correlate_except(Snapshot)
        .scalar_subquery()
    )


def _of_one(url_key: Any, column: Any, *, latest: bool) -> Any:
    statement = select(column).where(Snapshot.url_key == url_key, *visible())
    return (
        statement.order_by(*(_BACKWARD if latest else _FORWARD)).limit(1).correlate_except(Snapshot).scalar_subquery()
    )


def _is_shown() -> ColumnElement[bool]:
    """Return the clause for captures that show the page itself, or do not say."""
    return Snapshot.status.is_(None) | is_ok()


def newest(session: Session, which: ColumnElement[bool], *, only_html: bool) -> Sighting | None:
    """Return the latest capture that shows something, of HTML if that is asked for."""
    wanted = select(*_COLUMNS).where(which, _is_shown(), *visible())
    if only_html:
        wanted = wanted.where(Snapshot.media_type.in_(HTML_TYPES))
    return _one(session, wanted.order_by(*_BACKWARD))


def nearest_shown(
    session: Session, which: ColumnElement[bool], moment: datetime, *, job_id: int | None
) -> Sighting | None:
    """Return the capture nearest to a moment that shows something, of one job's executions if a job is named."""
    wanted = select(*_COLUMNS).where(which, _is_shown(), *visible())
    if job_id is not None:
        wanted = wanted.where(Snapshot.execution_id.in_(select(Execution.id).where(Execution.job_id == job_id)))
    before = _one(session, wanted.where(Snapshot.captured_at <= moment).order_by(*_BACKWARD))
    after = _one(session, wanted.where(Snapshot.captured_at > moment).order_by(*_FORWARD))
    if before is None or after is None:
        return before or after
    return before if moment - before.captured_at <= after.captured_at - moment else after


def _one(session: Session, statement: Select[*tuple[Any, ...]]) -> Sighting | None:
    row = session.execute(statement.limit(1)).one_or_none()
    return None if row is None else Sighting._make(row)
