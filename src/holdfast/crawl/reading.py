"""Reading a filed capture: decoded, parsed by what it is, turned into addresses to add. Never raises for content."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from holdfast import log
from holdfast import parse as parsing
from holdfast.crawl.crew import Capture, Crew
from holdfast.crawl.links import HOP_PRIORITY, Sieve, Sieved
from holdfast.crawl.polling import feeds_of, sift_poll
from holdfast.errors import UrlRefused
from holdfast.parse import (
    FeedParse,
    ParseChild,
    Problem,
    css_links,
    looks_pathological,
    parse_feed,
    parse_page,
    parse_sitemap,
)
from holdfast.parse.sniff import Form, sniff
from holdfast.types import Attempt, Found, Kind, Link, Original, Outcome, ParsedPage, Reread
from holdfast.urls import Url, parse
from holdfast.values import dataclass
from holdfast.warc.payload import HttpHead, decode

UNREADABLE = "original_unreadable"
"""The problem of a 304 whose original cannot be read: the page must be asked for again, without a condition."""
_FATAL = (Problem.PARSE_TIMEOUT, Problem.PARSE_CRASHED)
_HTML = ("text/html", "application/xhtml+xml")
_SITEMAP_DEPTH = 3
MAX_SITEMAPS = 50_000
"""Sitemaps that one process takes from indexes; one index may name as many, and each of them again."""
_SLOW_SITEMAP_BYTES = 256 * 1024
_SLOW_GZIP_BYTES = 16 * 1024
"""Sitemaps from here on take a second thread: 50,000 addresses cost about a second, and ten times as much is packed."""
_GZIP = b"\x1f\x8b"
_log = log.get()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a document says."""

    page: ParsedPage | None = None
    links: tuple[Link, ...] = ()
    resources: tuple[Link, ...] = ()
    listed: tuple[str, ...] = ()
    """Pages that a sitemap lists."""
    children: tuple[str, ...] = ()
    """Sitemaps that a sitemap index lists."""
    feed: FeedParse | None = None
    """What a feed or a sitemap names that is polled."""
    content_hash: str | None = None
    form: Form | None = None
    """What kind of document it is; None where there is none to read."""
    problem: str | None = None
    """Why the document could not be read to its end."""
    notes: tuple[str, ...] = ()
    """What went less than well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Later:
    """A document that takes long: the call that reads it, and how much memory it holds until then."""

    call: Callable[[], Reading]
    size: int


_NOTHING = Reading()


class Reader:
    """Reads documents for one process; suspicious ones in a child that can be killed."""

    def __init__(self, crew: Crew, child: ParseChild) -> None:
        self._crew, self._child = crew, child
        self.max_bytes = crew.settings.parse.max_bytes
        most = crew.plan.max_pages
        self._sitemaps_left = MAX_SITEMAPS if most is None else min(max(most, 1), MAX_SITEMAPS)
        """Sitemaps of indexes that may still be added: with one page from each, a crawl has all that it may have."""

    def may_refer_to(self, attempt: Attempt) -> Original | None:
        """Return the original that a revisit of this page may point to: one that is still there."""
        return attempt.original if self._crew.originals.readable(attempt) else None

    def read(self, capture: Capture, attempt: Attempt, head: HttpHead, payload: bytes | None,
             digest: str) -> Reading | Later:  # fmt: skip
        """Return what the last answer of a capture says; a 304 says what the page's original said.

        A document that looks pathological comes back as a call, to be made where it can wait (it takes seconds).
        """
        if capture.redirected_to is not None:
            return _NOTHING
        if head.status == 304 and self._polls(attempt):
            return _NOTHING  # nothing new, and what was known before is written down
        if head.status == 304 and attempt.original is not None:
            original = self._crew.originals.load(attempt.original)
            if original is None:
                return Reading(problem=UNREADABLE)
            return self._document(capture.hops[-1].url, attempt, *original, "")
        if payload is None:
            problem = "too_large_to_parse" if head.media_type in _HTML else None
            return Reading(problem=problem, form=sniff(b"", head.media_type).form)
        if not 200 <= head.status < 300:
            return Reading(content_hash=_hash(payload))
        return self._document(capture.hops[-1].url, attempt, head, payload, digest)

    def read_again(self, reread: Reread, sieve: Sieve) -> list[Found]:
        """Return where a page leads, seen from a smaller depth than before, by what is stored of it."""
        sieved = self._sift_again(reread, sieve)
        return [*sieved.found, *sieved.shallower]

    def _sift_again(self, reread: Reread, sieve: Sieve) -> Sieved:
        url, original = parse(reread.base, self._crew.policy), reread.attempt.original
        if reread.leads_to is not None:
            return sieve.one(url.fetch, reread.leads_to, Kind.PAGE, reread.depth)
        stored = self._crew.originals.load(original) if original is not None else None
        if stored is None:
            return sieve.sift(url, None, [Link(link, "a") for link in reread.links], (), reread.depth)
        # In the child, whatever it looks like: no watch over this thread would notice a parser that hangs.
        reading = self._document(url.fetch, reread.attempt, *stored, "", in_child=True)
        reading = reading.call() if isinstance(reading, Later) else reading
        return sieve.sift(url, reading.page.base if reading.page is not None else None, reading.links, (), reread.depth)

    def _document(
        self, url: str, attempt: Attempt, head: HttpHead, payload: bytes, digest: str, *, in_child: bool = False
    ) -> Reading | Later:
        body, notes = decode(head, payload)
        # Where nothing was decoded, the payload's digest is the content's.
        content_hash = digest.removeprefix("sha256:") if body is payload and digest else _hash(body)
        if attempt.kind is Kind.SITEMAP:
            known = Reading(content_hash=content_hash, notes=notes)
            slow_from = _SLOW_GZIP_BYTES if body.startswith(_GZIP) else _SLOW_SITEMAP_BYTES
            read = (
                partial(_read_feed, known, body, head.charset)
                if self._polls(attempt)
                else partial(_read_sitemap, known, body, url)
            )
            return Later(call=read, size=len(body)) if len(body) > slow_from else read()
        # What says that it is a page is looked at by the page parser itself.
        is_page = head.media_type in _HTML and self._crew.plan.keeps_bodies
        form = Form.HTML if is_page else sniff(body, head.media_type).form
        known = Reading(content_hash=content_hash, notes=notes, form=form)
        if form is Form.CSS:
            return replace(known, resources=css_links(body, head.charset))
        if form is Form.HTML or form is Form.XML or (form is Form.TEXT and not self._crew.plan.keeps_bodies):
            return self._page(known, url, head, body, in_child=in_child)
        return known

    def _page(self, known: Reading, url: str, head: HttpHead, body: bytes, *, in_child: bool) -> Reading | Later:
        how: parsing.Reading = {
            "url": url, "media_type": head.media_type, "charset": head.charset,
            "x_robots": head.get_all("x-robots-tag"), "want_text": not self._crew.plan.keeps_bodies,
        }  # fmt: skip
        if in_child or looks_pathological(body) is not None:
            return Later(call=lambda: _read_page(known, self._child.parse(body, **how)), size=len(body))
        return _read_page(known, parse_page(body, **how))

    def sift(self, sieve: Sieve, capture: Capture, attempt: Attempt, reading: Reading) -> Sieved:
        """Return the addresses that a capture brings: links, requisites, listed pages, or where it was sent to."""
        if capture.redirected_to is not None:
            if capture.outcome is not Outcome.SUCCESS:
                return Sieved()  # it leads too far, out of scope, or where robots.txt forbids
            return self._sift_redirect(sieve, capture, attempt, capture.redirected_to)
        if self._polls(attempt):
            return sift_poll(sieve, capture, reading.feed, self._crew.clock.now())
        if attempt.kind is Kind.SITEMAP:
            return self._sift_sitemap(sieve, parse(capture.hops[-1].url, self._crew.policy), attempt.depth, reading)
        if (not reading.links and not reading.resources) or capture.outcome is Outcome.EXCLUDED:
            return Sieved()
        url, base = (
            parse(capture.hops[-1].url, self._crew.policy),
            reading.page.base if reading.page is not None else None,
        )
        links = reading.links
        if attempt.kind is Kind.REQUISITE and not self._crew.scope.decide(url, attempt.depth, Kind.PAGE).allowed:
            links = ()  # a frame from elsewhere: what it needs is fetched, where it leads is not
        sieved = sieve.sift(url, base, links, reading.resources, attempt.depth, _generation(attempt))
        if self._crew.plan.feeds != "off" and attempt.kind is Kind.PAGE:
            sieved.feeds = feeds_of(url, base, reading.links, self._crew.policy)
        return sieved

    def _sift_sitemap(self, sieve: Sieve, url: Url, depth: int, reading: Reading) -> Sieved:
        """Return the pages and the sitemaps that a sitemap lists; of those no more than there may be pages."""
        sieved = sieve.sift_listed(url.fetch, reading.listed, Kind.PAGE, 1)
        if reading.children and depth >= _SITEMAP_DEPTH:
            sieved.excluded["over_limit:sitemap_depth", url.host] += len(reading.children)
        elif reading.children:
            children = sieve.sift_listed(url.fetch, reading.children, Kind.SITEMAP, depth + 1)
            taken = children.found[: self._sitemaps_left]
            sieved.found += taken
            sieved.excluded += children.excluded
            if over := len(children.found) - len(taken):
                sieved.excluded["over_limit:sitemaps", url.host] += over
            self._sitemaps_left -= len(taken)
        return sieved

    def _polls(self, attempt: Attempt) -> bool:
        return attempt.kind is Kind.SITEMAP and self._crew.plan.polls

    def _sift_redirect(self, sieve: Sieve, capture: Capture, attempt: Attempt, target: str) -> Sieved:
        try:
            url = parse(target, self._crew.policy)
        except UrlRefused:
            return Sieved()
        # Items of feeds are at depth 0 too, but no seeds: where they lead widens no scope.
        if attempt.depth == 0 and attempt.kind is Kind.PAGE and not self._crew.plan.polls:
            if not self._crew.credentials.covers(url):
                _log.info("crawl.credentials_withheld", origin=url.origin)
            self._crew.landed(url)
        sieved = sieve.one(capture.hops[-1].url, target, attempt.kind, attempt.depth)
        sieved.found = [
            found._replace(
                priority=found.priority + attempt.generation + HOP_PRIORITY,
                hops=attempt.hops + 1,
                generation=attempt.generation,
            )
            for found in sieved.found
        ]
        return sieved


def _generation(attempt: Attempt) -> int:
    """Return to which generation the requisites of a document belong: 0 below a page, one more below a requisite."""
    return 0 if attempt.kind is Kind.PAGE else attempt.generation + 1


def _read_sitemap(known: Reading, body: bytes, url: str) -> Reading:
    sitemap = parse_sitemap(body, url)
    return replace(known, listed=sitemap.urls, children=sitemap.children, notes=(*known.notes, *sitemap.problems))


def _read_feed(known: Reading, body: bytes, charset: str | None) -> Reading:
    feed = parse_feed(body, charset=charset)
    return replace(known, feed=feed, notes=(*known.notes, *feed.problems))


def _read_page(known: Reading, page: ParsedPage) -> Reading:
    problem = next((note for note in page.problems if note in _FATAL), None)
    return Reading(
        page=page,
        links=() if page.nofollow else page.links,
        resources=page.resources,
        content_hash=known.content_hash,
        form=known.form,
        problem=problem,
        notes=(*known.notes, *page.problems),
    )


def _hash(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
