"""The CDX server's questions to the snapshot table: ranges of the key index, batch by batch, behind a place."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, func, literal, select, tuple_
from sqlalchemy.orm import Session

from holdfast.db.models import Snapshot, WarcFile
from holdfast.index.queries import visible


class Capture(NamedTuple):
    """One line of an index, as the table has it."""

    id: int
    url_key: str
    captured_at: datetime
    url: str
    media_type: str | None
    status: int | None
    digest: str | None
    length: int
    offset: int
    warc_file_id: int
    record_type: str
    redirect_to: str | None
    original_id: int | None


class Spot(NamedTuple):
    """A place in the index; the next capture stands behind it."""

    url_key: str
    captured_at: datetime
    id: int


Period = tuple[datetime, datetime]
"""Both ends are in it."""


class KeyRange(NamedTuple):
    """The keys from `low` to below `high`; one key alone if they are the same."""

    low: str
    high: str


_COLUMNS = (
    Snapshot.id,
    Snapshot.url_key,
    Snapshot.captured_at,
    Snapshot.url,
    Snapshot.media_type,
    Snapshot.status,
    Snapshot.payload_digest,
    Snapshot.warc_length,
    Snapshot.warc_offset,
    Snapshot.warc_file_id,
    Snapshot.record_type,
    Snapshot.redirect_to,
    Snapshot.original_id,
)
_ORDER = (Snapshot.url_key, Snapshot.captured_at, Snapshot.id)


def _within(keys: KeyRange, behind: Spot | None, *, reverse: bool = False) -> list[ColumnElement[bool]]:
    """Return the clauses for what is left of a range behind a place.

    Each end is given once: of two bounds on one side SQLite would seek to the first that it meets.
    """
    if keys.low == keys.high:
        left: list[ColumnElement[bool]] = [Snapshot.url_key == keys.low]
        if behind is not None:
            place, here = tuple_(*_ORDER[1:]), tuple_(*_literals(behind)[1:])
            left.append(place < here if reverse else place > here)
        return left
    low: ColumnElement[bool] = Snapshot.url_key >= keys.low
    high: ColumnElement[bool] = Snapshot.url_key < keys.high
    if behind is not None and reverse:
        high = tuple_(*_ORDER) < tuple_(*_literals(behind))
    elif behind is not None:
        low = tuple_(*_ORDER) > tuple_(*_literals(behind))
    return [low, high]


def _literals(spot: Spot) -> list[Any]:
    return [literal(value, column.type) for value, column in zip(spot, _ORDER, strict=True)]


def batch(
    session: Session, keys: KeyRange, *, behind: Spot | None, reverse: bool, period: Period, limit: int
) -> list[Capture]:
    """Return the next captures of a range in index order, or against it. One seek, and as many steps as are asked for.

    The period narrows one key's captures only: over many keys it would be a scan, which the caller has to count.
    """
    wanted = select(*_COLUMNS).where(*visible())
    if keys.low == keys.high:
        low, high = period
        if behind is not None and not low <= behind.captured_at <= high:
            # A place outside the period: everything in it lies behind, or nothing does.
            if (behind.captured_at > high) is not reverse:
                return []
            behind = None
        at = Snapshot.captured_at
        if behind is None or reverse:
            wanted = wanted.where(at >= low)
        if behind is None or not reverse:
            wanted = wanted.where(at <= high)
    wanted = wanted.where(*_within(keys, behind, reverse=reverse))
    order = [column.desc() for column in _ORDER] if reverse else [*_ORDER]
    return [*map(Capture._make, session.execute(wanted.order_by(*order).limit(limit)))]


def skip(session: Session, ranges: Iterable[KeyRange], behind: Spot | None, number: int) -> Spot | None:
    """Return the place of the capture that is `number` captures further on; None if there are not so many."""
    for keys in ranges:
        if behind is not None and keys.low != keys.high and behind.url_key >= keys.high:
            continue
        wanted = select(*_ORDER).where(*_within(keys, behind), *visible())
        row = session.execute(wanted.order_by(*_ORDER).offset(number - 1).limit(1)).one_or_none()
        if row is not None:
            return Spot._make(row)
        number -= count(session, keys, behind=behind, limit=number)
        behind = None
    return None


def count(session: Session, keys: KeyRange, *, behind: Spot | None = None, limit: int) -> int:
    """Return how many captures a range has behind a place, counted up to a limit."""
    wanted = select(Snapshot.id).where(*_within(keys, behind), *visible())
    some = wanted.order_by(*_ORDER).limit(max(limit, 0)).subquery()
    return session.scalar(select(func.count()).select_from(some)) or 0


class Stand(NamedTuple):
    """Where a record stands in the files."""

    length: int
    offset: int
    warc_file_id: int


def stands(session: Session, ids: Iterable[int]) -> dict[int, Stand]:
    """Return where these snapshots stand, by id; what is withdrawn or gone is left out."""
    wanted = sorted(set(ids))
    if not wanted:
        return {}
    columns = (Snapshot.id, Snapshot.warc_length, Snapshot.warc_offset, Snapshot.warc_file_id)
    rows = session.execute(select(*columns).where(Snapshot.id.in_(wanted), *visible()))
    return {row[0]: Stand(*row[1:]) for row in rows}


def file_names(session: Session, ids: Iterable[int]) -> dict[int, str]:
    """Return the names of WARC files by id, without their folders."""
    rows = session.execute(select(WarcFile.id, WarcFile.path).where(WarcFile.id.in_(sorted(set(ids)))))
    return {number: PurePosixPath(path).name for number, path in rows}
