"""F04, F05: a PostgreSQL server that is killed, or that throws everybody out again and again."""

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

pytestmark = [pytest.mark.soak, pytest.mark.timeout(300), pytest.mark.postgres]


def test_a_server_that_throws_everybody_out_costs_nothing(
    crawler: Crawler, postgres: Postgres, postgres_url: str
) -> None:
    crawler.database_url = postgres_url
    name = urlsplit(postgres_url).path.removeprefix("/")
    with Site.plain(hosts=12, pages=80) as site:
        process = crawler.start(*seeds(site), "--delay", "0.1", "--workers", "2")
        until(lambda: settled(crawler) > 10, within_s=60, what="some pages")
        for _ in range(10):
            postgres.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
            grown(site, by=10)
        crawler.finish(process)
        missing, again, log = lost(crawler, site), extra(site), site.settled()

    assert missing == []
    assert again == 0
    assert settled_twice(crawler) == 0
    assert judge(log, delay_s=0.1) == []
    assert crawler.faults() == []


def test_a_server_that_is_killed_is_waited_for_and_nothing_is_lost(crawler: Crawler, postgres: Postgres) -> None:
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
