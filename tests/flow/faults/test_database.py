"""A PostgreSQL server that is killed, or that throws everybody out again and again."""

from __future__ import annotations

import time
from urllib.parse import urlsplit

import pytest

from tests import patience
from tests.flow.crawler import Crawler
from tests.flow.faults.bed import extra, grown, lost, seeds, settled, settled_twice, until
from tests.flow.faults.proxy import Proxy
from tests.postgres import Postgres
from tests.site import Site, judge

pytestmark = [pytest.mark.timeout(300), pytest.mark.postgres]
_AWAY = ("crawl.settle_later", "crawl.renewal_failed", "crawl.database_unavailable")
"""What a crawl says that misses its database."""


def _throw_out(crawler: Crawler, postgres: Postgres, postgres_url: str, *, times: int, pages: int) -> None:
    """End every connection again and again while a crawl runs."""
    crawler.database_url = postgres_url
    name = urlsplit(postgres_url).path.removeprefix("/")
    with Site.plain(hosts=12, pages=pages) as site:
        process = crawler.start(*seeds(site), "--delay", "0.1", "--workers", "2")
        until(lambda: settled(crawler) > 10, within_s=60, what="some pages")
        for _ in range(times):
            postgres.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
            grown(site, by=10)
        crawler.finish(process)
        missing, again, log = lost(crawler, site), extra(site), site.settled()

    assert missing == []
    assert again == 0
    assert settled_twice(crawler) == 0
    assert judge(log, delay_s=0.1) == []
    assert crawler.faults() == []


def test_a_server_that_throws_everybody_out_costs_nothing(
    crawler: Crawler, postgres: Postgres, postgres_url: str
) -> None:
    _throw_out(crawler, postgres, postgres_url, times=3, pages=16)


@pytest.mark.soak
def test_a_server_that_throws_everybody_out_ten_times_costs_nothing(
    crawler: Crawler, postgres: Postgres, postgres_url: str
) -> None:
    _throw_out(crawler, postgres, postgres_url, times=10, pages=80)


def test_a_server_that_is_killed_once_is_waited_for_and_nothing_is_lost(crawler: Crawler, postgres: Postgres) -> None:
    crawler.database_url = postgres.fresh()
    with Site.plain(hosts=12, pages=16) as site:
        process = crawler.start(*seeds(site), "--delay", "0.1", "--workers", "2")
        until(lambda: settled(crawler) > 10, within_s=60, what="some pages")
        postgres.kill()
        until(lambda: any(word in crawler.log() for word in _AWAY), within_s=30, what="the crawl misses its database")
        postgres.start()
        result = crawler.finish(process)
        missing, again, log = lost(crawler, site), extra(site), site.settled()

    assert result["state"] == "completed"
    assert missing == []
    assert again <= 12, "what was in flight when the server died: one page of each domain"
    assert settled_twice(crawler) == 0
    assert judge(log, delay_s=0.1) == []
    assert crawler.faults() == []


@pytest.mark.soak
def test_a_server_that_is_killed_three_times_is_waited_for_and_nothing_is_lost(
    crawler: Crawler, postgres: Postgres
) -> None:
    url = postgres.fresh()
    with Site.plain(hosts=12, pages=60) as site, Proxy("127.0.0.1", postgres.port) as proxy:
        crawler.database_url = url.replace(f":{postgres.port}/", f":{proxy.port}/")
        process = crawler.start(*seeds(site), "--delay", "0.1", "--workers", "2")
        until(lambda: settled(crawler) > 10, within_s=60, what="some pages")
        resumed: list[float] = []
        dialled = proxy.accepted
        began = time.monotonic()
        for _ in range(3):
            postgres.kill()
            time.sleep(2)  # the fault itself: the server is away for as long as a lease
            postgres.start()
            back_at = time.monotonic()
            grown(site, by=5)
            resumed.append(round(time.monotonic() - back_at, 2))
        rate = (proxy.accepted - dialled) / (time.monotonic() - began)
        crawler.finish(process)
        crawler.database_url = url
        missing, again = lost(crawler, site), extra(site)
    print(f"resumed after {resumed} s, {again} pages asked again, {rate:.1f} connections a second")

    assert missing == []
    assert max(resumed) <= patience.allowed(5)
    assert rate <= 20
    assert again <= 3 * 12
    assert settled_twice(crawler) == 0
    assert crawler.faults() == []
