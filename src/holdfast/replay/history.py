"""A page through time: its captures year by year, which of them brought a change, and where one stands among them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from typing import Any, NamedTuple

from sqlalchemy import Select, and_, literal, select, tuple_
from sqlalchemy.orm import Session

from holdfast.clock import digits14
from holdfast.db.models import Change, Snapshot
from holdfast.replay import finding
from holdfast.replay.address import archived_url, is_storable
from holdfast.replay.finding import CaptureNeighbours, NotCaptured, of_key
from holdfast.urls import surt
from holdfast.withdrawals.visibility import SnapshotNotFound, visible, visible_change

COUNTED = 50_000
"""Captures whose years are counted, newest first; an address with more says so."""
READ_OF_YEAR = 20_000
"""Captures of one year that are read for its days."""
# Captures on each side among which the nearest change is looked for.
_NEAR = 1_000

CHANGED = frozenset({"new_page", "updated", "gone"})
"""What counts as a change of the content: a first capture, another content, a page that went."""


class HistoricCapture(NamedTuple):
    """One capture in the history of its address."""

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
    """What it brought: new_page, updated, gone, unchanged, error, noise; None before it was compared."""

    @property
    def is_change(self) -> bool:
        """Whether its content is another than that of the capture before."""
        return self.change in CHANGED


class HistoryDay(NamedTuple):
    """The captures of one day."""

    day: date
    captures: int
    changes: int
    statuses: dict[str, int]
    """How many of each class: 2xx, 3xx, 4xx, 5xx, other."""
    first: HistoricCapture


class CountedYears(NamedTuple):
    """How often an address was captured in each year."""

    years: dict[int, int]
    is_cut: bool
    """Whether there are more captures than were counted."""


class PageHistory(NamedTuple):
    """What is known of an address, with one year in full."""

    url: str | None
    """As the newest capture of that year has it, None if there is none."""
    years: dict[int, int]
    is_cut: bool
    """Whether there are more captures than were counted, or than were read of the year."""
    year: int
    days: list[HistoryDay]
    captures: list[HistoricCapture]
    """Those of the year, in order."""


_COLUMNS = (
    Snapshot.id,
    Snapshot.url,
    Snapshot.captured_at,
    Snapshot.status,
    Snapshot.media_type,
    Snapshot.record_type,
    Snapshot.payload_digest,
    Snapshot.body_hash,
    Snapshot.noise,
    Snapshot.execution_id,
    Change.type,
)
_FORWARD = (Snapshot.captured_at, Snapshot.id)
_BACKWARD = (Snapshot.captured_at.desc(), Snapshot.id.desc())


def count_years(session: Session, key: str) -> CountedYears:
    """Return the years of a key of `known_key`: the same whichever of them is shown."""
    moments = finding.moments(session, key, limit=COUNTED + 1)
    years = Counter(moment.year for moment in moments[:COUNTED])
    return CountedYears(dict(sorted(years.items())), is_cut=len(moments) > COUNTED)


def page_history(session: Session, key: str, counted: CountedYears, *, year: int) -> PageHistory:
    """Return the history of a key with one year in full."""
    start = datetime(year, 1, 1, tzinfo=UTC)
    end = datetime(year, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    wanted = _captures(key).where(Snapshot.captured_at.between(start, end))
    rows = _read(session, wanted.order_by(*_FORWARD).limit(READ_OF_YEAR + 1))
    before = _read(session, _captures(key).where(Snapshot.captured_at < start).order_by(*_BACKWARD).limit(1))
    captures = list(marked(rows[:READ_OF_YEAR], before[0] if before else None))
    years = dict(counted.years)
    # Of a year that lies before all that was counted, or with a capture that came since.
    if len(captures) > years.get(year, 0):
        years[year] = len(captures)
    return PageHistory(
        url=captures[-1].url if captures else None,
        years=dict(sorted(years.items())),
        is_cut=counted.is_cut or len(rows) > READ_OF_YEAR,
        year=year,
        days=list(days_of(captures)),
        captures=captures,
    )


def known_key(session: Session, url: str) -> str:
    """Return the key of an address that has captures: its own, or that of what would be shown for it; NotCaptured."""
    written = archived_url(url)
    if not is_storable(written):
        raise NotCaptured(url)
    key = surt(written)
    if finding.moments(session, key, limit=1):
        return key
    # Our normaliser drops tracking parameters, which a key keeps; a page may be known with another query only.
    found = finding.resolve(session, written, digits14(datetime(9999, 12, 31, tzinfo=UTC)))
    if found is None:
        raise NotCaptured(url)
    # Its own key: that of a page which was only ever posted to says what was sent, too.
    return session.scalars(select(Snapshot.url_key).where(Snapshot.id == found.id)).one()


def marked(rows: Iterable[HistoricCapture], before: HistoricCapture | None) -> Iterator[HistoricCapture]:
    """Yield captures in their order, each with what it brought; what was not compared is judged by its bytes.

    Comparisons know one source and one spelling of the address: a page that is new to another is not new here if the
    last good capture had the same bytes.
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
    """Return what a capture brought that no comparison has looked at: pictures, scripts, redirects."""
    if before is None:
        return "new_page"
    if row.body_hash is None or before.body_hash is None:
        return "unchanged" if row.status == before.status else None
    return "unchanged" if row.body_hash == before.body_hash else "updated"


def days_of(captures: Iterable[HistoricCapture]) -> Iterator[HistoryDay]:
    """Yield the days of captures that are in order."""
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
    return HistoryDay(captures[0].captured_at.date(), len(captures), changes, dict(statuses), captures[0])


def status_class(status: int | None) -> str:
    """Return the class of a status as a calendar shows it."""
    return f"{status // 100}xx" if status is not None and 200 <= status <= 599 else "other"


class Neighbourhood(NamedTuple):
    """Where a capture stands: the ends of its history, its neighbours, and the nearest that brought a change."""

    change: str | None
    """What the capture itself brought."""
    ends: CaptureNeighbours
    previous_change: HistoricCapture | None
    next_change: HistoricCapture | None


def neighbourhood(session: Session, snapshot: Snapshot) -> Neighbourhood:
    """Return where a capture stands among those of its address; changes are looked for among the nearest thousand."""
    here = tuple_(literal(snapshot.captured_at, Snapshot.captured_at.type), literal(snapshot.id, Snapshot.id.type))
    place = tuple_(Snapshot.captured_at, Snapshot.id)
    captures = _captures(snapshot.url_key)
    earlier = _read(session, captures.where(place < here).order_by(*_BACKWARD).limit(_NEAR + 1))
    later = _read(session, captures.where(place > here).order_by(*_FORWARD).limit(_NEAR))
    own = _read(session, captures.where(Snapshot.id == snapshot.id))
    if not own:
        # Withdrawn a moment ago: each statement on PostgreSQL sees what is committed by then.
        raise SnapshotNotFound(f"there is no snapshot {snapshot.id}")
    # The earliest of those that were read has no capture before it to be judged by, unless it is the first of all.
    before = earlier.pop() if len(earlier) > _NEAR else None
    told = list(marked([*reversed(earlier), *own, *later], before))
    at = len(earlier)
    return Neighbourhood(
        change=told[at].change,
        ends=finding.neighbours(session, snapshot.url_key, snapshot.captured_at, snapshot.id),
        previous_change=next((one for one in reversed(told[:at]) if one.is_change), None),
        next_change=next((one for one in told[at + 1 :] if one.is_change), None),
    )


def _captures(url_key: str) -> Select[*tuple[Any, ...]]:
    # What was found against a capture that may not be seen is not told: its place is taken by the one before.
    told = and_(Change.to_snapshot_id == Snapshot.id, *visible_change(Change))
    return select(*_COLUMNS).outerjoin(Change, told).where(of_key(url_key).clause, *visible())


def _read(session: Session, statement: Select[*tuple[Any, ...]]) -> list[HistoricCapture]:
    return [HistoricCapture._make(row) for row in session.execute(statement)]
