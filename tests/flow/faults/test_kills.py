"""F01, F02: processes are killed at random moments. Nothing is lost, little is asked twice, nobody too soon."""

from __future__ import annotations

import random

import pytest

from tests.flow.crawler import Crawler
from tests.flow.faults.bed import Killer, extra, lost, seeds, settled_twice
from tests.site import Site, judge

_LONG_S = 0.4
"""The delay of a long crawl: 40 hosts are asked 100 times a second, so that it outlives 25 kills and their restarts."""


def _survives(crawler: Crawler, *, workers: int, kills: int, seed: int, pages: int = 12, delay_s: float = 0.1) -> None:
    with Site.plain(hosts=40, pages=pages) as site:
        process = crawler.start(*seeds(site), "--delay", str(delay_s), "--workers", str(workers))
        struck = Killer(crawler, site, random.Random(seed)).strike(process, kills)
        result = crawler.finish(process, timeout_s=200)
        log = site.settled()
        missing, twice = lost(crawler, site), extra(site)
    told = f"seed {seed}: {struck} kills, {twice} pages asked again, {result}"
    print(told)

    assert struck == kills, told
    assert missing == [], told
    assert twice <= struck * 40 // workers * 2, told  # what a process has in flight: a page for each of its domains
    assert settled_twice(crawler) == 0, told
    assert judge(log, delay_s=delay_s) == [], told
    assert result["state"] == "completed", told
    assert crawler.faults() == [], told


def test_ten_kills_lose_nothing_on_sqlite(crawler: Crawler) -> None:
    _survives(crawler, workers=2, kills=10, seed=11)


@pytest.mark.postgres
def test_four_kills_lose_nothing_on_postgresql(crawler: Crawler, postgres_url: str) -> None:
    crawler.database_url = postgres_url

    _survives(crawler, workers=3, kills=4, seed=12)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(100, 105))
def test_twenty_five_kills_lose_nothing_on_sqlite(crawler: Crawler, seed: int) -> None:
    _survives(crawler, workers=2, kills=25, seed=seed, pages=38, delay_s=_LONG_S)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(200, 203))
def test_twenty_five_kills_lose_nothing_on_postgresql(crawler: Crawler, postgres_url: str, seed: int) -> None:
    crawler.database_url = postgres_url

    _survives(crawler, workers=3, kills=25, seed=seed, pages=38, delay_s=_LONG_S)
