"""The history of a page: its captures by year, which of them changed it, and the position of one among them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import Select, and_, literal, select, tuple_
from sqlalchemy.orm import Session

from holdfast.clock import digits14
from holdfast.db.models import Change, Snapshot
from holdfast.replay import finding
from holdfast.replay.address import archived_url, is_storable
from holdfast.replay.finding import NotCaptured
from holdfast.replay.records import HistoryDay
from holdfast.urls import surt
from holdfast.withdrawals.visibility import SnapshotNotFound, visible, visible_change

COUNTED = 50_000
"""Captures counted by year, newest first; the result says if an address has more."""
READ_OF_YEAR = 20_000
"""Captures of one year that are read for its days."""
# Limit of captures searched on each side for the nearest change.
_NEAR = 1_000

CHANGED = frozenset({"new_page", "updated", "gone"})
"""Changes of the content: a first capture, different content, a page that is gone."""


class HistoricCapture(NamedTuple):
    id: int
    url: str
    captured_at: datetime
    status: int | None
    media_type: str | None
    record_type: str
    digest: str | None
    body_hash: bytes | None
    noise: str | None
    execution_id: int
    change: str | None
    """new_page, updated, gone, unchanged, error, noise; None before it was compared."""

    @property
    def is_change(self) -> bool:
        return self.change in CHANGED


class PageHistory(NamedTuple):
    url: str | None
    """As in the newest capture of that year, None without captures."""
    years: dict[int, int]
    is_cut: bool
    """Whether there are more captures than were counted, or than were read of the year."""
    year: int
    days: list[HistoryDay]
    captures: list[HistoricCapture]
    """Those of the year, in order."""


_COLUMNS = (
    *(Snapshot.id, Snapshot.url, Snapshot.captured_at, Snapshot.status, Snapshot.media_type, Snapshot.record_type),
    *(Snapshot.payload_digest, Snapshot.body_hash, Snapshot.noise, Snapshot.execution_id, Change.type),
)
_FORWARD = (Snapshot.captured_at, Snapshot.id)
_BACKWARD = (Snapshot.captured_at.desc(), Snapshot.id.desc())


def count_years(session: Session, key: str) -> tuple[dict[int, int], bool]:
    """Count the captures by year for a key from `known_key`; also return whether there are more than were counted."""
    moments = finding.moments(session, key, limit=COUNTED + 1)
    years = Counter(moment.year for moment in moments[:COUNTED])
    return dict(sorted(years.items())), len(moments) > COUNTED


def page_history(session: Session, key: str, counted: tuple[dict[int, int], bool], *, year: int) -> PageHistory:
    """Return one year of a page's history; `counted` is the result of `count_years`."""
    start = datetime(year, 1, 1, tzinfo=UTC)
    end = datetime(year, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    wanted = _captures(key).where(Snapshot.captured_at.between(start, end))
    rows = _read(session, wanted.order_by(*_FORWARD).limit(READ_OF_YEAR + 1))
    before = _read(session, _captures(key).where(Snapshot.captured_at < start).order_by(*_BACKWARD).limit(1))
    captures = list(marked(rows[:READ_OF_YEAR], before[0] if before else None))
    years, is_cut = dict(counted[0]), counted[1]
    # Set for a year before the counted captures, or with a newer capture.
    if len(captures) > years.get(year, 0):
        years[year] = len(captures)
    return PageHistory(
        url=captures[-1].url if captures else None,
        years=dict(sorted(years.items())),
        is_cut=is_cut or len(rows) > READ_OF_YEAR,
        year=year,
        days=list(days_of(captures)),
        captures=captures,
    )


def known_key(session: Session, url: str) -> str:
    """Return the key of an address with captures: its own, or that of the capture shown for it; raise NotCaptured."""
    written = archived_url(url)
    if not is_storable(written):
        raise NotCaptured(url)
    key = surt(written)
    if finding.moments(session, key, limit=1):
        return key
    # Our normaliser drops tracking parameters, which a key keeps; the page may be stored with another query only.
    found = finding.resolve(session, written, digits14(datetime(9999, 12, 31, tzinfo=UTC)))
    if found is None:
        raise NotCaptured(url)
    # Use the capture's key: for a page only requested with POST, it contains the sent data, too.
    return session.scalars(select(Snapshot.url_key).where(Snapshot.id == found.id)).one()


def marked(rows: Iterable[HistoricCapture], before: HistoricCapture | None) -> Iterator[HistoricCapture]:
    """Yield captures in order, each with its change; captures that were not compared are judged by their bytes.

    Comparisons know one source and one spelling of the address: a page that is new to another is not new here if
    the last good capture had the same bytes.
    """
    shown = before
    for row in rows:
        if row.change is None:
            row = row._replace(change=_judged(row, before))
        elif row.change == "new_page" and shown is not None and row.body_hash == shown.body_hash is not None:
            row = row._replace(change="unchanged")
        yield row
        before, shown = row, row if status_class(row.status) == "2xx" else shown


def _judged(row: HistoricCapture, before: HistoricCapture | None) -> str | None:
    """Return the change of a capture that is never compared: pictures, scripts, redirects."""
    if before is None:
        return "new_page"
    if row.body_hash is None or before.body_hash is None:
        return "unchanged" if row.status == before.status else None
    return "unchanged" if row.body_hash == before.body_hash else "updated"


def days_of(captures: Iterable[HistoricCapture]) -> Iterator[HistoryDay]:
    """Group captures, which must be in order, by day."""
    some: list[HistoricCapture] = []
    for capture in captures:
        if some and some[0].captured_at.date() != capture.captured_at.date():
            yield _day(some)
            some = []
        some.append(capture)
    if some:
        yield _day(some)


def _day(captures: Sequence[HistoricCapture]) -> HistoryDay:
    statuses = Counter(status_class(one.status) for one in captures)
    changes = sum(one.is_change for one in captures)
    first = captures[0]
    return HistoryDay(
        day=first.captured_at.date(),
        captures=len(captures),
        changes=changes,
        statuses=dict(statuses),
        first_snapshot_id=first.id,
        first_timestamp=first.captured_at,
    )


def status_class(status: int | None) -> str:
    return f"{status // 100}xx" if status is not None and 200 <= status <= 599 else "other"


def changes_around(
    session: Session, snapshot: Snapshot
) -> tuple[str | None, HistoricCapture | None, HistoricCapture | None]:
    """Return a capture's own change, and the previous and next captures with a change among the nearest thousand."""
    here = tuple_(literal(snapshot.captured_at, Snapshot.captured_at.type), literal(snapshot.id, Snapshot.id.type))
    place = tuple_(Snapshot.captured_at, Snapshot.id)
    captures = _captures(snapshot.url_key)
    earlier = _read(session, captures.where(place < here).order_by(*_BACKWARD).limit(_NEAR + 1))
    later = _read(session, captures.where(place > here).order_by(*_FORWARD).limit(_NEAR))
    own = _read(session, captures.where(Snapshot.id == snapshot.id))
    if not own:
        # It was just taken down: on PostgreSQL each statement sees the data committed by then.
        raise SnapshotNotFound(f"there is no snapshot {snapshot.id}")
    # The earliest row has no predecessor to compare with, unless it is the first capture of all.
    before = earlier.pop() if len(earlier) > _NEAR else None
    all_marked = list(marked([*reversed(earlier), *own, *later], before))
    at = len(earlier)
    return (
        all_marked[at].change,
        next((one for one in reversed(all_marked[:at]) if one.is_change), None),
        next((one for one in all_marked[at + 1 :] if one.is_change), None),
    )


def _captures(url_key: str) -> Select[*tuple[Any, ...]]:
    # Do not show a change from a hidden capture: compare with the capture before it.
    shown = and_(Change.to_snapshot_id == Snapshot.id, *visible_change(Change))
    return select(*_COLUMNS).outerjoin(Change, shown).where(Snapshot.url_key == url_key, *visible())


def _read(session: Session, statement: Select[*tuple[Any, ...]]) -> list[HistoricCapture]:
    return [HistoricCapture._make(row) for row in session.execute(statement)]
