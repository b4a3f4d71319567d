"""Our own HTML in the replay space: the bar of an archived page, calendars, lists of addresses, error pages.

No script but the shim; lists are bounded, whatever the archive holds.
"""

from __future__ import annotations

import json
from calendar import monthrange
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from functools import cache
from importlib import resources
from urllib.parse import quote

from sqlalchemy.orm import Session

from holdfast.clock import digits14
from holdfast.db.models import Snapshot
from holdfast.replay import finding
from holdfast.replay.address import MONTHS, AddressListing, day_in_words, earliest, replay_path
from holdfast.replay.finding import CaptureNeighbours, FoundCapture, KnownAddress, NotCaptured, prefix_range
from holdfast.replay.links import Links, escape
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


def html_document(title: str, body: str, head: str = "") -> str:
    """Return a complete document; all arguments must be markup already.

    It declares no charset: a frame around an archived page is sent in that page's charset.
    """
    return f'<!doctype html>\n<html lang="en"><head>{head}<title>{title}</title></head>\n<body>{body}</body></html>\n'


def html_page(title: str, body: str, *, style: str) -> str:
    """Return a UTF-8 page; the title is escaped here, the body and the style element are markup."""
    # Write the charset first: browsers search the first kilobyte for it, and a style sheet is longer.
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">{style}'
    return html_document(escape(title), f"<main>\n{body}\n</main>", head)


def page(title: str, body: str) -> bytes:
    """Return a page of the replay space, which may load nothing: its style is inline."""
    return html_page(title, body, style=f"<style>{_STYLE}</style>").encode()


def refusal(title: str, message: str, *links: tuple[str, str]) -> bytes:
    listed = "".join(f'<li><a href="{escape(href)}">{escape(text)}</a></li>' for text, href in links)
    more = f"<ul>{listed}</ul>" if listed else ""
    return page(title, f'<h1>{escape(title)}</h1>\n<p class="url">{escape(message)}</p>{more}')


_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def _counted(number: int) -> str:
    return f"{number:,} {'capture' if number == 1 else 'captures'}"


def _years(years: Counter[int], shown: int, calendar: str) -> str:
    """Return links to the calendars of all years; `calendar` is their URL with `*` in place of the year and star."""
    before, _, after = calendar.partition("*")
    cells = []
    for year in sorted(years):
        text = f"{year} <small>({years[year]:,})</small>"
        href = escape(f"{before}{year}*{after}")
        cells.append(f"<strong>{text}</strong>" if year == shown else f'<a href="{href}">{text}</a>')
    return f'<nav aria-label="Years">{" ".join(cells)}</nav>'


def _month(year: int, month: int, days: Counter[date], first_of_day: Mapping[date, str]) -> str:
    blank, length = monthrange(year, month)
    count = sum(days[date(year, month, day)] for day in range(1, length + 1))
    cells = ["<td></td>"] * blank
    for day in range(1, length + 1):
        on = date(year, month, day)
        if href := first_of_day.get(on):
            label = f"{day} {MONTHS[month - 1]}: {_counted(days[on])}"
            cells.append(f'<td><a href="{escape(href)}" aria-label="{label}"><strong>{day}</strong></a></td>')
        else:
            cells.append(f"<td>{day}</td>")
    weeks = "".join(f"<tr>{''.join(cells[at : at + 7])}</tr>" for at in range(0, len(cells), 7))
    head = "".join(f'<th scope="col">{name}</th>' for name in _DAYS)
    return (
        f"<table><caption>{MONTHS[month - 1]} <small>({count:,})</small></caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{weeks}</tbody></table>"
    )


def _list(captures: Sequence[FoundCapture], year: int, total: int, prefix: str) -> str:
    rows = "".join(
        f'<li><a href="{escape(prefix + replay_path(digits14(one.captured_at), "", one.url))}">'
        f"{one.captured_at:%Y-%m-%d %H:%M:%S}</a> {one.status or ''} {escape(one.media_type or '')}</li>"
        for one in captures
    )
    note = f"<p>The first {len(captures):,} of {total:,}.</p>" if len(captures) < total else ""
    return f"<details><summary>All captures of {year}</summary>{note}<ol>{rows}</ol></details>"


def render_addresses(
    prefix_url: str, known: Sequence[KnownAddress], following: str | None, origins: ReplayOrigins
) -> bytes:
    """Return the page that lists the addresses with a prefix; `following` is where the list continues."""
    prefix = origins.prefix
    rows = "".join(
        f'<tr><td class="url"><a href="{escape(origins.own_root + replay_path("*", "", one.url))}">'
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
    href = prefix + replay_path(digits14(moment), "", url)
    return f'<a href="{escape(href)}">{moment:%Y-%m-%d}</a>'


# Limit of captures counted by a calendar; a URL with more says so.
_COUNTED = 50_000
_LISTED = 1_000
_ADDRESSES = 100


def listing(session: Session, wanted: AddressListing, origins: ReplayOrigins) -> bytes:
    """Return the page for a calendar or a list of addresses; raise NotCaptured if it would be empty."""
    return _addresses(session, wanted, origins) if wanted.is_prefix else _calendar(session, wanted, origins)


def _calendar(session: Session, wanted: AddressListing, origins: ReplayOrigins) -> bytes:
    key = surt(wanted.url)
    moments = finding.moments(session, key, limit=_COUNTED + 1)
    if not moments:
        raise NotCaptured(wanted.url)
    # One more was read than is counted, to know whether there are more.
    is_cut = len(moments) > _COUNTED
    counted = moments[:_COUNTED]
    years = Counter(moment.year for moment in counted)
    year = earliest(wanted.digits).year if wanted.digits else max(years)
    start, end = datetime(year, 1, 1, tzinfo=UTC), datetime(year, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    captures = finding.captures_between(session, key, after=(start, 0), until=end, limit=_LISTED)
    # A year may be partly or wholly before the counted captures: its listed captures count, too.
    listed = [capture.captured_at for capture in captures]
    in_year = [moment for moment in counted if moment.year == year]
    days = Counter(moment.date() for moment in in_year) | Counter(moment.date() for moment in listed)
    years |= Counter({year: sum(days.values())})
    firsts: dict[date, datetime] = {}
    for moment in (*in_year, *listed):
        firsts[moment.date()] = min(moment, firsts.get(moment.date(), moment))
    links = {day: origins.prefix + replay_path(digits14(first), "", wanted.url) for day, first in firsts.items()}
    months = "".join(_month(year, month, days, links) for month in range(1, 13))
    body = (
        f'<h1 class="url">{escape(wanted.url)}</h1>\n'
        f"<p>{'More than ' if is_cut else ''}{_counted(sum(years.values()))}.</p>\n"
        f"{_years(years, year, origins.own_root + _calendar_path(wanted.url))}\n"
        f'<h2>{year}</h2>\n<div class="months">{months}</div>\n'
        f"{_list(captures, year, years[year], origins.prefix)}"
    )
    return page(f"Captures of {wanted.url}", body)


def _addresses(session: Session, wanted: AddressListing, origins: ReplayOrigins) -> bytes:
    low, high = prefix_range(wanted.url)
    if wanted.after:
        # Sorts after this key and before any longer one: keys contain no controls.
        low = max(low, f"{wanted.after}\x01")
    known = finding.addresses(session, low, high, limit=_ADDRESSES + 1)
    if not known:
        raise NotCaptured(f"{wanted.url}*")
    following = None
    if len(known) > _ADDRESSES:
        known = known[:_ADDRESSES]
        following = f"{origins.own_root}{replay_path('*', '', wanted.url)}*?after={quote(known[-1].url_key, safe='')}"
    return render_addresses(wanted.url, known, following, origins)


_BOX = (
    # Part of the page's flow, so that it scrolls away: a fixed bar would cover fixed headers.
    "all:initial;display:block;position:relative;z-index:2147483647;box-sizing:border-box;width:100%;flex:none;"
    "padding:4px 12px;background:#16324f;color:#fff;font:13px/1.6 system-ui,sans-serif;text-align:left;direction:ltr"
)
_LINK = "all:unset;color:#cfe6ff;text-decoration:underline;cursor:pointer;margin-right:12px;font:inherit"
_QUIET = "color:#dbe7f3;overflow-wrap:anywhere"
_SUMMARY = "cursor:pointer;font-weight:600"
DISCLAIMER = (
    "This is an archived copy, kept as it was on that day. It may be out of date, and parts of it may be missing."
)


def replay_bar(shown: Snapshot, around: CaptureNeighbours | None, origins: ReplayOrigins) -> str:
    """Return the bar of a replayed page: links to the captures around it, and to its calendar."""
    links: list[tuple[str, str]] = []
    if around is not None:
        for text, found in (("Earlier", around.previous), ("Later", around.next)):
            if found is not None:
                links.append((text, origins.prefix + replay_path(digits14(found.captured_at), "", found.url)))
    links.append(("All captures", f"{origins.prefix}{_calendar_path(shown.url)}"))
    return _bar(shown, None, links)


def raw_bar(shown: Snapshot, title: str | None, origins: ReplayOrigins) -> str:
    """Return the bar of the raw view: links to replay, history, differences, metadata, and a citation."""
    digits = digits14(shown.captured_at)
    # On its own host a path suffices; from the replay host the application is another origin, and may be unknown.
    app = "" if not origins.is_replay else origins.app
    links = [
        ("Replay", origins.prefix + replay_path(digits, "", shown.url)),
        ("All captures", f"{origins.prefix}{_calendar_path(shown.url)}"),
        ("Original bytes", origins.prefix + replay_path(digits, "id_", shown.url)),
    ]
    if app is not None:
        links = [
            ("Back", f"{app}/"),
            *links,
            ("Metadata", f"{app}/api/snapshot/{shown.id}"),
            ("Timeline", f"{app}/api/snapshots/{shown.id}/timeline"),
            ("What changed", f"{app}/compare?to={shown.id}"),
            ("Report a problem", f"{app}/report?snapshotId={shown.id}&url={quote(shown.url[:2000], safe='')}"),
        ]
    cite = f"{title or shown.url}. Captured {day_in_words(shown.captured_at)}. "
    # Without a capability: citations are permanent.
    cite += origins._replace(root="").memento(digits, "", shown.url)
    return _bar(shown, title, links, extra=f"<br>Cite as: <cite>{escape(cite)}</cite>")


def _calendar_path(url: str) -> str:
    return replay_path("*", "", url)


def _bar(shown: Snapshot, title: str | None, links: list[tuple[str, str]], extra: str = "") -> str:
    anchors = "".join(f'<a style="{_LINK}" href="{escape(href)}">{escape(text)}</a>' for text, href in links)
    at = shown.captured_at
    heading = f"{escape(title)}: " if title else ""
    return (
        f'<div id="holdfast-bar" role="region" aria-label="About this archived page" style="{_BOX}">'
        f'<details open="open"><summary style="{_SUMMARY}">Archived on {day_in_words(at)}, {at:%H:%M:%S} UTC</summary>'
        f'<span style="{_QUIET}">{heading}{escape(shown.url)}</span><br>{anchors}'
        f'<br><span style="{_QUIET}">{DISCLAIMER}{extra}</span></details></div>'.replace("<br>", "<br />")
    )


@cache
def _source() -> str:
    """Return the program, up to its argument, without comments and indentation."""
    # It goes into every page: without comments and indentation 16,878 characters are 14,184.
    lines = (resources.files(__package__) / "shim.js").read_text("utf-8").splitlines()
    return "\n".join(bare for line in lines if (bare := line.strip()) and not bare.startswith("//"))


def shim_for(url: str, links: Links, origins: ReplayOrigins, site: str) -> str:
    """Return the element to insert before everything else in a page, in ASCII, valid as HTML and XML.

    `site` is the result of `site_of` for the address.
    """
    page = {
        "url": url,
        "origin": origins.origin,
        "apps": origins.viewers,
        # On this host only a capability precedes a path.
        "root": links.prefix,
        "digits": links.digits,
        "modifier": links.modifier.value,
        "site": site,
        "pass": links.site_pass,
    }
    # Escape `</script>` and `<!--` in a script element, and in XML `<` and `&`.
    values = json.dumps(page).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    # The CDATA marks are comments to HTML and keep XML from reading the program as markup.
    return f"<script>//<![CDATA[\n{_source()}{values});\n//]]></script>"


_FRAME_STYLE = (
    "<style>html,body{height:100%;margin:0}body{display:flex;flex-direction:column}"
    "iframe{flex:1;border:0;width:100%}</style>"
)


def framed(title: str, bar: str, address: str) -> str:
    """Return a page with the bar above and the capture in a frame; the title must be markup already."""
    return html_document(title, f'{bar}<iframe src="{escape(address)}"></iframe>', _FRAME_STYLE)
