"""The watch over a stage: the order of its checks, what clears its counters, and what does not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.zimit.flags import Options
from holdfast.zimit.stage import HTTP_ERRORS, NO_PROGRESS, NO_STATISTICS, TIMEOUTS, Monitor

TIMEOUT = b"Navigation timeout of 1 ms exceeded"
HTTP = b"net::ERR_FAILED"


def _monitor(started: float = 0.0) -> Monitor:
    limits = Options(seeds=(), name="x", output_dir=Path("x"), stall_s=100.0, timeout_errors=3, http_errors=2)
    return Monitor(limits=limits, started=started)


def _stats(crawled: int, pending: int | None = 1) -> bytes:
    details = {"crawled": crawled, "total": 9} | ({} if pending is None else {"pending": pending})
    return json.dumps({"context": "crawlStatus", "message": "Crawl statistics", "details": details}).encode()


def test_silence_from_the_start_is_a_stall_and_again_after_each_signal() -> None:
    monitor = _monitor(started=50.0)

    assert monitor.check(150.0) is None
    assert monitor.check(150.1) == NO_STATISTICS
    assert monitor.check(250.0) is None
    assert monitor.check(250.2) == NO_STATISTICS


@pytest.mark.parametrize(("pending", "stalls"), [(1, True), (None, True), (0, False)])
def test_a_count_that_does_not_move_is_a_stall_unless_nothing_is_pending(pending: int | None, stalls: bool) -> None:
    monitor = _monitor()
    monitor.hear(_stats(5, pending), 10.0)
    monitor.hear(_stats(5, pending), 100.0)

    assert monitor.check(110.0) is None
    assert (monitor.check(110.1) == NO_PROGRESS) is stalls


def test_a_stall_comes_before_timeouts_and_those_before_http_errors() -> None:
    monitor = _monitor()
    for line in (TIMEOUT, TIMEOUT, TIMEOUT, HTTP, HTTP):
        monitor.hear(line, 1.0)

    assert monitor.check(200.0) == NO_STATISTICS
    assert monitor.check(201.0) is None
    for line in (HTTP, HTTP, TIMEOUT, TIMEOUT, TIMEOUT):
        monitor.hear(line, 202.0)
    assert monitor.check(203.0) == TIMEOUTS
    for line in (HTTP, HTTP):
        monitor.hear(line, 204.0)
    assert monitor.check(205.0) == HTTP_ERRORS


def test_progress_clears_the_errors() -> None:
    monitor = _monitor()
    monitor.hear(_stats(1), 1.0)
    monitor.hear(HTTP, 2.0)
    monitor.hear(_stats(1), 3.0)
    assert monitor.errors["http"] == 1

    monitor.hear(_stats(2), 4.0)

    assert monitor.errors == {"timeout": 0, "http": 0, "other": 0}


def test_a_threshold_does_not_touch_the_clock_of_progress() -> None:
    monitor = _monitor()
    monitor.hear(_stats(1), 0.0)
    for _ in range(3):
        monitor.hear(TIMEOUT, 50.0)

    assert monitor.check(90.0) == TIMEOUTS
    assert monitor.check(100.1) == NO_PROGRESS
