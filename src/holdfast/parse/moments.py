"""Parses dates in the formats of pages, feeds and sitemaps."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from typing import Final

_MAX_CHARS: Final = 64
_YEARS: Final = range(1990, 2101)
_W3C: Final = re.compile(
    r"([0-9]{4})(?:-([0-9]{1,2})(?:-([0-9]{1,2})"
    r"(?:[Tt ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]{1,9}))?)?\s*(Z|z|[+-][0-9]{2}:?[0-9]{2})?)?)?)?"
)
_SLASHES: Final = re.compile(r"([0-9]{4})/([0-9]{1,2})/([0-9]{1,2})")


def read_moment(text: str | None, *, of_item: bool = False) -> datetime | None:
    """Return the moment that a text states, in UTC; None if it is not in a standard form, or not in 1990 to 2100.

    ISO 8601, `2024/03/01` as bibliographies write it, or a mail's date. Without a zone it is UTC; a day starts at
    midnight. `of_item` (an item of a feed or sitemap) accepts a year or a month alone, and any year: an item of 1801 is
    old, not undated.
    """
    text = (text or "").strip()
    if not text or len(text) > _MAX_CHARS:
        return None
    found = _W3C.fullmatch(text)
    if found is not None and not (of_item or found[3]):
        return None
    try:
        if found is not None:
            moment = _w3c(found)
        elif slashed := _SLASHES.fullmatch(text):
            moment = datetime(int(slashed[1]), int(slashed[2]), int(slashed[3]), tzinfo=UTC)
        elif text[:4].isdigit():
            return None
        else:
            moment = parsedate_to_datetime(text)
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError, TypeError, IndexError):
        return None
    return moment if of_item or moment.year in _YEARS else None


def _w3c(found: re.Match[str]) -> datetime:
    year, month, day, hour, minute, second = (int(part) if part else None for part in found.groups()[:6])
    fraction, zone = found[7], found[8]
    micros = int(fraction[:6].ljust(6, "0")) if fraction else 0
    # `datetime` cannot represent a leap second.
    leap = second == 60
    moment = datetime(year or 0, month or 1, day or 1, hour or 0, minute or 0, 59 if leap else second or 0, micros)
    return moment.replace(tzinfo=_zone(zone))


def _zone(text: str | None) -> timezone:
    if text is None or text in "Zz":
        return UTC
    minutes = int(text[1:3]) * 60 + int(text[-2:])
    return timezone(timedelta(minutes=minutes if text[0] == "+" else -minutes))
