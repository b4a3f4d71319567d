"""The CDX server's queries of the snapshot table: ranges of the key index, in batches, from a position on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import cache
from itertools import islice
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Integer, Select, bindparam, func, select, tuple_
from sqlalchemy.orm import Session

from holdfast.clock import from_micros, to_micros
from holdfast.db.models import Snapshot, WarcFile
from holdfast.db.prepared import PreparedSelect
from holdfast.db.raw import Transaction
from holdfast.index.queries import CDX_COLUMNS, CdxRow
from holdfast.replay.finding import visible_stretches
from holdfast.withdrawals.visibility import visible


class IndexPosition(NamedTuple):
    """A position in the index; the next capture is after it."""

    url_key: str
    captured_at: datetime
    id: int


Period = tuple[datetime, datetime]
"""Both ends are included."""


class KeyRange(NamedTuple):
    """The keys from `low` to below `high`; a single key if they are equal."""

    low: str
    high: str


_ORDER = (Snapshot.url_key, Snapshot.captured_at, Snapshot.id)


_Shape = tuple[bool, bool, bool]
"""Whether a query reads one key, whether it starts at a position, and whether it reads in reverse."""


def _shape(keys: KeyRange, behind: IndexPosition | None, *, reverse: bool = False) -> _Shape:
    return keys.low == keys.high, behind is not None, reverse


def _given(keys: KeyRange, behind: IndexPosition | None) -> dict[str, Any]:
    given: dict[str, Any] = {"low": keys.low, "high": keys.high}
    return given if behind is None else {**given, "key": behind.url_key, "moment": behind.captured_at, "id": behind.id}


def _within(shape: _Shape) -> list[ColumnElement[bool]]:
    # Give each end once: of two bounds on one side SQLite seeks to the first.
    is_one, is_behind, reverse = shape
    key, moment, number = Snapshot.url_key, Snapshot.captured_at, Snapshot.id
    low, high = bindparam("low", type_=key.type), bindparam("high", type_=key.type)
    at = [bindparam("moment", type_=moment.type), bindparam("id", type_=number.type)]
    if is_one:
        place, here = tuple_(moment, number), tuple_(*at)
        behind = [place < here if reverse else place > here] if is_behind else []
        return [key == low, *behind]
    place, here = tuple_(key, moment, number), tuple_(bindparam("key", type_=key.type), *at)
    is_low_place, is_high_place = is_behind and not reverse, is_behind and reverse
    return [place > here if is_low_place else key >= low, place < here if is_high_place else key < high]


def _parts(
    session: Session, keys: KeyRange, behind: IndexPosition | None, *, reverse: bool = False
) -> Iterator[tuple[KeyRange, IndexPosition | None]]:
    """Yield the parts of a range that may hold visible captures after a position, with the position if it is
    inside.
    """
    low, high = keys
    if low == high:
        yield keys, behind
        return
    if behind is not None:
        low, high = (low, min(high, f"{behind.url_key}\x01")) if reverse else (max(low, behind.url_key), high)
    for part in visible_stretches(session, low, high, reverse=reverse):
        yield KeyRange(*part), behind if behind is not None and part[0] <= behind.url_key < part[1] else None


@cache
def _batch(shape: _Shape) -> Select[*tuple[Any, ...]]:
    """Return the statement of a shape, which is built once."""
    is_one, is_behind, reverse = shape
    wanted = select(*CDX_COLUMNS).where(*visible(), *_within(shape))
    if is_one:
        at = Snapshot.captured_at
        if not is_behind or reverse:
            wanted = wanted.where(at >= bindparam("since", type_=at.type))
        if not is_behind or not reverse:
            wanted = wanted.where(at <= bindparam("until", type_=at.type))
    order = [column.desc() for column in _ORDER] if reverse else [*_ORDER]
    return wanted.order_by(*order).limit(bindparam("most", type_=Integer))


def batch(
    session: Session, keys: KeyRange, *, behind: IndexPosition | None, reverse: bool, period: Period, limit: int
) -> list[CdxRow]:
    """Return the next captures of a range in index order, or reverse. One seek, and as many steps as requested.

    The period only narrows the captures of one key: over many keys it would be a scan, which the caller has to
    count.
    """
    since, until = period
    if keys.low == keys.high and behind is not None and not since <= behind.captured_at <= until:
        # A position outside the period: everything in it follows, or nothing does.
        if (behind.captured_at > until) is not reverse:
            return []
        behind = None
    given = {"since": since, "until": until, "most": limit}
    rows = (
        row
        for part, place in _parts(session, keys, behind, reverse=reverse)
        for row in session.execute(_batch(_shape(part, place, reverse=reverse)), given | _given(part, place))
    )
    return [*map(CdxRow._make, islice(rows, limit))]


_LOOKUP = PreparedSelect(_batch((True, False, False)))


def lookup(tx: Transaction, dialect: str, key: str, *, period: Period, limit: int) -> list[CdxRow]:
    """Return the first captures of one key, as `batch` does, without compiling a statement."""
    since, until = (to_micros(end) for end in period)
    found = _LOOKUP.rows(tx, dialect, low=key, since=since, until=until, most=limit)
    return [CdxRow._make((*row[:2], from_micros(row[2]), *row[3:])) for row in found]


def skip(
    session: Session, ranges: Iterable[KeyRange], behind: IndexPosition | None, number: int
) -> IndexPosition | None:
    """Return the position `number` captures further on; None if there are fewer."""
    for keys in ranges:
        if behind is not None and keys.low != keys.high and behind.url_key >= keys.high:
            continue
        for part, place in _parts(session, keys, behind):
            # Use an offset: skipped rows never leave the database.
            wanted = select(*_ORDER).where(*_within(_shape(part, place)), *visible()).order_by(*_ORDER)
            row = session.execute(wanted.offset(number - 1).limit(1), _given(part, place)).one_or_none()
            if row is not None:
                return IndexPosition._make(row)
            number -= count(session, part, behind=place, limit=number)
        behind = None
    return None


def count(session: Session, keys: KeyRange, *, behind: IndexPosition | None = None, limit: int) -> int:
    """Return the number of captures in a range after a position, up to a limit."""
    found = 0
    for part, place in _parts(session, keys, behind) if limit > 0 else ():
        wanted = select(Snapshot.id).where(*_within(_shape(part, place)), *visible())
        # Count up to a limit: counting a whole domain would read its whole index.
        some = wanted.order_by(*_ORDER).limit(limit - found).subquery()
        found += session.scalar(select(func.count()).select_from(some), _given(part, place)) or 0
        if found >= limit:
            break
    return found


def file_names(session: Session, ids: Iterable[int]) -> dict[int, str]:
    """Return the names of WARC files by id, without folders."""
    rows = session.execute(select(WarcFile.id, WarcFile.key).where(WarcFile.id.in_(sorted(set(ids)))))
    # Omit the folders, which would reveal this machine's setup.
    return {number: PurePosixPath(key).name for number, key in rows}
