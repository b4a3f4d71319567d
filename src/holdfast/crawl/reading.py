"""Reading a filed capture: decoded, parsed by what it is, turned into addresses to add. Never raises for content."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from holdfast import log
from holdfast.crawl.crew import Capture, Crew
from holdfast.crawl.links import Sieve, Sieved
from holdfast.errors import UrlRefused
from holdfast.parse import ParseChild, css_links, looks_pathological, parse_page, parse_sitemap
from holdfast.types import Attempt, Kind, Link, ParsedPage
from holdfast.urls import parse
from holdfast.warc.payload import HttpHead, decode

_HTML = ("text/html", "application/xhtml+xml")
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
    content_hash: str | None = None
    problem: str | None = None
    """Why the document could not be read to its end."""


Later = Callable[[], Reading]
_NOTHING = Reading()


class Reader:
    """Reads documents for one process; suspicious ones in a child that can be killed."""

    def __init__(self, crew: Crew, child: ParseChild) -> None:
        self._crew, self._child = crew, child
        self.max_bytes = crew.settings.parse.max_bytes

    def read(self, capture: Capture, attempt: Attempt, head: HttpHead, payload: bytes | None,
             digest: str) -> Reading | Later:  # fmt: skip
        """Return what the last answer of a capture says; a 304 says what the page's original said.

        A document that looks pathological comes back as a call, to be made where it can wait (it takes seconds).
        """
        if capture.redirected_to is not None:
            return _NOTHING
        if head.status == 304 and attempt.original is not None:
            original = self._crew.originals.load(attempt.original)
            return _NOTHING if original is None else self._document(capture, attempt, *original, "")
        if payload is None:
            return Reading(problem="too_large_to_parse") if head.media_type in _HTML else _NOTHING
        if not 200 <= head.status < 300:
            return Reading(content_hash=_hash(payload))
        return self._document(capture, attempt, head, payload, digest)

    def _document(self, capture: Capture, attempt: Attempt, head: HttpHead, payload: bytes,
                  digest: str) -> Reading | Later:  # fmt: skip
        body = decode(head, payload).data
        # Where nothing was decoded, the payload's digest is the content's.
        content_hash = digest.removeprefix("sha256:") if body is payload and digest else _hash(body)
        url = capture.hops[-1].url
        if attempt.kind is Kind.SITEMAP:
            sitemap = parse_sitemap(body, url)
            return Reading(listed=sitemap.urls, children=sitemap.children, content_hash=content_hash)
        if head.media_type == "text/css":
            return Reading(resources=css_links(body), content_hash=content_hash)
        if not _may_be_page(head.media_type, body):
            return Reading(content_hash=content_hash)
        return self._page(url, head, body, content_hash)

    def _page(self, url: str, head: HttpHead, body: bytes, content_hash: str) -> Reading | Later:
        x_robots = head.get_all("x-robots-tag")
        if looks_pathological(body) is not None:
            return lambda: _page_reading(
                self._child.parse(body, url=url, media_type=head.media_type, charset=head.charset, x_robots=x_robots),
                content_hash,
            )
        page = parse_page(body, url=url, media_type=head.media_type, charset=head.charset, x_robots=x_robots)
        return _page_reading(page, content_hash)

    def sift(self, sieve: Sieve, capture: Capture, attempt: Attempt, reading: Reading) -> Sieved:
        """Return the addresses that a capture brings: links, requisites, listed pages, or where it was sent to."""
        if capture.redirected_to is not None:
            return self._sift_redirect(sieve, capture, attempt, capture.redirected_to)
        if attempt.kind is Kind.SITEMAP:
            sieved = sieve.sift_listed(attempt.url, reading.listed, Kind.PAGE, 1)
            if attempt.depth < 3:
                children = sieve.sift_listed(attempt.url, reading.children, Kind.SITEMAP, attempt.depth + 1)
                sieved.found += children.found
                sieved.excluded += children.excluded
            return sieved
        if not reading.links and not reading.resources:
            return Sieved()
        url, base = parse(capture.hops[-1].url), reading.page.base if reading.page is not None else None
        links = reading.links
        if attempt.kind is Kind.REQUISITE and not self._crew.scope.decide(url, attempt.depth, Kind.PAGE).allowed:
            links = ()  # a frame from elsewhere: what it needs is fetched, where it leads is not
        return sieve.sift(url, base, links, reading.resources, attempt.depth)

    def _sift_redirect(self, sieve: Sieve, capture: Capture, attempt: Attempt, target: str) -> Sieved:
        try:
            url = parse(target)
        except UrlRefused:
            return Sieved()
        if attempt.depth == 0 and attempt.kind is Kind.PAGE:
            self._crew.landed(url)
        return sieve.one(capture.hops[-1].url, target, attempt.kind, attempt.depth)


def _page_reading(page: ParsedPage, content_hash: str) -> Reading:
    problem = next((note for note in page.problems if note in ("parse_timeout", "parse_crashed")), None)
    links = () if page.nofollow else page.links
    return Reading(page=page, links=links, resources=page.resources, content_hash=content_hash, problem=problem)


def _hash(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def _may_be_page(media_type: str | None, body: bytes) -> bool:
    """Return whether to try to read this as a page: declared HTML, or undeclared and looking like it."""
    if media_type in _HTML:
        return True
    return media_type in (None, "", "text/plain", "application/octet-stream") and body[:512].lstrip()[:1] == b"<"
