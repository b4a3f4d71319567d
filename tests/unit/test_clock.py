"""The clock that leases and delays are measured with."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

import pytest

from holdfast.clock import SystemClock
from holdfast.crawl.politeness import Pace
from holdfast.errors import LeaseLost


@dataclass
class Kernel:
    """The clocks of a machine that can be suspended: only one of them runs on meanwhile."""

    awake_s: float = 5_000.0
    asleep_s: float = 0.0

    def gettime(self, which: int) -> float:
        return self.awake_s + (self.asleep_s if which == time.CLOCK_BOOTTIME else 0.0)


def test_time_passes_while_the_machine_is_suspended() -> None:
    kernel = Kernel()
    clock = SystemClock(kernel.gettime)
    before = clock.monotonic()

    kernel.asleep_s += 3_600.0

    assert clock.monotonic() - before == 3_600.0


def test_no_request_starts_after_a_suspend_that_outlasted_the_lease() -> None:
    kernel = Kernel()
    clock = SystemClock(kernel.gettime)
    pace = Pace(clock, first_at=0.0, lease_until=clock.monotonic() + 54.0)

    async def ask() -> None:
        async with pace.turn():
            pass

    asyncio.run(ask())
    kernel.asleep_s += 60.0
    with pytest.raises(LeaseLost):
        asyncio.run(ask())


def test_the_clock_never_runs_backwards_and_is_shared_by_all_processes_of_a_machine() -> None:
    readings = [SystemClock().monotonic() for _ in range(1000)]

    assert readings == sorted(readings)
    assert readings[0] <= time.clock_gettime(time.CLOCK_BOOTTIME)
