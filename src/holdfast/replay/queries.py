"""What replay asks of snapshots: a few index seeks each, never what was withdrawn, nothing linear in the archive."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, bindparam, literal, select, tuple_
from sqlalchemy.orm import Session

from holdfast.db.models import Snapshot
from holdfast.db.visibility import visible
from holdfast.index.queries import Holding, SnapshotNotFound


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
    truncated: str | None = None
    """Why its body is not all there; None if it is."""

    @property
    def has_lost_body(self) -> bool:
        """Whether it is a revisit whose original is not here, and would have had a body."""
        return is_lost(self.record_type, self.original_id, self.status)


def is_lost(record_type: str, original_id: int | None, status: int | None) -> bool:
    """Return whether a capture is a revisit without its original; a redirect is whole without a body."""
    is_redirect = status is not None and 300 <= status < 400 and status != 304
    return record_type == "revisit" and original_id is None and not is_redirect


_COLUMNS = (
    Snapshot.id,
    Snapshot.url,
    Snapshot.captured_at,
    Snapshot.status,
    Snapshot.media_type,
    Snapshot.redirect_to,
    Snapshot.record_type,
    Snapshot.original_id,
    Snapshot.truncated,
)
_FORWARD = (Snapshot.captured_at, Snapshot.id)
_BACKWARD = (Snapshot.captured_at.desc(), Snapshot.id.desc())


class Which(NamedTuple):
    """The captures of one address, in one of the two senses that an address has."""

    column: str
    value: str | int

    @property
    def clause(self) -> ColumnElement[bool]:
        """The clause over Snapshot."""
        return getattr(Snapshot, self.column) == self.value  # type: ignore[no-any-return]


def of_key(url_key: str) -> Which:
    """Return the captures that other archives would call the same address."""
    return Which("url_key", url_key)


def of_page(url_hash: int) -> Which:
    """Return the captures of one normalised address."""
    return Which("url_hash", url_hash)


# To put a statement together takes longer than to run it; what every replayed page asks is put together once.
_Statement = Select[*tuple[Any, ...]]


@cache
def _near(column: str, each: int) -> tuple[_Statement, _Statement]:
    """Return the questions for what was captured before a moment and from it on."""
    owner = getattr(Snapshot, column)
    moment = bindparam("moment", type_=Snapshot.captured_at.type)
    wanted = select(*_COLUMNS).where(owner == bindparam("value", type_=owner.type), *visible()).limit(each)
    return (
        wanted.where(Snapshot.captured_at < moment).order_by(*_BACKWARD),
        wanted.where(Snapshot.captured_at >= moment).order_by(*_FORWARD),
    )


def around(
    session: Session, which: Which, moment: datetime, *, each: int, within: Holding | None = None
) -> list[Sighting]:
    """Return the nearest captures of an address, at most `each` before a moment and as many from it on, in order.

    `within` leaves those of one execution.
    """
    before, after = _near(which.column, each)
    if within is not None:
        before, after = (statement.where(*within.clauses()) for statement in (before, after))
    given = {"value": which.value, "moment": moment}
    earlier, later = session.execute(before, given).all(), session.execute(after, given)
    return [*map(Sighting._make, reversed(earlier)), *map(Sighting._make, later)]


@cache
def _one_shown() -> _Statement:
    return select(Snapshot).where(Snapshot.id == bindparam("number", type_=Snapshot.id.type), *visible())


def shown(session: Session, snapshot_id: int) -> Snapshot:
    """Return one snapshot; SnapshotNotFound if there is none or it is withdrawn."""
    if 0 <= snapshot_id < 1 << 63:
        found: Snapshot | None = session.scalars(_one_shown(), {"number": snapshot_id}).one_or_none()
        if found is not None:
            return found
    raise SnapshotNotFound(f"there is no snapshot {snapshot_id}; find one with: holdfast search WORDS")


class Neighbours(NamedTuple):
    """Where a capture stands among those of its address."""

    first: Sighting | None
    previous: Sighting | None
    next: Sighting | None
    last: Sighting | None


@cache
def _from_ends() -> tuple[_Statement, ...]:
    """Return the questions for the first of an address, those next to a place, and the last."""
    wanted = select(*_COLUMNS).where(Snapshot.url_key == bindparam("key", type_=Snapshot.url_key.type), *visible())
    place = tuple_(Snapshot.captured_at, Snapshot.id)
    here = tuple_(bindparam("moment", type_=Snapshot.captured_at.type), bindparam("number", type_=Snapshot.id.type))
    return (
        wanted.order_by(*_FORWARD).limit(1),
        wanted.where(place < here).order_by(*_BACKWARD).limit(1),
        wanted.where(place > here).order_by(*_FORWARD).limit(1),
        wanted.order_by(*_BACKWARD).limit(1),
    )


def neighbours(session: Session, url_key: str, captured_at: datetime, snapshot_id: int) -> Neighbours:
    """Return the captures before and after this one, and the ends. Four seeks."""
    given = {"key": url_key, "moment": captured_at, "number": snapshot_id}
    found = [session.execute(statement, given).one_or_none() for statement in _from_ends()]
    return Neighbours(*(None if row is None else Sighting._make(row) for row in found))


def ends(session: Session, url_key: str) -> tuple[Sighting, Sighting] | None:
    """Return the first and the last capture of an address; None if there is none."""
    first_of, _, _, last_of = _from_ends()
    first = session.execute(first_of, {"key": url_key}).one_or_none()
    last = session.execute(last_of, {"key": url_key}).one_or_none()
    return None if first is None or last is None else (Sighting._make(first), Sighting._make(last))


def sightings(
    session: Session, url_key: str, *, after: tuple[datetime, int] | None, until: datetime | None, limit: int
) -> list[Sighting]:
    """Return captures of an address in order, behind a place and up to a moment."""
    wanted = select(*_COLUMNS).where(of_key(url_key).clause, *visible()).order_by(*_FORWARD).limit(limit)
    if after is not None:
        here = tuple_(literal(after[0], Snapshot.captured_at.type), literal(after[1], Snapshot.id.type))
        wanted = wanted.where(tuple_(Snapshot.captured_at, Snapshot.id) > here)
    if until is not None:
        wanted = wanted.where(Snapshot.captured_at <= until)
    return [*map(Sighting._make, session.execute(wanted))]


def moments(session: Session, url_key: str, *, limit: int) -> Sequence[datetime]:
    """Return when an address was captured, latest first, at most `limit` of them: all that a calendar counts."""
    wanted = select(Snapshot.captured_at).where(of_key(url_key).clause, *visible()).order_by(*_BACKWARD).limit(limit)
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
