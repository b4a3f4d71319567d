"""The only source of now: wall time for history, monotonic time for delays and deadlines."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What the house asks for the time. Tests pass one that they move by hand."""

    def now(self) -> datetime:
        """Return the wall time, aware and in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never run backwards."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_micros(moment: datetime) -> int:
    """Return a moment as the database keeps it: whole microseconds since 1970, UTC."""
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def from_micros(micros: int) -> datetime:
    """Return the aware UTC moment of a stored number of microseconds."""
    return datetime.fromtimestamp(micros // 1_000_000, UTC).replace(microsecond=micros % 1_000_000)


def digits14(moment: datetime) -> str:
    """Return the 14 digits that replay addresses and file names use."""
    return moment.astimezone(UTC).strftime("%Y%m%d%H%M%S")
