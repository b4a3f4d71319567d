"""A crawl that polls feeds: what it asks for and how, what an answer says, what it never does."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.crawl.assignment import seeds_of
from holdfast.crawl.link_filter import FilteredLinks
from holdfast.crawl.outcomes import PageUnderWay, StoredExchange
from holdfast.crawl.page_reading import DocumentFacts, SlowDocument
from holdfast.sources.plan import CrawlPlan, Polled
from holdfast.types import Attempt, FetchProblem, FetchRequest, PolledListing, UrlKind
from holdfast.warc.payload import parse_head
from tests.unit.crawl.bed import Answer, Bed, attempt, fetched, make_bed

_FEED = "http://a.test/feed"
_RSS = b"""<rss><channel><item><link>/1</link><pubDate>Tue, 01 Sep 2026 10:00:00 GMT</pubDate></item>
    <item><link>http://elsewhere.test/2</link></item><item><link>/3</link></item></channel></rss>"""


def _bed(answers: Any = None, **plan: Any) -> Bed:
    return make_bed(answers or {}, **{"feeds": "poll", "max_depth": 0, **plan})


def _list(url: str = _FEED, **more: Any) -> Attempt:
    return attempt(url, kind=UrlKind.SITEMAP, **more)


def _sifted(bed: Bed, *answers: Answer, one: Attempt | None = None) -> FilteredLinks:
    """Return what a process makes of the answers to one attempt: all but the last are redirects inside the domain."""
    one = one or _list()
    urls = [one.url, *(f"http://a.test/hop{n}" for n in range(1, len(answers)))]
    hops = [fetched(FetchRequest(url=url), answer, bed.clock) for url, answer in zip(urls, answers, strict=True)]
    page = PageUnderWay(attempt=one, token=1, started_at=bed.clock.now(), hops=hops, reason="ok")
    head = parse_head(hops[-1].response_head)
    stored = StoredExchange(ref=None, head=head, payload=answers[-1].body, payload_digest="")
    reader = bed.reader()
    reading = reader.read(page, one, stored)
    if isinstance(reading, SlowDocument):
        reading = reading.call()
    assert isinstance(reading, DocumentFacts)
    return reader.sift(bed.link_filter(), page, one, reading)


def _listing(*answers: Answer) -> PolledListing:
    listing = _sifted(_bed(), *answers).listing
    assert listing is not None
    return listing


def test_a_poll_begins_with_what_is_due_and_with_the_start_page_only_to_search() -> None:
    plan = CrawlPlan(seeds=("http://a.test/", "http://b.test/"), contact="a@example.org", feeds="poll",
                     lists=(Polled(_FEED, '"a"', None), Polled("http://a.test/map.xml")))  # fmt: skip

    assert [(one.url, one.kind, one.depth) for one in seeds_of(plan)] == [
        (_FEED, UrlKind.SITEMAP, 0), ("http://a.test/map.xml", UrlKind.SITEMAP, 0),
    ]  # fmt: skip
    searching = CrawlPlan.from_json(plan.to_json().replace('"search": false', '"search": true'))
    assert [one.url for one in seeds_of(searching)][2:] == ["http://a.test/"]
    assert searching.lists == plan.lists


def test_a_feed_is_asked_for_with_its_own_validators() -> None:
    bed = _bed({_FEED: Answer(200)}, lists=(Polled(_FEED, '"ours"', "Tue, 01 Sep 2026 10:00:00 GMT"),))
    worker = bed.worker()

    asyncio.run(worker.work(_list(etag='"the page\'s"')))
    asyncio.run(worker.work(_list("http://a.test/other", etag='"the page\'s"')))

    sent = {request.url: dict(request.headers) for request in bed.web.asked}
    assert sent[_FEED]["If-None-Match"] == '"ours"'
    assert sent[_FEED]["If-Modified-Since"] == "Tue, 01 Sep 2026 10:00:00 GMT"
    assert "If-None-Match" not in sent["http://a.test/other"]


@pytest.mark.parametrize("line", [Answer(429), Answer(503), FetchProblem.TIMEOUT])
def test_a_poll_is_not_retried_and_its_items_are(line: Any) -> None:
    retried = []
    for one in (_list(), attempt("http://a.test/1")):
        bed = _bed({one.url: line})
        asyncio.run(bed.worker().work(one))
        retried += [page.retry_at is not None for page in bed.pages if page.attempt]

    assert retried == [False, True]


def test_a_feed_gives_items_in_scope_with_their_dates() -> None:
    filtered = _sifted(_bed(), Answer(200, _RSS))
    listing = filtered.listing

    assert listing is not None
    assert [(one.found.url, one.told_at) for one in listing.items] == [
        ("http://a.test/1", datetime(2026, 9, 1, 10, tzinfo=UTC)), ("http://a.test/3", None),
    ]  # fmt: skip
    assert (listing.is_feed, listing.named, listing.problem) == (True, 3, None)
    assert sum(filtered.excluded.values()) == 1
    assert filtered.found == []


def test_an_answer_says_why_it_could_not_be_read_and_how_long_to_stay_away() -> None:
    assert _listing(Answer(200, b"garbage")).problem == "not_a_sitemap"
    assert _listing(Answer(429, b"no", (("Retry-After", "120"),))).retry_after_s == 120.0
    assert _listing(Answer(404, b"<html>no</html>")) == PolledListing()
    assert _listing(Answer(304, b"")) == PolledListing()


def test_a_feed_says_where_it_moved_only_if_that_is_for_good() -> None:
    assert _listing(Answer(301), Answer(308), Answer(200, _RSS)).moved_to == "http://a.test/hop2"
    assert _listing(Answer(301), Answer(302), Answer(200, _RSS)).moved_to is None
    assert _listing(Answer(200, _RSS)).moved_to is None


@pytest.mark.parametrize("status", [301, 403, 404, 500])
def test_a_feed_has_not_moved_to_where_it_is_not_found(status: int) -> None:
    assert _listing(Answer(301), Answer(status)).moved_to is None
    assert _listing(Answer(301), Answer(304)).moved_to == "http://a.test/hop1"


def test_a_sitemap_index_gives_its_parts() -> None:
    body = b"<sitemapindex><sitemap><loc>/a.xml</loc><lastmod>2026-09-01</lastmod></sitemap></sitemapindex>"
    listing = _listing(Answer(200, body))

    assert [(one.found.url, one.found.kind) for one in listing.children] == [("http://a.test/a.xml", UrlKind.SITEMAP)]
    assert listing.items == ()


_PAGE = Answer(
    200,
    b"""<html><head><link rel=alternate type=application/rss+xml href=/rss><link rel=alternate hreflang=fr href=/fr>
    <link rel=alternate type=application/atom+xml href="http://feeds.test/atom"></head><a href=/next>n</a></html>""",
    (("Content-Type", "text/html"),),
)


@pytest.mark.parametrize(("feeds", "expected"), [("off", []), ("notice", 2), ("poll", 2)])
def test_pages_name_their_feeds_where_that_is_asked_for(feeds: str, expected: Any) -> None:
    filtered = _sifted(_bed(feeds=feeds), _PAGE, one=attempt("http://a.test/"))

    assert [one.url for one in filtered.feeds] == ["http://a.test/rss", "http://feeds.test/atom"][: expected or 0]


def test_the_links_of_an_item_are_not_followed_but_what_it_needs_is() -> None:
    page = Answer(200, b"<img src=/i.png><a href=/next>n</a>", (("Content-Type", "text/html"),))
    filtered = _sifted(_bed(), page, one=attempt("http://a.test/1"))

    assert [(one.url, one.kind) for one in filtered.found] == [("http://a.test/i.png", UrlKind.REQUISITE)]
    assert filtered.excluded["max_depth", "a.test"] == 1


def test_an_item_that_leads_elsewhere_widens_no_scope() -> None:
    bed = _bed()
    one = attempt("http://a.test/go")
    hop = fetched(FetchRequest(url=one.url), Answer(302), bed.clock)
    page = PageUnderWay(
        attempt=one, token=1, started_at=bed.clock.now(), hops=[hop], reason="ok", redirected_to="http://ads.test/"
    )
    filtered = bed.reader().sift(bed.link_filter(), page, one, DocumentFacts())

    assert (bed.landed, filtered.found) == ([], [])
