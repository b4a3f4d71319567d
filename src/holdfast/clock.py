"""The only source of the current time: wall time for history, monotonic time for delays and deadlines."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Final, Protocol


class Clock(Protocol):
    """The clock that all code uses. Tests pass one that they move by hand."""

    def now(self) -> datetime:
        """Return the wall time, aware and in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never go backwards, and continue while the machine is suspended."""
        ...


# Linux stops CLOCK_MONOTONIC in suspend. A laptop that wakes up after an hour would then hold leases that others have
# taken over long ago, and two processes would ask one domain.
_RUNS_ON_IN_SUSPEND: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SystemClock:
    def __init__(self, read: Callable[[int], float] = time.clock_gettime) -> None:
        """`read` reads a clock of the kernel; a test passes one that can be suspended."""
        self._read = read

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return self._read(_RUNS_ON_IN_SUSPEND)


@cache
def boot_id() -> str | None:
    """Return the ID of this boot of the kernel; None if the system has none. Containers of one machine share it."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()[:36] or None
    except OSError:
        return None


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_micros(moment: datetime) -> int:
    """Return a time as the database stores it: whole microseconds since 1970, UTC."""
    # In whole numbers: a float of seconds loses microseconds.
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def from_micros(micros: int) -> datetime:
    """Return the aware UTC time of a stored number of microseconds."""
    # Divided as whole numbers, for the same reason.
    return datetime.fromtimestamp(micros // 1_000_000, UTC).replace(microsecond=micros % 1_000_000)


def moment_or_none(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)


def digits14(moment: datetime) -> str:
    """Format a time as the 14 digits used in replay URLs, CDX lines and file names."""
    at = moment.astimezone(UTC)
    # Not strftime: glibc writes the years before 1000 without their leading zeros.
    return f"{at.year:04}{at.month:02}{at.day:02}{at.hour:02}{at.minute:02}{at.second:02}"
