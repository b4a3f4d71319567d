"""The calendar of an address: years, months and days with their captures. Rendering only; `browse` looks up."""

from __future__ import annotations

from calendar import monthrange
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import NamedTuple

from holdfast.replay.address import replay_path
from holdfast.replay.entities import escape
from holdfast.replay.moments import MONTHS, timestamp
from holdfast.replay.pages import page
from holdfast.replay.queries import Known, Sighting

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
    captures: Sequence[Sighting]
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


def render_addresses(prefix_url: str, known: Sequence[Known], following: str | None, prefix: str) -> bytes:
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
