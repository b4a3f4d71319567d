"""The running totals of one process."""

from __future__ import annotations

from holdfast.crawl.progress import CrawlProgress
from tests.clock import FakeClock


def test_the_rate_is_that_of_the_last_ten_seconds() -> None:
    clock = FakeClock()
    progress = CrawlProgress(clock)
    assert progress.counts()["pages_s"] == 0.0
    for _ in range(20):
        clock.advance(1.0)
        progress.pages += 3
        last = progress.counts()["pages_s"]
    assert last == 3.0
    for _ in range(10):
        clock.advance(1.0)
        last = progress.counts()["pages_s"]
    assert last == 0.0
