"""How often a job runs, as people write it: a number and a unit. Refuses what is no positive whole number of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from holdfast.errors import Invalid

UNITS: Final = {"minutes": timedelta(minutes=1), "hours": timedelta(hours=1), "days": timedelta(days=1)}
LONGEST: Final = timedelta(days=3660)


class IntervalRefused(Invalid):
    """This is no interval at which a job can run."""

    code = "interval_refused"

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field


def interval_of(number: int | None, unit: str = "minutes") -> timedelta | None:
    """Return the time between two runs, None for a job that runs once; IntervalRefused names the field at fault."""
    if unit not in UNITS:
        raise IntervalRefused("interval_type", f"{unit[:40]!r} is none of {', '.join(UNITS)}")
    if number is None:
        return None
    if number <= 0:
        raise IntervalRefused("interval_minutes", "it must be greater than 0; leave it out for a job that runs once")
    if number > LONGEST // UNITS[unit]:
        raise IntervalRefused("interval_minutes", "ten years at most")
    return number * UNITS[unit]
