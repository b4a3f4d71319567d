"""Moments as archives write them: 1 to 14 digits, and the dates of HTTP. It refuses what is neither."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import UTC, datetime

from holdfast.errors import Invalid

_DIGITS = re.compile(r"[0-9]{1,14}")
_HTTP_DATE = re.compile(
    r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), ([0-9]{2}) (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) ([0-9]{4})"
    r" ([0-9]{2}):([0-9]{2}):([0-9]{2}) GMT"
)
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class BadTimestamp(Invalid):
    """This is no timestamp of 1 to 14 digits."""

    code = "bad_timestamp"

    def __init__(self, text: str) -> None:
        super().__init__(f"{text[:40]!r} is no timestamp; write 1 to 14 digits, as in 2026 or 20260131120000")


class BadAcceptDatetime(Invalid):
    """The Accept-Datetime header holds no date that RFC 7089 allows."""

    code = "bad_accept_datetime"

    def __init__(self, text: str) -> None:
        super().__init__(f"Accept-Datetime is {text[:60]!r}; write it as in: Thu, 01 Jan 2026 00:00:00 GMT")


def earliest(digits: str) -> datetime:
    """Return the first moment that these 1 to 14 digits can mean; BadTimestamp if they are none."""
    return _padded(digits, last=False)


def latest(digits: str) -> datetime:
    """Return the last moment that these 1 to 14 digits can mean, microseconds included; BadTimestamp if none."""
    return _padded(digits, last=True)


def _padded(digits: str, *, last: bool) -> datetime:
    """Return a moment with what is missing filled in. A month 13 or a day 99 means the nearest there is."""
    if not _DIGITS.fullmatch(digits):
        raise BadTimestamp(digits)
    filled = digits + ("99999999999999" if last else "00000000000000")[len(digits) :]
    year = _within(int(filled[:4]), 1, 9999)
    month = _within(int(filled[4:6]), 1, 12)
    day = _within(int(filled[6:8]), 1, monthrange(year, month)[1])
    hour, minute, second = (_within(int(filled[at : at + 2]), 0, top) for at, top in ((8, 23), (10, 59), (12, 59)))
    return datetime(year, month, day, hour, minute, second, 999_999 if last else 0, tzinfo=UTC)


def _within(number: int, low: int, high: int) -> int:
    return min(max(number, low), high)


def parse_http_date(text: str) -> datetime:
    """Return the moment of an Accept-Datetime; BadAcceptDatetime if it is none. The year 0 counts as the year 1."""
    match = _HTTP_DATE.fullmatch(text.strip())
    if match is None:
        raise BadAcceptDatetime(text)
    day, month, year, hour, minute, second = match.groups()
    try:
        return datetime(
            max(int(year), 1), _MONTHS.index(month) + 1, int(day), int(hour), int(minute), min(int(second), 59),
            tzinfo=UTC,
        )  # fmt: skip
    except ValueError as exc:
        raise BadAcceptDatetime(text) from exc


def http_date(moment: datetime) -> str:
    """Return a moment as HTTP headers write it, whatever the machine's locale."""
    at = moment.astimezone(UTC)
    return (
        f"{_DAYS[at.weekday()]}, {at.day:02} {_MONTHS[at.month - 1]} {at.year:04}"
        f" {at.hour:02}:{at.minute:02}:{at.second:02} GMT"
    )


def day_in_words(moment: datetime) -> str:
    """Return the day of a moment as people read it, whatever the machine's locale: 1 March 2024."""
    at = moment.astimezone(UTC)
    return f"{at.day} {MONTHS[at.month - 1]} {at.year:04}"


def timestamp(moment: datetime) -> str:
    """Return the 14 digits of a moment, four of them for the year even before 1000."""
    at = moment.astimezone(UTC)
    return f"{at.year:04}{at.month:02}{at.day:02}{at.hour:02}{at.minute:02}{at.second:02}"
