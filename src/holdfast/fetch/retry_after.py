"""How long a server asks us to stay away (the Retry-After header, RFC 9110 section 10.2.3); nonsense is no wish."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

MAX_WAIT_S = 86_400.0
"""Whoever asks for more than a day is asked again tomorrow."""

BUSY = (429, 503)
"""What a server answers that has too much to do."""

# Fractions and a sign are no delta-seconds, but what they mean is plain.
_SECONDS = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?")
_DATE = re.compile(r"[A-Za-z]{3,9},? [0-9A-Za-z :+-]{8,40}")


class RetryAfter(NamedTuple):
    """A wait between nothing and a day, and whether the server asked for another one."""

    seconds: float
    clamped: bool


def parse_retry_after(value: str | None, now: datetime) -> float | None:
    """Return the seconds to wait, from 0 to 24 hours; None without the header or if it means nothing."""
    wish = read_retry_after(value, now)
    return None if wish is None else wish.seconds


def read_retry_after(value: str | None, now: datetime) -> RetryAfter | None:
    """Return the wait together with whether it was clamped, for the log; None as `parse_retry_after`."""
    if value is None:
        return None
    value = value.strip(" \t")
    if _SECONDS.fullmatch(value):
        # Three hundred digits are beyond the clamp already, and a megabyte of them is not to be converted.
        wished = float(value[:300])
    elif _DATE.fullmatch(value):
        moment = _read_date(value)
        if moment is None:
            return None
        wished = (moment - now).total_seconds()
    else:
        return None
    seconds = min(max(wished, 0.0), MAX_WAIT_S)
    return RetryAfter(seconds, seconds != wished)


def asked_rest(status: int, value: str | None, now: datetime, *, max_delay_s: float) -> RetryAfter | None:
    """Return how long an answer asks us to stay away; None if it does not.

    A server that says it is busy (429, 503) gets what it asks for, up to a day; the wish of another answer is capped.
    """
    wish = read_retry_after(value, now) if status >= 300 else None
    if wish is None or status in BUSY:
        return wish
    return RetryAfter(min(wish.seconds, max_delay_s), wish.clamped or wish.seconds > max_delay_s)


def _read_date(value: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(value)
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
