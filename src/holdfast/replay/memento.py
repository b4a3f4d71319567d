"""Memento (RFC 7089): the links of a capture, a TimeGate's choice, the pages of a TimeMap."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy.orm import Session

from holdfast.clock import digits14, from_micros, to_micros
from holdfast.replay import finding
from holdfast.replay.address import BadReplayAddress, http_date, safe
from holdfast.replay.finding import CaptureNeighbours, FoundCapture, NotCaptured, candidates
from holdfast.replay.origins import ReplayOrigins
from holdfast.urls import surt

LINK_FORMAT = "application/link-format"
TYPES = {"link": LINK_FORMAT, "json": "application/json", "cdxj": "application/cdxj+ors"}
"""The formats of a TimeMap and their media types."""


def memento_headers(
    url: str, captured_at: datetime, origins: ReplayOrigins, around: CaptureNeighbours | None
) -> list[tuple[str, str]]:
    """Return Memento-Datetime and Link for a capture; first, previous, next and last if they were looked up."""
    links = [*_frame(url, origins), *(_neighbour_links(captured_at, origins, around) if around else ())]
    return [("Memento-Datetime", http_date(captured_at)), ("Link", ", ".join(links))]


def gate_headers(
    url: str, origins: ReplayOrigins, ends: tuple[FoundCapture, FoundCapture] | None
) -> list[tuple[str, str]]:
    """Return Vary and Link for a TimeGate's response, which is not a memento itself."""
    links = _frame(url, origins)
    if ends is not None:
        links += [_memento(ends[0], "first memento", origins), _memento(ends[1], "last memento", origins)]
    return [("Vary", "accept-datetime"), ("Link", ", ".join(links))]


def _frame(url: str, origins: ReplayOrigins) -> list[str]:
    return [
        f'<{safe(url)}>; rel="original"',
        f'<{origins.gate(url)}>; rel="timegate"',
        f'<{origins.map(url)}>; rel="timemap"; type="{LINK_FORMAT}"',
    ]


def _neighbour_links(captured_at: datetime, origins: ReplayOrigins, around: CaptureNeighbours) -> list[str]:
    """Return each neighbour once with all its relations: a lone capture is both first and last."""
    # One link per capture: clients count a second link with the same target as another memento.
    words: dict[int, tuple[FoundCapture, list[str]]] = {}
    for word, found in zip(("first", "prev", "next", "last"), around, strict=True):
        if found is not None:
            words.setdefault(found.id, (found, []))[1].append(word)
    return [_memento(found, " ".join((*names, "memento")), origins) for found, names in words.values()]


def _memento(found: FoundCapture, rel: str, origins: ReplayOrigins) -> str:
    address = origins.memento(digits14(found.captured_at), "", found.url)
    return f'<{address}>; rel="{rel}"; datetime="{http_date(found.captured_at)}"'


class TimeMap(NamedTuple):
    url: str
    form: str
    page: str
    """The name of this page; empty for the first."""
    following: str | None
    """The name of the next page."""
    ends: tuple[FoundCapture, FoundCapture]
    captures: Sequence[FoundCapture]


def render(found: TimeMap, origins: ReplayOrigins) -> Iterator[str]:
    renderers = {"link": _as_links, "json": _as_json, "cdxj": _as_cdxj}
    return renderers[found.form](found, origins)


def _rels(found: TimeMap) -> Iterator[tuple[FoundCapture, str]]:
    first, last = found.ends
    for capture in found.captures:
        words = [word for word, end in (("first", first), ("last", last)) if end.id == capture.id]
        yield capture, " ".join((*words, "memento"))


def _as_links(found: TimeMap, origins: ReplayOrigins) -> Iterator[str]:
    own = origins.map(found.url, "link", found.page)
    yield f'<{safe(found.url)}>; rel="original",\n'
    if found.captures:
        since, until = http_date(found.captures[0].captured_at), http_date(found.captures[-1].captured_at)
        yield f'<{own}>; rel="self"; type="{LINK_FORMAT}"; from="{since}"; until="{until}",\n'
    yield f'<{origins.gate(found.url)}>; rel="timegate"'
    if found.following is not None:
        since, until = http_date(found.captures[-1].captured_at), http_date(found.ends[1].captured_at)
        more = origins.map(found.url, "link", found.following)
        yield f',\n<{more}>; rel="timemap"; type="{LINK_FORMAT}"; from="{since}"; until="{until}"'
    for capture, rel in _rels(found):
        yield f",\n{_memento(capture, rel, origins)}"
    yield "\n"


def _as_json(found: TimeMap, origins: ReplayOrigins) -> Iterator[str]:
    def entry(capture: FoundCapture) -> dict[str, str]:
        at = capture.captured_at
        return {"datetime": f"{at:%Y-%m-%dT%H:%M:%SZ}", "uri": origins.memento(digits14(at), "", capture.url)}

    first, last = found.ends
    whole: dict[str, object] = {
        "original_uri": found.url,
        "self": origins.map(found.url, "json", found.page),
        "timegate_uri": origins.gate(found.url),
        "timemap_uri": {f"{form}_format": origins.map(found.url, form) for form in TYPES},
        "mementos": {"first": entry(first), "last": entry(last), "list": [*map(entry, found.captures)]},
    }
    if found.following is not None:
        whole["next"] = origins.map(found.url, "json", found.following)
    yield json.dumps(whole, indent=1) + "\n"


def _as_cdxj(found: TimeMap, origins: ReplayOrigins) -> Iterator[str]:
    """Yield CDXJ: comments about the whole first, then one line per capture."""
    for name, value in _cdxj_head(found, origins):
        yield f"!meta {json.dumps({name: value})}\n"
    for capture, rel in _rels(found):
        digits = digits14(capture.captured_at)
        fields = {
            "url": capture.url,
            "rel": rel,
            "datetime": http_date(capture.captured_at),
            "uri": origins.memento(digits, "", capture.url),
            "mime": capture.media_type or "unk",
            "status": "-" if capture.status is None else str(capture.status),
        }
        yield f"{surt(capture.url)} {digits} {json.dumps(fields)}\n"


def _cdxj_head(found: TimeMap, origins: ReplayOrigins) -> Iterable[tuple[str, str]]:
    yield "original_uri", found.url
    yield "self", origins.map(found.url, "cdxj", found.page)
    yield "timegate_uri", origins.gate(found.url)
    if found.following is not None:
        yield "next", origins.map(found.url, "cdxj", found.following)


MAP_PAGE = 5_000
"""Captures on one page of a TimeMap."""
_PAGE = re.compile(r"([0-9]{1,18})\.([0-9]{1,19})")
_MAP = re.compile(r"([a-z]{1,8})/(?:([0-9]{1,18}\.[0-9]{1,19})/)?(.+)", re.DOTALL)


def gate(session: Session, url: str, wanted: datetime | None) -> tuple[FoundCapture, tuple[FoundCapture, FoundCapture]]:
    """Return the capture closest to `wanted` (the newest if it is None), with the first and last. Raise
    NotCaptured.
    """
    found = finding.ends(session, surt(url))
    if found is None:
        raise NotCaptured(url)
    if wanted is None:
        return candidates(session, url, digits14(found[1].captured_at))[0], found
    # RFC 7089, section 4.5.3: a time outside all captures gets the nearest end, not an error.
    moment = min(max(wanted, found[0].captured_at), found[1].captured_at)
    return candidates(session, url, digits14(moment))[0], found


def read_map_path(path: str) -> tuple[str, str, str]:
    """Return format, page and address from a path after `/web/timemap/`; raise BadReplayAddress if invalid."""
    match = _MAP.fullmatch(path)
    if match is None or match[1] not in TYPES:
        raise BadReplayAddress("a TimeMap is at /web/timemap/link/<address>, or json or cdxj in place of link")
    return match[1], match[2] or "", match[3]


def time_map(session: Session, url: str, form: str, page: str, *, size: int = MAP_PAGE) -> TimeMap:
    """Return a page of an address's captures; raise NotCaptured without captures, BadReplayAddress beyond them."""
    key = surt(url)
    found = finding.ends(session, key)
    if found is None:
        raise NotCaptured(url)
    after = _page_start(page) if page else None
    # Read one more than a page holds, to know whether there is another page.
    captures = finding.captures_between(session, key, after=after, until=None, limit=size + 1)
    following = None
    if len(captures) > size:
        captures = captures[:size]
        following = f"{to_micros(captures[-1].captured_at)}.{captures[-1].id}"
    return TimeMap(url, form, page, following, found, captures)


def _page_start(page: str) -> tuple[datetime, int]:
    match = _PAGE.fullmatch(page)
    try:
        # A page name's numbers come from a URL, and may be larger than any time or id.
        if match is not None and int(match[2]) < 1 << 63:
            return from_micros(int(match[1])), int(match[2])
    except (ValueError, OverflowError, OSError):
        pass
    raise BadReplayAddress("there is no such page of a TimeMap")
