"""An operator's hand on a crawl that runs: an address added, a domain slowed, paused, resumed and purged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from ipaddress import ip_network
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
    settings = config.load(home=crawler.home).model_copy(update={"allow_networks": (ip_network("127.0.0.0/8"),)})
    prepare(settings)
    with (
        closing(Database(settings.database)) as database,
        asking(Archive(settings=settings, database=database, clock=SystemClock())) as client,
    ):
        yield client


def _starts(site: Site, host: int) -> list[float]:
    return [entry.start for entry in site.log() if entry.host == site.hosts[host]]


def _added(api: Client, url: str) -> str:
    """Add an address, and return what becomes of it."""
    answer = api.post("/api/frontier/add", json={"urls": [url]})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["places"][0]["status"])


def _gaps(site: Site) -> list[float]:
    """Return the seconds between the requests to the second host."""
    return [later - sooner for sooner, later in pairwise(_starts(site, 1))]


def _changed(api: Client, domain: str, **settings: Any) -> None:
    answer = api.request("PUT", f"/api/domains/{domain}/settings", json=settings)
    assert answer.status_code == 200, answer.text


def _is_free(crawler: Crawler, domain: str) -> bool:
    return rows(crawler, f"SELECT 1 FROM domains WHERE name = '{domain}' AND lease_owner IS NULL") != []


def test_a_crawl_that_runs_takes_an_address_and_obeys_what_is_said_of_a_domain(crawler: Crawler) -> None:
    with _api(crawler) as api, Site.plain(hosts=2, pages=100) as site:
        domain, by_hand = urlsplit(site.url(1)).netloc, f"{site.urls()[0]}?by=hand"
        waits = f"{site.urls()[0]}?before=it+ran"
        # The first makes a source for the host, with a job of its own; the second waits for any run of that source.
        before = [_added(api, url) for url in (site.urls()[0], waits)]
        process = crawler.start(site.url(0), site.url(1), "--delay", "0.05")
        until(lambda: settled(crawler) >= 5, within_s=30, what="five pages")
        added = _added(api, by_hand)

        _changed(api, domain, crawlDelay=_SLOW_S)
        until(lambda: min(_gaps(site)[-2:]) >= _SLOW_S, within_s=20, what="two slow requests")
        slow = len(_gaps(site)) - 2

        _changed(api, domain, paused=True)
        until(lambda: _is_free(crawler, domain), within_s=10, what="the domain is given back")
        paused, others = len(_starts(site, 1)), len(_starts(site, 0))
        until(lambda: len(_starts(site, 0)) > others + 10, within_s=20, what="the other domain goes on")
        rested = len(_starts(site, 1))
        _changed(api, domain, paused=False)
        until(lambda: len(_starts(site, 1)) > rested, within_s=10, what="it is asked again")

        purged = api.post(f"/api/domains/{domain}/purge").json()
        until(lambda: _is_free(crawler, domain), within_s=10, what="the domain is given back")
        left = len(_starts(site, 1))
        result = crawler.finish(process, timeout_s=60)
        log, gaps, asked = site.settled(), _gaps(site), len(_starts(site, 1))

    assert (before, added) == (["job_made", "waits"], "joined")
    assert crawler.outcomes()[waits][0] == "success", "the next run of its source has taken it"
    assert crawler.outcomes()[by_hand][0] == "success", "the running crawl asked for it"
    assert min(gaps[slow:]) >= _SLOW_S, "from the first slow request on, all of them"
    assert rested == paused, "nothing is asked while it is paused"
    assert purged["removed"] > 10
    assert purged["done"] is True
    assert asked == left, "what was taken from the queue is not asked for"
    assert (result["state"], result["reason"]) == ("completed", "stopped"), "a person took pages away, and it is told"
    ends = [outcome for url, outcome in crawler.outcomes().items() if domain in url]
    assert ends.count(("excluded", "purged")) == purged["removed"]
    assert judge(log, delay_s=0.05) == []
    assert crawler.faults() == []
