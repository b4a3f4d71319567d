"""Which capture answers for an address and a moment. Pure choice over a few neighbours that the index gives."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from sqlalchemy.orm import Session

from holdfast.errors import NotFound
from holdfast.index.keys import identify
from holdfast.index.queries import Holding
from holdfast.replay.address import is_storable
from holdfast.replay.moments import earliest, latest
from holdfast.replay.queries import Sighting, around, of_key, of_page

_WINDOW = 8
"""Captures that are looked at on each side: enough for a redirect, its target and a few broken ones."""

_VARIANT = re.compile(r"^https?://(?:www\d{0,8}\.)?", re.IGNORECASE)


class NotCaptured(NotFound):
    """The archive holds no capture of this address that can be shown."""

    code = "not_captured"

    def __init__(self, url: str) -> None:
        super().__init__(f"{url[:500]} is not in this archive; look for its site with: /web/*/<address>*")
        self.url = url


def candidates(
    session: Session, url: str, digits: str, *, within: Holding | None = None, sent: str = ""
) -> list[Sighting]:
    """Return the captures that could answer, best first; NotCaptured if there is none.

    Addresses are matched as archives do (scheme, `www`, case and session ids aside), then as our normaliser does
    (tracking parameters aside). `within` leaves the captures of one execution. `sent` is what a request other than GET
    carries, as `index.postquery` spells it: only captures of the same request answer it.
    """
    if not (is_storable(url) and is_storable(sent)):
        raise NotCaptured(url)
    low, high = earliest(digits), latest(digits)
    identity = identify(url, sent)
    asked = Asked(url, low, high, len(digits) == 14)
    for which in (of_key(identity.url_key), of_page(identity.url_hash)):
        if ranked := rank(around(session, which, high, each=_WINDOW, within=within), asked):
            return ranked
    raise NotCaptured(url)


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


def _place(capture: Sighting, asked: Asked) -> tuple[bool | int | float, ...]:
    in_period = asked.low <= capture.captured_at <= asked.high
    is_exact = _is_same(capture.url, asked.url)
    is_twin = capture.redirect_to is not None and _variant(capture.redirect_to) == _variant(capture.url)
    meant = asked.is_exact and in_period and is_exact
    distance = abs((capture.captured_at - asked.high).total_seconds())
    return (
        _variant(capture.url) != _variant(asked.url),
        capture.has_lost_body,
        is_twin and not meant,
        not in_period,
        in_period and not is_exact,
        # An address names a second: of two captures in one, the whole one comes before the one that broke off.
        int(distance) if asked.is_exact else distance,
        capture.truncated is not None,
        distance,
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
