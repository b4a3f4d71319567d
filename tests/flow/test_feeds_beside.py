"""A poll beside a long crawl of the same site: the crawl makes way, and nobody asks twice at once."""

from __future__ import annotations

import signal
from collections import Counter

from tests.flow.crawler import Crawler
from tests.flow.faults.bed import until
from tests.flow.feeds_bed import FeedBed, Press, article
from tests.site import Site, judge
from tests.site.book import html, links

_PAGES = 600
_DELAY_S = 0.1


def test_feeds_are_polled_while_their_site_is_crawled(crawler: Crawler) -> None:
    press = Press()
    press.publish("/news/1")
    with Site.start(hosts=1, pages=1) as site:
        site.serve("/start", html("Start", links([f"/page/{number}" for number in range(_PAGES)])))
        for number in range(_PAGES):
            site.serve(f"/page/{number}", html(f"Page {number}", "<p>words</p>"))
        site.on("/feed", press.serve)
        site.on("/news/1", article)
        bed = FeedBed(crawler, site, requisites=False, sitemaps=False, delay_s=_DELAY_S)
        crawl = crawler.start(site.url(0, "/start"), "--delay", str(_DELAY_S), "--no-sitemaps")
        until(lambda: len(site.log()) > 8, within_s=30, what="the crawl to begin")

        asked = bed.poll()
        still_runs = crawl.poll() is None
        after = len(site.log())
        until(lambda: len(site.log()) > after + 5, within_s=30, what="the crawl to go on")
        crawl.send_signal(signal.SIGINT)
        crawler.finish(crawl)
        log = site.settled()

    assert still_runs
    assert (asked["/feed"], asked["/news/1"]) == (1, 1)
    assert judge(log, delay_s=_DELAY_S) == []
    pages = Counter(entry.path for entry in log if entry.path.startswith("/page/"))
    assert set(pages.values()) == {1}, "what was given up with the domain is asked for once"
