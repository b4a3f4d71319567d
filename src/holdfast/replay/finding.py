"""Chooses the capture for an address and a time: one rule for replay, Memento and `/api/replay/resolve`.

The index returns a few neighbours; the choice among them is a pure function.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, bindparam, func, literal, select, tuple_
from sqlalchemy.orm import Session

from holdfast.db.models import PageGroup, Snapshot, Source
from holdfast.errors import NotFound, UrlRefused
from holdfast.index.capture import identify
from holdfast.index.queries import CaptureRange, is_ok
from holdfast.replay.address import earliest, is_storable, latest
from holdfast.search.query import group_hashes
from holdfast.urls import parse, surt
from holdfast.withdrawals.visibility import hidden_sources, visible, visible_source


class FoundCapture(NamedTuple):
    """One capture of an address, with the columns needed to choose among many."""

    id: int
    url: str
    captured_at: datetime
    status: int | None
    media_type: str | None
    redirect_to: str | None
    record_type: str
    original_id: int | None
    truncated: str | None = None
    """Why its body is incomplete; None if it is complete."""
    source_id: int = 0

    @property
    def has_lost_body(self) -> bool:
        """Whether it is a revisit that should have a body and whose original is missing."""
        return is_lost(self.record_type, self.original_id, self.status)


def is_lost(record_type: str, original_id: int | None, status: int | None) -> bool:
    """Return whether a capture is a revisit without its original; redirects need no body."""
    is_redirect = status is not None and 300 <= status < 400 and status != 304
    return record_type == "revisit" and original_id is None and not is_redirect


_COLUMNS = (
    *(Snapshot.id, Snapshot.url, Snapshot.captured_at, Snapshot.status, Snapshot.media_type, Snapshot.redirect_to),
    *(Snapshot.record_type, Snapshot.original_id, Snapshot.truncated, Snapshot.source_id),
)
_FORWARD = (Snapshot.captured_at, Snapshot.id)
_BACKWARD = (Snapshot.captured_at.desc(), Snapshot.id.desc())


# Building a statement takes longer than running it: build those of every replayed page once.
_Statement = Select[*tuple[Any, ...]]


@cache
def _near(column: str, each: int) -> tuple[_Statement, _Statement]:
    owner = getattr(Snapshot, column)
    moment = bindparam("moment", type_=Snapshot.captured_at.type)
    wanted = select(*_COLUMNS).where(owner == bindparam("value", type_=owner.type), *visible()).limit(each)
    return (
        wanted.where(Snapshot.captured_at < moment).order_by(*_BACKWARD),
        wanted.where(Snapshot.captured_at >= moment).order_by(*_FORWARD),
    )


def around(
    session: Session, which: tuple[str, str | int], moment: datetime, *, each: int, within: CaptureRange | None = None
) -> list[FoundCapture]:
    """Return the nearest captures of an address, at most `each` before a time and as many from it on, in order.

    `which` is a column of the address, `url_key` or `url_hash`, and its value. `within` restricts the captures to one
    execution.
    """
    # Two seeks, not one range: a URL may have a hundred thousand captures on either side.
    column, value = which
    before, after = _near(column, each)
    if within is not None:
        before, after = (statement.where(*within.clauses()) for statement in (before, after))
    given = {"value": value, "moment": moment}
    earlier, later = session.execute(before, given).all(), session.execute(after, given)
    return [*map(FoundCapture._make, reversed(earlier)), *map(FoundCapture._make, later)]


class CaptureNeighbours(NamedTuple):
    """The position of a capture among those of its address."""

    first: FoundCapture | None
    previous: FoundCapture | None
    next: FoundCapture | None
    last: FoundCapture | None


@cache
def _from_ends() -> tuple[_Statement, ...]:
    wanted = select(*_COLUMNS).where(Snapshot.url_key == bindparam("key", type_=Snapshot.url_key.type), *visible())
    place = tuple_(Snapshot.captured_at, Snapshot.id)
    here = tuple_(bindparam("moment", type_=Snapshot.captured_at.type), bindparam("number", type_=Snapshot.id.type))
    return (
        wanted.order_by(*_FORWARD).limit(1),
        wanted.where(place < here).order_by(*_BACKWARD).limit(1),
        wanted.where(place > here).order_by(*_FORWARD).limit(1),
        wanted.order_by(*_BACKWARD).limit(1),
    )


def neighbours(session: Session, url_key: str, captured_at: datetime, snapshot_id: int) -> CaptureNeighbours:
    """Return the captures before and after this one, and the first and last. Four seeks."""
    given = {"key": url_key, "moment": captured_at, "number": snapshot_id}
    found = [session.execute(statement, given).one_or_none() for statement in _from_ends()]
    return CaptureNeighbours(*(None if row is None else FoundCapture._make(row) for row in found))


def ends(session: Session, url_key: str) -> tuple[FoundCapture, FoundCapture] | None:
    first_of, _, _, last_of = _from_ends()
    first = session.execute(first_of, {"key": url_key}).one_or_none()
    last = session.execute(last_of, {"key": url_key}).one_or_none()
    return None if first is None or last is None else (FoundCapture._make(first), FoundCapture._make(last))


def captures_between(
    session: Session, url_key: str, *, after: tuple[datetime, int] | None, until: datetime | None, limit: int
) -> list[FoundCapture]:
    """Return captures of an address in order, after a position and up to a time."""
    wanted = select(*_COLUMNS).where(Snapshot.url_key == url_key, *visible()).order_by(*_FORWARD).limit(limit)
    if after is not None:
        here = tuple_(literal(after[0], Snapshot.captured_at.type), literal(after[1], Snapshot.id.type))
        wanted = wanted.where(tuple_(Snapshot.captured_at, Snapshot.id) > here)
    if until is not None:
        wanted = wanted.where(Snapshot.captured_at <= until)
    return [*map(FoundCapture._make, session.execute(wanted))]


def moments(session: Session, url_key: str, *, limit: int) -> Sequence[datetime]:
    """Return the capture times of an address, latest first, at most `limit`: all that a calendar counts."""
    wanted = (
        select(Snapshot.captured_at).where(Snapshot.url_key == url_key, *visible()).order_by(*_BACKWARD).limit(limit)
    )
    return session.scalars(wanted).all()


_STRETCH = 500


def visible_stretches(session: Session, low: str, high: str, *, reverse: bool = False) -> Iterator[tuple[str, str]]:
    """Yield the parts of the keys in [low, high) that may hold visible captures, in order or reverse.

    Each starts at a key of a source that the viewer may see and has `_STRETCH` captures, or those of one key. So
    the work for a reader does not grow with the captures of hidden sources, and its time does not reveal them.
    """
    if not hidden_sources(session):
        yield low, high
        return
    key = Snapshot.url_key
    order, fold = (key.desc(), func.max) if reverse else (key, func.min)
    while low < high:
        # One seek for each source.
        nearest = select(fold(key)).where(Snapshot.source_id == Source.id, key >= low, key < high).scalar_subquery()
        start = session.scalar(select(fold(nearest)).where(visible_source(Source.id)))
        if start is None:
            return
        # The key with U+0001 sorts after the key and before any longer one: keys contain no controls.
        low, high = (low, f"{start}\x01") if reverse else (start, high)
        end = session.scalar(select(key).where(key >= low, key < high).order_by(order).offset(_STRETCH).limit(1))
        edge = (low if reverse else high) if end is None else end if reverse else f"{end}\x01"
        yield (edge, high) if reverse else (low, edge)
        low, high = (low, edge) if reverse else (edge, high)


class KnownAddress(NamedTuple):
    url_key: str
    url: str
    first: datetime
    last: datetime


def addresses(session: Session, low: str, high: str, *, limit: int) -> list[KnownAddress]:
    """Return the addresses with keys in [low, high), in order: one seek each, however often it was captured."""
    parts = visible_stretches(session, low, high)
    return [*islice((one for part in parts for one in _addresses(session, *part, limit=limit)), limit)]


def _addresses(session: Session, low: str, high: str, *, limit: int) -> list[KnownAddress]:
    first_key = _next_key(Snapshot.url_key >= low, high)
    # Walk recursively from key to key: DISTINCT over the range would read every capture of every URL.
    chain = select(first_key.label("url_key")).cte("chain", recursive=True)
    following = _next_key(Snapshot.url_key > chain.c.url_key, high)
    chain = chain.union_all(select(following).where(chain.c.url_key.is_not(None)))
    keys = select(chain.c.url_key).where(chain.c.url_key.is_not(None)).limit(limit).subquery()
    url = _of_one(keys.c.url_key, Snapshot.url, latest=True)
    first = _of_one(keys.c.url_key, Snapshot.captured_at, latest=False)
    last = _of_one(keys.c.url_key, Snapshot.captured_at, latest=True)
    # Order here: a recursive query guarantees no order.
    found = session.execute(select(keys.c.url_key, url, first, last))
    return sorted(KnownAddress._make(row) for row in found if row[1] is not None)


def same_path(session: Session, url: str, *, limit: int) -> list[KnownAddress]:
    """Return addresses that differ from this one only in their query, up to `limit` without one and with one each.

    Scheme, `www.` and case make no difference to a key: addresses that differ in these count as the same.
    """
    stem = surt(url.partition("#")[0].partition("?")[0])
    # A key with a query continues with "?", which "@" follows; "!" precedes any character that can continue a key.
    ranges = (stem, f"{stem}!"), (f"{stem}?", f"{stem}@")
    return [one for low, high in ranges for one in addresses(session, low, high, limit=limit)]


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


# Limit of captures read on each side: enough for a redirect, its target and a few broken ones.
_WINDOW = 8

_VARIANT = re.compile(r"^https?://(?:www\d{0,8}\.)?", re.IGNORECASE)


class NotCaptured(NotFound):
    """The archive has no visible capture of this address."""

    code = "not_captured"

    def __init__(self, url: str) -> None:
        super().__init__(f"{url[:500]} is not in this archive; look for its site with: /web/*/<address>*")
        self.url = url


def resolve(session: Session, url: str, digits: str, *, within: CaptureRange | None = None) -> FoundCapture | None:
    """Return the best capture for an address and a time: of the page, its twins, else of its group.

    Twins are the same address with or without www, on http or https; a group is a page with any query. None if
    neither exists.
    """
    try:
        return candidates(session, url, digits, within=within)[0]
    except NotCaptured:
        return _nearest_in_groups(session, url, earliest(digits), within)


def _nearest_in_groups(
    session: Session, url: str, moment: datetime, within: CaptureRange | None
) -> FoundCapture | None:
    """Return the successful capture nearest to a time among pages that differ only in their query."""
    try:
        hashes = group_hashes(parse(url))
    except UrlRefused:
        return None
    found: list[FoundCapture] = []
    # Query each group separately, so that each query ends at its first row: a combined one would sort all captures.
    for group in session.scalars(select(PageGroup.id).where(PageGroup.url_hash.in_(hashes))).all():
        wanted = select(*_COLUMNS).where(Snapshot.group_id == group, *visible(), is_ok()).limit(1)
        if within is not None:
            wanted = wanted.where(*within.clauses())
        earlier = wanted.where(Snapshot.captured_at <= moment).order_by(*_BACKWARD)
        later = wanted.where(Snapshot.captured_at > moment).order_by(*_FORWARD)
        found += (FoundCapture._make(row) for half in (earlier, later) for row in session.execute(half))

    def distance(one: FoundCapture) -> tuple[timedelta, bool, int]:
        is_later = one.captured_at > moment
        return abs(one.captured_at - moment), is_later, one.id if is_later else -one.id

    return min(found, key=distance, default=None)


def candidates(
    session: Session, url: str, digits: str, *, within: CaptureRange | None = None, sent: str = ""
) -> list[FoundCapture]:
    """Return matching captures, best first; raise NotCaptured if there are none.

    Addresses match as in other archives (ignoring scheme, `www`, case and session ids), then by our normaliser
    (ignoring tracking parameters). `within` restricts the captures to one execution. `sent` is the data of a
    request other than GET, as `index.capture.request_data` encodes it: only captures of the same request match.
    """
    # PostgreSQL refuses NUL, and no driver encodes lone surrogates: no stored address contains them.
    if not (is_storable(url) and is_storable(sent)):
        raise NotCaptured(url)
    low, high = earliest(digits), latest(digits)
    identity = identify(url, sent)
    asked = WantedCapture(url, low, high, len(digits) == 14)
    # Search by key first, like other archives. Our normaliser drops tracking parameters, which a key keeps.
    for which in (("url_key", identity.url_key), ("url_hash", identity.url_hash)):
        if ranked := rank(around(session, which, high, each=_WINDOW, within=within), asked):
            return ranked
    raise NotCaptured(url)


class WantedCapture(NamedTuple):
    url: str
    low: datetime
    high: datetime
    is_exact: bool
    """Whether all 14 digits were given."""


def rank(found: Iterable[FoundCapture], asked: WantedCapture) -> list[FoundCapture]:
    """Return captures sorted by how well they match.

    The same page precedes pages that only share its key (`/A` and `/a`). A redirect to the page's own twin, such as
    from http to https, follows the page, unless exactly this capture is requested. Captures inside the period
    precede those nearer to its end, from which other archives measure too. A redirect to the requested address
    itself would be a loop and is omitted.
    """
    # A browser that followed such a redirect would request the same address endlessly.
    usable = [capture for capture in found if not _is_same(capture.redirect_to, asked.url)]
    return sorted(usable, key=lambda capture: _place(capture, asked))


def _place(capture: FoundCapture, asked: WantedCapture) -> tuple[bool | int | float, ...]:
    in_period = asked.low <= capture.captured_at <= asked.high
    is_exact = _is_same(capture.url, asked.url)
    is_twin = capture.redirect_to is not None and _variant(capture.redirect_to) == _variant(capture.url)
    is_requested = asked.is_exact and in_period and is_exact
    distance = abs((capture.captured_at - asked.high).total_seconds())
    return (
        # Keys ignore case: `/A` and `/a` share one, but are two pages.
        _variant(capture.url) != _variant(asked.url),
        capture.has_lost_body,
        # A crawl captures the redirect and, shortly after, its target.
        is_twin and not is_requested,
        not in_period,
        in_period and not is_exact,
        # A replay URL has seconds: of two captures in one second, a complete one precedes a truncated one.
        int(distance) if asked.is_exact else distance,
        capture.truncated is not None,
        distance,
        not is_exact,
    )


def _variant(url: str) -> str:
    """Return an address without the parts that every archive ignores: scheme, www, fragment, a lone slash."""
    return _VARIANT.sub("", url.partition("#")[0]).removesuffix("/")


def _is_same(url: str | None, other: str) -> bool:
    return url is not None and _whole(url) == _whole(other)


def _whole(url: str) -> str:
    """Return an address without fragment, and with a slash after a bare host."""
    bare = url.partition("#")[0]
    return bare if "/" in bare.partition("://")[2] else f"{bare}/"


def prefix_range(url: str) -> tuple[str, str]:
    """Return the key range of all addresses with this prefix."""
    key = surt(url)
    if url.endswith("/") and not key.endswith("/"):
        # A key drops the slash at the end of a path: without it, `/dir/*` would also find `/directory`.
        key += "/"
    # The key of an invalid URL may contain any character. U+10FFFF has no successor, so trailing ones are removed;
    # U+D7FF is followed by surrogates, which no database stores, so U+E000 is used.
    stem = key.rstrip("\U0010ffff")
    if not stem:
        return key, f"{key}\U0010ffff"
    following = ord(stem[-1]) + 1
    return key, stem[:-1] + chr(0xE000 if following == 0xD800 else following)
