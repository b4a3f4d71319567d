"""A source with feeds: a worker finds them, polls them, captures what is new and nothing else, and stops when told."""

from __future__ import annotations

import json

from tests.flow.crawler import Crawler
from tests.flow.feeds_bed import FeedBed, Press, article, front, index, part, robots
from tests.site import Site, judge


def test_a_feed_is_found_polled_and_only_its_news_is_captured(crawler: Crawler) -> None:
    press = Press()
    press.publish("/news/1")
    press.publish("/news/2")
    with Site.start(hosts=1, pages=1) as site:
        for path, page in (("/", front), ("/press.rss", press.serve), ("/robots.txt", robots), ("/map.xml", index),
                           ("/part.xml", part), ("/listed", article)):  # fmt: skip
            site.on(path, page)
        for number in range(1, 4):
            site.on(f"/news/{number}", article)
        bed = FeedBed(crawler, site)

        first = bed.poll()
        unchanged = bed.poll()
        polled_at = bed.feeds()["/press.rss"].last_polled_at
        press.publish("/news/3")
        press.publish("/news/1", "Wed, 11 Nov 2026 10:00:00 GMT")
        news = bed.poll()
        press.status = 410
        gone = bed.poll()
        log = site.settled()

    lists = {"/press.rss": 1, "/map.xml": 1}
    assert first == {"/": 1, **lists, "/part.xml": 1, "/news/1": 1, "/news/2": 1, "/listed": 1, "/pixel.png": 1}
    assert unchanged == lists
    assert news == lists | {"/news/3": 1, "/news/1": 1, "/pixel.png": 1}
    assert gone == lists
    assert [entry.status for entry in log if entry.path == "/press.rss"] == [200, 304, 200, 410]
    assert judge(log, delay_s=0.0) == []
    assert crawler.faults() == []
    feed = bed.feeds()["/press.rss"]
    assert (feed.last_error_type, feed.next_poll_at, feed.origin, feed.kind) == ("gone", None, "discovered", "feed")
    assert feed.disabled_at is not None
    assert polled_at is not None
    origins = {path: (one.kind, one.origin) for path, one in bed.feeds().items() if path != "/press.rss"}
    assert origins == {"/map.xml": ("sitemap", "robots"), "/part.xml": ("sitemap", "index")}
    items = bed.items(feed)
    assert {path: item.execution_id for path, item in items.items()} == {"/news/1": 3, "/news/2": 1, "/news/3": 3}
    _assert_found(crawler, site)
    assert "is disabled" in crawler.run("job", "logs", "1", "--execution", "4").stdout
    assert bed.told_disabled() == [feed.id]


def _assert_found(crawler: Crawler, site: Site) -> None:
    """Check that captures of a poll are indexed as any other, and found."""
    found = json.loads(crawler.run("search", "fresh words", "--json").stdout)["results"]

    paths = ["/listed", *(f"/news/{n}" for n in range(1, 4))]
    assert {row["originalUrl"] for row in found} == {site.url(0, path) for path in paths}
