"""From what a polled feed or sitemap answered to what the feeds room writes down; and the feeds that a page names."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from holdfast.crawl.crew import Capture
from holdfast.crawl.links import Sieve, Sieved
from holdfast.fetch.retry_after import parse_retry_after
from holdfast.parse import FeedParse
from holdfast.types import Fetched, Found, Kind, Link, Listing
from holdfast.urls import DEFAULT, Base, Normalisation, Url
from holdfast.warc.payload import parse_head

MAX_FEEDS = 20
"""Feeds that are taken from one page."""
_FOR_GOOD = (301, 308)
_FEED = FeedParse()


def sift_poll(sieve: Sieve, capture: Capture, feed: FeedParse | None, now: datetime) -> Sieved:
    """Return what a poll brought: the items in scope with their dates, where it moved to, how long to stay away."""
    sieved, last = Sieved(), capture.hops[-1]
    read = feed or _FEED
    sieved.listing = Listing(
        is_feed=read.form is not None and read.form.is_feed,
        items=tuple(sieve.sift_entries(last.url, read.entries, Kind.PAGE, sieved)),
        children=tuple(sieve.sift_entries(last.url, read.children, Kind.SITEMAP, sieved)),
        named=len(read.entries) + len(read.children), problem=_problem(last, feed), moved_to=_moved_to(capture.hops),
        retry_after_s=parse_retry_after(parse_head(last.response_head).get("retry-after"), now),
    )  # fmt: skip
    return sieved


def feeds_of(page: Url, base_href: str | None, links: Iterable[Link], policy: Normalisation = DEFAULT) -> list[Found]:
    """Return the feeds that a page names (`rel=alternate` with the type of a feed), resolved, at most twenty."""
    hrefs = [link.url for link in links if link.rel == "feed"][:MAX_FEEDS]
    if not hrefs:
        return []
    found = Base(page, base_href, policy).resolve(hrefs).links
    return [Found(link.fetch, link.hash64, link.domain, Kind.SITEMAP, 1, 0) for link in found]


def _problem(answer: Fetched, feed: FeedParse | None) -> str | None:
    """Return why a good answer could not be read: it is nothing that we know, or too large to be looked at."""
    if answer.status == 304 or not 200 <= answer.status < 300:
        return None
    return "too_large_to_parse" if feed is None else feed.failure


def _moved_to(hops: tuple[Fetched, ...]) -> str | None:
    """Return where a list has moved for good: only where it was found, so that a mistake of a day loses no feed."""
    is_found = 200 <= hops[-1].status < 300 or hops[-1].status == 304
    return hops[-1].url if len(hops) > 1 and is_found and all(hop.status in _FOR_GOOD for hop in hops[:-1]) else None
