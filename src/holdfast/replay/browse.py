"""Looking around in time: TimeGates, TimeMaps, calendars, addresses that begin alike. Bounded, whatever there is."""

from __future__ import annotations

import re
from calendar import monthrange
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import NamedTuple
from urllib.parse import quote

from sqlalchemy.orm import Session

from holdfast.clock import from_micros, to_micros
from holdfast.replay import finding
from holdfast.replay.address import MONTHS, AddressListing, BadReplayAddress, earliest, replay_path, timestamp
from holdfast.replay.finding import CaptureSighting, KnownAddress, NotCaptured, candidates
from holdfast.replay.links import escape
from holdfast.replay.memento import TYPES, TimeMap
from holdfast.replay.origins import ReplayOrigins
from holdfast.urls import surt

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#1b1b1b;"
    "background:#fff}a{color:#0b4f9e}h1{font-size:1.5rem;overflow-wrap:anywhere}h2{font-size:1.2rem}"
    "table{border-collapse:collapse}td,th{padding:.2rem .4rem;text-align:left;vertical-align:top}"
    ".months td,.months th{text-align:right}caption{font-weight:600;text-align:left}.day{white-space:nowrap}"
    ".months{display:flex;flex-wrap:wrap;gap:1.5rem;align-items:flex-start}"
    ".months td a{background:#cfe6ff;color:#0b2f5e;border-radius:.3rem;padding:0 .2rem}"
    ".url{overflow-wrap:anywhere}small{color:#555}nav a,nav strong{margin-right:1rem}"
    "@media(prefers-color-scheme:dark){body{background:#161616;color:#eee}a{color:#8ec5ff}small{color:#aaa}}"
)


def page(title: str, body: str) -> bytes:
    """Return a whole page; the title is escaped here, the body is markup already."""
    return (
        "<!doctype html>\n"
        f'<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<style>{_STYLE}</style></head>\n<body><main>\n{body}\n</main></body></html>\n"
    ).encode()


def refusal(title: str, message: str, *links: tuple[str, str]) -> bytes:
    """Return a page that says why there is nothing to show, and where to look instead."""
    listed = "".join(f'<li><a href="{escape(href)}">{escape(text)}</a></li>' for text, href in links)
    more = f"<ul>{listed}</ul>" if listed else ""
    return page(title, f'<h1>{escape(title)}</h1>\n<p class="url">{escape(message)}</p>{more}')


_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


class Calendar(NamedTuple):
    """What a calendar shows."""

    url: str
    years: Counter[int]
    year: int
    days: Counter[date]
    """Captures of each day of that year."""
    firsts: Mapping[date, datetime]
    """The first capture of each of these days: more of them are counted than are listed."""
    captures: Sequence[CaptureSighting]
    """Those of that year, the first thousands."""
    is_cut: bool
    """Whether there are more captures than were counted."""
    prefix: str
    """The origin before replay paths; empty on the replay host."""


def render_calendar(found: Calendar) -> bytes:
    """Return the page."""
    total = sum(found.years.values())
    some = "More than " if found.is_cut else ""
    first_of_day = {
        day: found.prefix + replay_path(timestamp(moment), "", found.url) for day, moment in found.firsts.items()
    }
    months = "".join(_month(found, month, first_of_day) for month in range(1, 13))
    body = (
        f'<h1 class="url">{escape(found.url)}</h1>\n'
        f"<p>{some}{_counted(total)}.</p>\n{_years(found)}\n"
        f'<h2>{found.year}</h2>\n<div class="months">{months}</div>\n{_list(found)}'
    )
    return page(f"Captures of {found.url}", body)


def _counted(number: int) -> str:
    return f"{number:,} {'capture' if number == 1 else 'captures'}"


def _years(found: Calendar) -> str:
    cells = []
    for year in sorted(found.years):
        text = f"{year} <small>({found.years[year]:,})</small>"
        href = escape(replay_path(f"{year}*", "", found.url))
        cells.append(f"<strong>{text}</strong>" if year == found.year else f'<a href="{href}">{text}</a>')
    return f'<nav aria-label="Years">{" ".join(cells)}</nav>'


def _month(found: Calendar, month: int, first_of_day: dict[date, str]) -> str:
    blank, length = monthrange(found.year, month)
    count = sum(found.days[date(found.year, month, day)] for day in range(1, length + 1))
    cells = ["<td></td>"] * blank
    for day in range(1, length + 1):
        on = date(found.year, month, day)
        if href := first_of_day.get(on):
            label = f"{day} {MONTHS[month - 1]}: {_counted(found.days[on])}"
            cells.append(f'<td><a href="{escape(href)}" aria-label="{label}"><strong>{day}</strong></a></td>')
        else:
            cells.append(f"<td>{day}</td>")
    weeks = "".join(f"<tr>{''.join(cells[at : at + 7])}</tr>" for at in range(0, len(cells), 7))
    head = "".join(f'<th scope="col">{name}</th>' for name in _DAYS)
    return (
        f"<table><caption>{MONTHS[month - 1]} <small>({count:,})</small></caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{weeks}</tbody></table>"
    )


def _list(found: Calendar) -> str:
    rows = "".join(
        f'<li><a href="{escape(found.prefix + replay_path(timestamp(one.captured_at), "", one.url))}">'
        f"{one.captured_at:%Y-%m-%d %H:%M:%S}</a> {one.status or ''} {escape(one.media_type or '')}</li>"
        for one in found.captures
    )
    total = found.years[found.year]
    note = f"<p>The first {len(found.captures):,} of {total:,}.</p>" if len(found.captures) < total else ""
    return f"<details><summary>All captures of {found.year}</summary>{note}<ol>{rows}</ol></details>"


def render_addresses(prefix_url: str, known: Sequence[KnownAddress], following: str | None, prefix: str) -> bytes:
    """Return the page that lists the addresses which begin alike; `following` is where the list goes on."""
    rows = "".join(
        f'<tr><td class="url"><a href="{escape(replay_path("*", "", one.url))}">'
        f'{escape(one.url)}</a></td><td class="day">{_link(one.first, one.url, prefix)}</td>'
        f'<td class="day">{_link(one.last, one.url, prefix)}</td></tr>'
        for one in known
    )
    more = f'<p><a href="{escape(following)}">Next addresses</a></p>' if following else ""
    body = (
        f'<h1 class="url">{escape(prefix_url)}*</h1>\n<table><thead><tr><th scope="col">Address</th>'
        f'<th scope="col">First capture</th><th scope="col">Last capture</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>{more}"
    )
    return page(f"Addresses below {prefix_url}", body)


def _link(moment: datetime, url: str, prefix: str) -> str:
    href = prefix + replay_path(timestamp(moment), "", url)
    return f'<a href="{escape(href)}">{moment:%Y-%m-%d}</a>'


MAP_PAGE = 5_000
"""Captures on one page of a TimeMap."""
_COUNTED = 50_000
"""Captures that a calendar counts; an address with more says so."""
_LISTED = 1_000
_ADDRESSES = 100
_PAGE = re.compile(r"([0-9]{1,18})\.([0-9]{1,19})")
_MAP = re.compile(r"([a-z]{1,8})/(?:([0-9]{1,18}\.[0-9]{1,19})/)?(.+)", re.DOTALL)


def gate(
    session: Session, url: str, wanted: datetime | None
) -> tuple[CaptureSighting, tuple[CaptureSighting, CaptureSighting]]:
    """Return the capture that a TimeGate chooses, and the ends; the newest without a wish. NotCaptured if none.

    What lies before the first or behind the last is answered by that end (RFC 7089, section 4.5.3).
    """
    found = finding.ends(session, surt(url))
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
    found = finding.ends(session, key)
    if found is None:
        raise NotCaptured(url)
    after = _place(page) if page else None
    captures = finding.sightings(session, key, after=after, until=None, limit=size + 1)
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


def listing(session: Session, wanted: AddressListing, place: ReplayOrigins) -> bytes:
    """Return the page for a calendar or a list of addresses; NotCaptured if there is nothing to list."""
    return _addresses(session, wanted, place) if wanted.is_prefix else _calendar(session, wanted, place)


def _calendar(session: Session, wanted: AddressListing, place: ReplayOrigins) -> bytes:
    key = surt(wanted.url)
    moments = finding.moments(session, key, limit=_COUNTED + 1)
    if not moments:
        raise NotCaptured(wanted.url)
    is_cut = len(moments) > _COUNTED
    counted = moments[:_COUNTED]
    years = Counter(moment.year for moment in counted)
    year = earliest(wanted.digits).year if wanted.digits else max(years)
    start, end = datetime(year, 1, 1, tzinfo=UTC), datetime(year, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    captures = finding.sightings(session, key, after=(start, 0), until=end, limit=_LISTED)
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


def _addresses(session: Session, wanted: AddressListing, place: ReplayOrigins) -> bytes:
    low, high = prefix_range(wanted.url)
    if wanted.after:
        low = max(low, f"{wanted.after}\x01")  # behind this key, before any longer one: keys hold no controls
    known = finding.addresses(session, low, high, limit=_ADDRESSES + 1)
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
