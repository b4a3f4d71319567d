"""Which capture answers for an address and a moment. Pure choice over a few neighbours that the index gives."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from sqlalchemy.orm import Session

from holdfast.errors import NotFound, UrlRefused
from holdfast.index.queries import Holding
from holdfast.replay.address import is_storable
from holdfast.replay.moments import earliest, latest
from holdfast.replay.queries import Sighting, around, of_key, of_page
from holdfast.urls import parse, surt

_WINDOW = 8
"""Captures that are looked at on each side: enough for a redirect, its target and a few broken ones."""

_VARIANT = re.compile(r"^https?://(?:www\d*\.)?", re.IGNORECASE)


class NotCaptured(NotFound):
    """The archive holds no capture of this address that can be shown."""

    code = "not_captured"

    def __init__(self, url: str) -> None:
        super().__init__(f"{url[:500]} is not in this archive; look for its site with: /web/*/<address>*")
        self.url = url


def candidates(session: Session, url: str, digits: str, *, within: Holding | None = None) -> list[Sighting]:
    """Return the captures that could answer, best first; NotCaptured if there is none.

    Addresses are matched as archives do (scheme, `www`, case and session ids aside), then as our normaliser does
    (tracking parameters aside). `within` leaves the captures of one execution.
    """
    if not is_storable(url):
        raise NotCaptured(url)
    low, high = earliest(digits), latest(digits)
    found = around(session, of_key(surt(url)), high, each=_WINDOW, within=within)
    ranked = rank(found, Asked(url, low, high, len(digits) == 14))
    if not ranked:
        try:
            page = parse(url)
        except UrlRefused:
            raise NotCaptured(url) from None
        found = around(session, of_page(page.hash64), high, each=_WINDOW, within=within)
        ranked = rank(found, Asked(url, low, high, len(digits) == 14))
    if not ranked:
        raise NotCaptured(url)
    return ranked


class Asked(NamedTuple):
    """An address, and the moment or period that it is wanted from."""

    url: str
    low: datetime
    high: datetime
    is_exact: bool
    """Whether all 14 digits were given."""


def rank(found: Iterable[Sighting], asked: Asked) -> list[Sighting]:
    """Return captures in the order in which they answer best.

    The same page comes before what only shares its key (`/A` and `/a`); a redirect to the page's own twin, such as from
    http to https, comes after the page, unless that very capture is asked for; what lies in the period comes before
    what is nearer to its end, from which other archives measure, too. A redirect to the very address that is asked for
    would lead in a circle and is left out.
    """
    usable = [capture for capture in found if not _is_same(capture.redirect_to, asked.url)]
    return sorted(usable, key=lambda capture: _place(capture, asked))


def _place(capture: Sighting, asked: Asked) -> tuple[bool, bool, bool, bool, float, bool]:
    in_period = asked.low <= capture.captured_at <= asked.high
    is_exact = _is_same(capture.url, asked.url)
    is_twin = capture.redirect_to is not None and _variant(capture.redirect_to) == _variant(capture.url)
    meant = asked.is_exact and in_period and is_exact
    return (
        _variant(capture.url) != _variant(asked.url),
        (is_twin or capture.has_lost_body) and not meant,
        not in_period,
        in_period and not is_exact,
        abs((capture.captured_at - asked.high).total_seconds()),
        not is_exact,
    )


def _variant(url: str) -> str:
    """Return an address without what every archive ignores: scheme, www, fragment, a slash alone."""
    return _VARIANT.sub("", url.partition("#")[0]).removesuffix("/")


def _is_same(url: str | None, other: str) -> bool:
    return url is not None and _whole(url) == _whole(other)


def _whole(url: str) -> str:
    """Return an address without fragment, with the slash that a bare host stands for."""
    bare = url.partition("#")[0]
    return bare if "/" in bare.partition("://")[2] else f"{bare}/"
