"""One poll of every odd feed there is: each ends in its own state, nothing is followed that must not be."""

from __future__ import annotations

from collections import Counter

from holdfast.feeds import registry
from holdfast.sources.queries import find_source
from tests.flow.crawler import Crawler
from tests.flow.feeds_bed import CODE, FeedBed
from tests.site import Site

_FEEDS = {
    "/feed/rss": ("ok", 3),
    "/feed/atom": ("ok", 1),
    "/feed/json": ("ok", 1),
    "/feed/rdf": ("ok", 1),
    "/feed/etag": ("ok", 2),
    "/feed/empty": ("ok", 0),
    "/feed/schemes": ("ok", 0),
    "/feed/guid-big": ("ok", 1),
    "/feed/title-html": ("ok", 1),
    "/feed/future": ("ok", 1),
    "/feed/cut": ("ok", 1),
    "/feed/garbage": ("parse_error", None),
    "/feed/entity": ("parse_error", None),
    "/feed/gone": ("gone", None),
    "/feed/limited?s=1": ("rate_limited", None),
    "/status/403": ("forbidden", None),
    "/status/404": ("not_found", None),
    "/status/503": ("upstream_failure", None),
    "/status/418": ("unexpected", None),
    "/sitemap/gzip.xml.gz": ("ok", 3),
    "/sitemap/text-bom.txt": ("ok", 3),
    "/sitemap/laughs.xml": ("parse_error", None),
    "/sitemap/html.xml": ("parse_error", None),
}


def test_every_odd_feed_ends_in_its_own_state(crawler: Crawler) -> None:
    with Site.start(hosts=2, pages=1) as site:
        bed = FeedBed(crawler, site, requisites=False)
        with bed.jobs() as jobs, jobs.database.write() as session:
            source = find_source(session, CODE)
            for path in (*_FEEDS, "/feed/moved"):
                registry.add(session, jobs.clock, source, site.url(0, path))
        bed.poll(HOLDFAST_FEEDS_DISCOVERY="false")
        log = site.settled()
    feeds = bed.feeds()

    assert {path: (feeds[path].last_error_type or "ok", feeds[path].last_item_count) for path in _FEEDS} == _FEEDS
    assert "/feed/moved" in feeds  # where it leads is a feed of this source already
    assert {path for path, feed in feeds.items() if feed.disabled_at} == {"/feed/gone"}
    asked = Counter(entry.path for entry in log)
    assert {path: asked[path] for path in _FEEDS if asked[path] != 1} == {"/feed/rss": 2}
    assert {entry.host for entry in log} == {site.hosts[0]}
    assert crawler.faults() == []
