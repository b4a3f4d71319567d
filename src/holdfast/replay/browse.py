"""Looking around in time: TimeGates, TimeMaps, calendars, addresses that begin alike. Bounded, whatever there is."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, date, datetime
from urllib.parse import quote

from sqlalchemy.orm import Session

from holdfast.clock import from_micros, to_micros
from holdfast.replay import queries
from holdfast.replay.address import BadReplayAddress, Listing, replay_path
from holdfast.replay.calendar import Calendar, render_addresses, render_calendar
from holdfast.replay.finding import NotCaptured, candidates
from holdfast.replay.memento import TYPES, TimeMap
from holdfast.replay.moments import earliest, timestamp
from holdfast.replay.place import Place
from holdfast.replay.queries import Sighting
from holdfast.urls import surt

MAP_PAGE = 5_000
"""Captures on one page of a TimeMap."""
_COUNTED = 50_000
"""Captures that a calendar counts; an address with more says so."""
_LISTED = 1_000
_ADDRESSES = 100
_PAGE = re.compile(r"([0-9]{1,18})\.([0-9]{1,19})")
_MAP = re.compile(r"([a-z]{1,8})/(?:([0-9]{1,18}\.[0-9]{1,19})/)?(.+)", re.DOTALL)


def gate(session: Session, url: str, wanted: datetime | None) -> tuple[Sighting, tuple[Sighting, Sighting]]:
    """Return the capture that a TimeGate chooses, and the ends; the newest without a wish. NotCaptured if none.

    What lies before the first or behind the last is answered by that end (RFC 7089, section 4.5.3).
    """
    found = queries.ends(session, surt(url))
    if found is None:
        raise NotCaptured(url)
    if wanted is None:
        return candidates(session, url, timestamp(found[1].captured_at))[0], found
    moment = min(max(wanted, found[0].captured_at), found[1].captured_at)
    return candidates(session, url, timestamp(moment))[0], found


def read_map_path(path: str) -> tuple[str, str, str]:
    """Return form, page and address of what stands behind `/web/timemap/`; BadReplayAddress if that is no TimeMap."""
    match = _MAP.fullmatch(path)
    if match is None or match[1] not in TYPES:
        raise BadReplayAddress("a TimeMap is at /web/timemap/link/<address>, or json or cdxj in place of link")
    return match[1], match[2] or "", match[3]


def time_map(session: Session, url: str, form: str, page: str, *, size: int = MAP_PAGE) -> TimeMap:
    """Return one page of the captures of an address; NotCaptured if there is none, BadReplayAddress if no such page."""
    key = surt(url)
    found = queries.ends(session, key)
    if found is None:
        raise NotCaptured(url)
    after = _place(page) if page else None
    captures = queries.sightings(session, key, after=after, until=None, limit=size + 1)
    following = None
    if len(captures) > size:
        captures = captures[:size]
        following = f"{to_micros(captures[-1].captured_at)}.{captures[-1].id}"
    return TimeMap(url, form, page, following, found, captures)


def _place(page: str) -> tuple[datetime, int]:
    match = _PAGE.fullmatch(page)
    try:
        if match is not None and int(match[2]) < 1 << 63:
            return from_micros(int(match[1])), int(match[2])
    except (ValueError, OverflowError, OSError):
        pass
    raise BadReplayAddress("there is no such page of a TimeMap")


def listing(session: Session, wanted: Listing, place: Place) -> bytes:
    """Return the page for a calendar or a list of addresses; NotCaptured if there is nothing to list."""
    return _addresses(session, wanted, place) if wanted.is_prefix else _calendar(session, wanted, place)


def _calendar(session: Session, wanted: Listing, place: Place) -> bytes:
    key = surt(wanted.url)
    moments = queries.moments(session, key, limit=_COUNTED + 1)
    if not moments:
        raise NotCaptured(wanted.url)
    is_cut = len(moments) > _COUNTED
    counted = moments[:_COUNTED]
    years = Counter(moment.year for moment in counted)
    year = earliest(wanted.digits).year if wanted.digits else max(years)
    start, end = datetime(year, 1, 1, tzinfo=UTC), datetime(year, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    captures = queries.sightings(session, key, after=(start, 0), until=end, limit=_LISTED)
    # What is listed of a year that lies before all that was counted, or partly so, counts as well.
    listed = [capture.captured_at for capture in captures]
    in_year = [moment for moment in counted if moment.year == year]
    days = Counter(moment.date() for moment in in_year) | Counter(moment.date() for moment in listed)
    years |= Counter({year: sum(days.values())})
    firsts: dict[date, datetime] = {}
    for moment in (*in_year, *listed):
        firsts[moment.date()] = min(moment, firsts.get(moment.date(), moment))
    return render_calendar(
        Calendar(
            url=wanted.url,
            years=years,
            year=year,
            days=days,
            firsts=firsts,
            captures=captures,
            is_cut=is_cut,
            prefix=place.prefix,
        )
    )


def _addresses(session: Session, wanted: Listing, place: Place) -> bytes:
    low, high = prefix_range(wanted.url)
    if wanted.after:
        low = max(low, f"{wanted.after}\x01")  # behind this key, before any longer one: keys hold no controls
    known = queries.addresses(session, low, high, limit=_ADDRESSES + 1)
    if not known:
        raise NotCaptured(f"{wanted.url}*")
    following = None
    if len(known) > _ADDRESSES:
        known = known[:_ADDRESSES]
        following = f"{replay_path('*', '', wanted.url)}*?after={quote(known[-1].url_key, safe='')}"
    return render_addresses(wanted.url, known, following, place.prefix)


def prefix_range(url: str) -> tuple[str, str]:
    """Return the keys between which everything lies whose address begins like this one."""
    key = surt(url)
    if url.endswith("/") and not key.endswith("/"):
        key += "/"
    # The key of an address that is none holds any character: behind the last of all there is none to end before, and
    # behind U+D7FF come halves of characters, which no database takes.
    stem = key.rstrip("\U0010ffff")
    if not stem:
        return key, f"{key}\U0010ffff"
    following = ord(stem[-1]) + 1
    return key, stem[:-1] + chr(0xE000 if following == 0xD800 else following)
