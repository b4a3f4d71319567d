"""How late the loop is."""

from __future__ import annotations

import asyncio
import time

from holdfast.crawl.progress import LagMeter


def test_percentiles_are_true_to_a_quarter() -> None:
    meter = LagMeter()
    for _ in range(990):
        meter.note(0.001)
    for _ in range(10):
        meter.note(0.040)

    median, p99, worst = meter.figures()
    assert 1.0 <= median <= 1.5
    assert p99 <= 2.0
    assert worst == 40.0
    assert 40.0 * 0.99 <= meter.percentile(0.999) <= 50.0


def test_a_stall_counts_for_all_the_looks_that_it_made_us_miss() -> None:
    meter = LagMeter()
    for _ in range(100):
        meter.note(0.0)
    meter.note(1.0)

    assert meter.percentile(0.99) > 500.0, "a second in six is not one look in a hundred"


def test_it_sees_a_loop_that_is_blocked() -> None:
    meter = LagMeter()

    async def block() -> None:
        watch = asyncio.create_task(meter.watch())
        await asyncio.sleep(0.01)
        time.sleep(0.2)  # noqa: ASYNC251 - blocking the loop is the point
        await asyncio.sleep(0.06)
        watch.cancel()

    asyncio.run(block())
    assert meter.worst_ms >= 100.0


def test_without_a_look_there_is_no_lag() -> None:
    assert LagMeter().figures() == [0.0, 0.0, 0.0]
