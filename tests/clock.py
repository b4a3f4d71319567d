"""A clock that only a test can move."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class FakeClock:
    """Wall and monotonic time that stand still until a test moves them; fulfils `holdfast.clock.Clock`."""

    def __init__(self, at: datetime = datetime(2026, 9, 1, 12, 0, tzinfo=UTC)) -> None:
        self._now, self._monotonic = at, 1_000.0

    def now(self) -> datetime:
        """Return the wall time, aware and in UTC."""
        return self._now

    def monotonic(self) -> float:
        """Return seconds that never run backwards."""
        return self._monotonic

    def advance(self, seconds: float) -> None:
        """Let time pass, on both clocks."""
        if seconds < 0:
            raise ValueError("time does not run backwards; to set the wall clock back, use shift_wall")
        self._now += timedelta(seconds=seconds)
        self._monotonic += seconds

    def shift_wall(self, seconds: float) -> None:
        """Step the wall clock either way, as an administrator or a time server does; monotonic time does not move."""
        self._now += timedelta(seconds=seconds)


class SlowClock(FakeClock):
    """A clock by which everything takes long: a second passes with every look at it."""

    def monotonic(self) -> float:
        """Return a second more than the last time."""
        self.advance(1)
        return super().monotonic()
