"""Dates and times as people and assistants write them: ISO dates, or the digits of replay URLs. Never Unix time."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from holdfast.errors import Invalid
from holdfast.replay.address import earliest, latest

_DIGITS = re.compile(r"[0-9]{4}|[0-9]{6}|[0-9]{8}|[0-9]{10}|[0-9]{12}|[0-9]{14}")
_ISO_DAY = re.compile(r"[0-9]{4}(?:-[0-9]{2}(?:-[0-9]{2})?)?")
_ISO_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?(?:Z|[+-].*)?")
_HELP = "write a date such as 2026, 2026-03, 2026-03-31 or 2026-03-31T12:00:00Z, or 14 digits"


class BadMoment(Invalid):
    """The text is not a valid date or time."""

    code = "bad_moment"

    def __init__(self, text: str) -> None:
        super().__init__(f"{text[:40]!r} is no moment; {_HELP}")


Period = tuple[datetime, datetime]
"""The first and the last moment of a date; both are equal for a time to the microsecond."""


def read_period(text: str) -> Period:
    """Return the period of a date: `2026` is a year, `2026-03` a month; raise BadMoment if it is invalid.

    Digits are read as in replay URLs; seconds since 1970 are rejected rather than guessed.
    """
    written = text.strip()
    if _ISO_TIME.fullmatch(written):
        return _instant(written, text)
    digits = written.replace("-", "") if _ISO_DAY.fullmatch(written) else written
    if not _DIGITS.fullmatch(digits) or not _is_date(digits):
        raise BadMoment(text)
    return earliest(digits), latest(digits)


def _instant(written: str, text: str) -> Period:
    try:
        moment = datetime.fromisoformat(written.replace("Z", "+00:00"))
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise BadMoment(text) from None
    # Without seconds it is the whole minute.
    end = moment.replace(second=59, microsecond=999_999) if written.count(":") == 1 else moment
    return moment, end


def _is_date(digits: str) -> bool:
    """Return whether the digits are a valid date; `1700000000` would be month 00 of the year 1700."""
    filled = digits + "00000101000000"[len(digits) :]
    try:
        return datetime.strptime(filled, "%Y%m%d%H%M%S").replace(tzinfo=UTC).year >= 1000
    except ValueError:
        return False
