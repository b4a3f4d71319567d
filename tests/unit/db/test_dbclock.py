"""The clock that decides who holds a lease."""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import timedelta

from holdfast.clock import Clock, to_micros
from holdfast.db.raw import DatabaseClock, Transaction
from holdfast.errors import Unavailable
from tests.clock import FakeClock


class ClockOnly:
    """A raw connection of which only the clock is asked; each answer takes a while."""

    dialect = "postgresql"
    generation = 1

    def __init__(self, ours: FakeClock, *, ahead_s: float, trip_s: float = 0.0) -> None:
        self._ours, self.ahead_s, self._trip_s = ours, ahead_s, trip_s

    def now_micros(self, machine: Clock) -> int:
        self._ours.advance(self._trip_s / 2)
        at = to_micros(self._ours.now() + timedelta(seconds=self.ahead_s))
        self._ours.advance(self._trip_s / 2)
        return at

    def write(self) -> AbstractContextManager[Transaction]:
        raise Unavailable("only the clock is here")

    read = write

    def close(self) -> None:
        return None


def test_it_tells_the_servers_time(clock: FakeClock) -> None:
    ours = DatabaseClock(ClockOnly(clock, ahead_s=7200.0, trip_s=0.5), clock)

    assert ours.now() == clock.now() + timedelta(hours=2)
    clock.advance(10)
    assert ours.now() == clock.now() + timedelta(hours=2)
    assert ours.monotonic() == clock.monotonic()


def test_a_jump_of_our_wall_clock_moves_nothing(clock: FakeClock) -> None:
    ours = DatabaseClock(ClockOnly(clock, ahead_s=0.0), clock)
    before = ours.now()

    clock.shift_wall(-7200)
    clock.advance(1)

    assert ours.now() == before + timedelta(seconds=1)


def test_reading_it_again_mends_a_drift(clock: FakeClock) -> None:
    server = ClockOnly(clock, ahead_s=0.0)
    ours = DatabaseClock(server, clock)
    server.ahead_s = 3.0

    assert ours.synchronise() == 3.0
    assert ours.now() == clock.now() + timedelta(seconds=3)
    assert ours.synchronise() == 0.0


class FrozenOnce(ClockOnly):
    """Its first answer lies in the socket for a while: the process that asked was stopped."""

    def __init__(self, ours: FakeClock, *, frozen_s: float) -> None:
        super().__init__(ours, ahead_s=0.0)
        self._clock, self._frozen_s = ours, frozen_s

    def now_micros(self, machine: Clock) -> int:
        micros = super().now_micros(machine)
        self._clock.advance(self._frozen_s)
        self._frozen_s = 0.0
        return micros


def test_a_process_that_was_frozen_while_it_read_the_clock_reads_it_again(clock: FakeClock) -> None:
    ours = DatabaseClock(FrozenOnce(clock, frozen_s=4.0), clock)

    assert ours.now() == clock.now()
