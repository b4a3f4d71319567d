"""The bar inside an archived page: what this is, when it was captured, where to go. No script, closed with one key."""

from __future__ import annotations

import json
from datetime import datetime
from functools import cache
from importlib import resources
from typing import NamedTuple
from urllib.parse import quote

from holdfast.replay.address import day_in_words, replay_path, timestamp
from holdfast.replay.finding import CaptureNeighbours
from holdfast.replay.links import Links, escape
from holdfast.replay.markup import Bar
from holdfast.replay.origins import ReplayOrigins

_BOX = (
    # In the flow of the page, which it leaves by scrolling: a bar that stays would cover headers that do.
    "all:initial;display:block;position:relative;z-index:2147483647;box-sizing:border-box;width:100%;flex:none;"
    "padding:4px 12px;background:#16324f;color:#fff;font:13px/1.6 system-ui,sans-serif;text-align:left;direction:ltr"
)
_LINK = "all:unset;color:#cfe6ff;text-decoration:underline;cursor:pointer;margin-right:12px;font:inherit"
_QUIET = "color:#dbe7f3;overflow-wrap:anywhere"
_SUMMARY = "cursor:pointer;font-weight:600"
DISCLAIMER = (
    "This is an archived copy, kept as it was on that day. It may be out of date, and parts of it may be missing."
)


class ShownCapture(NamedTuple):
    """The capture that a bar speaks of."""

    url: str
    captured_at: datetime
    snapshot_id: int
    title: str | None = None


def replay_bar(shown: ShownCapture, around: CaptureNeighbours | None, place: ReplayOrigins) -> Bar:
    """Return the bar of a page in the replay space, with the captures before and after it."""
    links: list[tuple[str, str]] = []
    if around is not None:
        for text, found in (("Earlier", around.previous), ("Later", around.next)):
            if found is not None:
                links.append((text, place.prefix + replay_path(timestamp(found.captured_at), "", found.url)))
    links.append(("All captures", f"{place.prefix}{_calendar(shown.url)}"))
    return _bar(shown, links)


def raw_bar(shown: ShownCapture, place: ReplayOrigins) -> Bar:
    """Return the bar of the raw view: links to replay, history, differences, metadata, and a citation."""
    digits = timestamp(shown.captured_at)
    app = "" if not place.is_replay else place.app
    links = [
        ("Replay", place.prefix + replay_path(digits, "", shown.url)),
        ("All captures", f"{place.prefix}{_calendar(shown.url)}"),
        ("Original bytes", place.prefix + replay_path(digits, "id_", shown.url)),
    ]
    if app is not None:
        links = [
            ("Back", f"{app}/"),
            *links,
            ("Metadata", f"{app}/api/snapshot/{shown.snapshot_id}"),
            ("Timeline", f"{app}/api/snapshots/{shown.snapshot_id}/timeline"),
            ("What changed", f"{app}/api/changes/compare?toSnapshotId={shown.snapshot_id}"),
            ("Report a problem", f"{app}/report?snapshotId={shown.snapshot_id}&url={quote(shown.url[:2000], safe='')}"),
        ]
    cite = f"{shown.title or shown.url}. Captured {day_in_words(shown.captured_at)}. "
    cite += place.memento(digits, "", shown.url)
    return _bar(shown, links, extra=f"<br>Cite as: <cite>{escape(cite)}</cite>")


def _calendar(url: str) -> str:
    return replay_path("*", "", url)


def _bar(shown: ShownCapture, links: list[tuple[str, str]], extra: str = "") -> Bar:
    anchors = "".join(f'<a style="{_LINK}" href="{escape(href)}">{escape(text)}</a>' for text, href in links)
    at = shown.captured_at
    title = f"{escape(shown.title)}: " if shown.title else ""
    return Bar(
        f'<div id="holdfast-bar" role="region" aria-label="About this archived page" style="{_BOX}">'
        f'<details open="open"><summary style="{_SUMMARY}">Archived on {day_in_words(at)}, {at:%H:%M:%S} UTC</summary>'
        f'<span style="{_QUIET}">{title}{escape(shown.url)}</span><br>{anchors}'
        f'<br><span style="{_QUIET}">{DISCLAIMER}{extra}</span></details></div>'.replace("<br>", "<br />")
    )


@cache
def _source() -> str:
    """Return the program, up to its argument, without comments and indentation."""
    lines = (resources.files("holdfast.replay") / "shim.js").read_text("utf-8").splitlines()
    return "\n".join(bare for line in lines if (bare := line.strip()) and not bare.startswith("//"))


def shim_for(url: str, links: Links, origin: str, site: str) -> str:
    """Return the element to put before everything else in a page, in ASCII, as HTML and XML read it alike.

    `origin` is that of the replay host, `site` what `site_of` says of the address.
    """
    page = {
        "url": url,
        "origin": origin,
        "digits": links.digits,
        "modifier": links.modifier.value,
        "site": site,
        "pass": links.site_pass,
    }
    told = json.dumps(page).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return f"<script>//<![CDATA[\n{_source()}{told});\n//]]></script>"
