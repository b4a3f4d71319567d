"""The dates that feeds and sitemaps write: W3C date and time (RFC 3339, or only a day), and e-mail's form (RFC 822)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from email.utils import parsedate_to_datetime

_MAX_CHARS = 64
_W3C = re.compile(
    r"([0-9]{4})(?:-([0-9]{1,2})(?:-([0-9]{1,2})"
    r"(?:[Tt ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]{1,9}))?)?\s*(Z|z|[+-][0-9]{2}:?[0-9]{2})?)?)?)?"
)


def read_moment(text: str) -> datetime | None:
    """Return the moment that a text tells, in UTC; a day begins at midnight. None if it tells none that there is."""
    text = text.strip()
    if not text or len(text) > _MAX_CHARS:
        return None
    found = _W3C.fullmatch(text)
    try:
        moment = parsedate_to_datetime(text) if found is None else _w3c(found)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError, TypeError, IndexError):
        return None


def _w3c(found: re.Match[str]) -> datetime:
    year, month, day, hour, minute, second = (int(part) if part else None for part in found.groups()[:6])
    fraction, zone = found[7], found[8]
    micros = int(fraction[:6].ljust(6, "0")) if fraction else 0
    leap = second == 60  # a leap second has no place in a datetime
    moment = datetime(year or 0, month or 1, day or 1, hour or 0, minute or 0, 59 if leap else second or 0, micros)
    return moment.replace(tzinfo=_zone(zone))


def _zone(text: str | None) -> timezone:
    if text is None or text in "Zz":
        return UTC
    minutes = int(text[1:3]) * 60 + int(text[-2:])
    return timezone(timedelta(minutes=minutes if text[0] == "+" else -minutes))
