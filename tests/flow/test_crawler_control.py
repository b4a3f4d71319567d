"""An operator's hand on a crawl that runs: an address added, a domain slowed, paused, resumed and purged."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

from holdfast import config
from holdfast.clock import SystemClock
from holdfast.db.engine import Database
from holdfast.wiring import prepare
from holdfast.wiring.archive import Archive
from tests.client import Client, asking
from tests.flow.crawler import Crawler
from tests.flow.faults.bed import rows, settled, until
from tests.site import Site, judge

_SLOW_S = 1.2


@contextmanager
def _api(crawler: Crawler) -> Iterator[Client]:
    settings = config.load(home=crawler.home)
    prepare(settings)
    with (
        closing(Database(settings.database)) as database,
        asking(Archive(settings=settings, database=database, clock=SystemClock())) as client,
    ):
        yield client


def _starts(site: Site, host: int) -> list[float]:
    return [entry.start for entry in site.log() if entry.host == site.hosts[host]]


def _changed(api: Client, domain: str, **settings: Any) -> None:
    answer = api.request("PUT", f"/api/domains/{domain}/settings", json=settings)
    assert answer.status_code == 200, answer.text


def _is_free(crawler: Crawler, domain: str) -> bool:
    return rows(crawler, f"SELECT 1 FROM domains WHERE name = '{domain}' AND lease_owner IS NULL") != []


def test_a_crawl_that_runs_takes_an_address_and_obeys_what_is_said_of_a_domain(crawler: Crawler) -> None:
    with _api(crawler) as api, Site.plain(hosts=2, pages=100) as site:
        domain, by_hand = urlsplit(site.url(1)).netloc, f"{site.urls()[0]}?by=hand"
        process = crawler.start(site.url(0), site.url(1), "--delay", "0.05")
        until(lambda: settled(crawler) >= 5, within_s=30, what="five pages")
        added = api.post("/api/frontier/add", json={"urls": [by_hand]}).json()

        _changed(api, domain, crawlDelay=_SLOW_S)
        slowed_at = time.monotonic()
        until(lambda: _starts(site, 1)[-1] > slowed_at + 2 * _SLOW_S, within_s=20, what="slow requests")

        _changed(api, domain, paused=True)
        until(lambda: _is_free(crawler, domain), within_s=5, what="the domain is given back")
        paused, others = len(_starts(site, 1)), len(_starts(site, 0))
        until(lambda: len(_starts(site, 0)) > others + 10, within_s=20, what="the other domain goes on")
        rested, resumed_at = len(_starts(site, 1)), time.monotonic()
        _changed(api, domain, paused=False)
        until(lambda: len(_starts(site, 1)) > rested, within_s=10, what="it is asked again")

        purged = api.post(f"/api/domains/{domain}/purge").json()
        purged_at = time.monotonic()
        result = crawler.finish(process, timeout_s=60)
        log = site.settled()
        asked = _starts(site, 1)

    assert added["places"][0]["status"] == "joined"
    assert crawler.outcomes()[by_hand][0] == "success", "the running crawl asked for it"
    slow = [start for start in asked if slowed_at + 1.0 <= start < resumed_at]
    assert len(slow) >= 2
    assert all(later - sooner >= _SLOW_S for sooner, later in pairwise(slow))
    assert rested == paused, "nothing is asked while it is paused"
    assert purged["removed"] > 10
    assert purged["done"] is True
    assert sum(start > purged_at + 1.0 for start in asked) == 0
    assert result["state"] == "completed"
    ends = [outcome for url, outcome in crawler.outcomes().items() if domain in url]
    assert ends.count(("excluded", "purged")) == purged["removed"]
    assert judge(log, delay_s=0.05) == []
    assert crawler.faults() == []
