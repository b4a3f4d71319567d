"""Reads a stored page: decodes it, parses it by type, returns URLs to add. Never raises because of content."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from threading import Lock

from holdfast import parse as parsing
from holdfast.clock import Clock
from holdfast.config import Settings
from holdfast.crawl.assignment import CrawlScope
from holdfast.crawl.link_filter import FilteredLinks, LinkFilter
from holdfast.crawl.outcomes import MAX_REDIRECTS, PageUnderWay, StoredExchange
from holdfast.crawl.paced_client import CaptureHistory
from holdfast.errors import UrlRefused
from holdfast.fetch.endings import parse_retry_after
from holdfast.parse import (
    FeedParse,
    NamedUrls,
    ParseChild,
    ParseProblem,
    css_links,
    looks_pathological,
    parse_feed,
    parse_page,
    parse_sitemap,
    script_links,
)
from holdfast.parse.charset import BodyForm, sniff
from holdfast.parse.page import MAX_PARSED_BYTES
from holdfast.types import (
    NEW_OWNER,
    Attempt,
    Fetched,
    FoundUrl,
    Link,
    Original,
    Outcome,
    PageToReread,
    ParsedPage,
    PolledListing,
    UrlKind,
)
from holdfast.urls import (
    DEFAULT,
    Base,
    Normalisation,
    Url,
    parse,
    registrable,
)
from holdfast.values import dataclass
from holdfast.warc.payload import HttpHead, PayloadProblem, decode, parse_head

# Priority of a redirect's target on another domain: such a target is requested first.
HOP_PRIORITY = 10
MAX_FEEDS = 20
"""Limit of feeds from one page."""
_FOR_GOOD = (301, 308)
_FEED = FeedParse()


def filter_poll(
    link_filter: LinkFilter, hops: Sequence[Fetched], feed: FeedParse | None, now: datetime
) -> FilteredLinks:
    """Return what a polled feed or sitemap yields: in-scope items, a permanent redirect's target, Retry-After."""
    filtered, last = FilteredLinks(), hops[-1]
    read = feed or _FEED
    filtered.listing = PolledListing(
        is_feed=read.form is not None and read.form.is_feed,
        items=tuple(link_filter.sift_entries(last.url, read.entries, UrlKind.PAGE, filtered)),
        children=tuple(link_filter.sift_entries(last.url, read.children, UrlKind.SITEMAP, filtered)),
        named=len(read.entries) + len(read.children),
        problem=_problem(last, feed),
        moved_to=_moved_to(hops),
        retry_after_s=parse_retry_after(parse_head(last.response_head).get("retry-after"), now),
    )
    return filtered


def feeds_of(
    page: Url, base_href: str | None, links: Iterable[Link], policy: Normalisation = DEFAULT
) -> list[FoundUrl]:
    """Return the feeds that a page names (`rel=alternate` with a feed type), resolved, at most 20."""
    hrefs = [link.url for link in links if link.rel == "feed"][:MAX_FEEDS]
    if not hrefs:
        return []
    found = Base(page, base_href, policy).resolve(hrefs).links
    return [FoundUrl(link.fetch, link.hash64, link.domain, UrlKind.SITEMAP, 1, 0) for link in found]


def _problem(answer: Fetched, feed: FeedParse | None) -> str | None:
    if answer.status == 304 or not 200 <= answer.status < 300:
        return None
    return TOO_LARGE if feed is None else feed.failure


def _moved_to(hops: Sequence[Fetched]) -> str | None:
    # Count it only where it was found, so that a mistake of one day loses no feed.
    is_found = 200 <= hops[-1].status < 300 or hops[-1].status == 304
    return hops[-1].url if len(hops) > 1 and is_found and all(hop.status in _FOR_GOOD for hop in hops[:-1]) else None


UNREADABLE = "original_unreadable"
"""Problem of a 304 whose original cannot be read: the page must be requested again, unconditionally."""
_FATAL = (ParseProblem.PARSE_TIMEOUT, ParseProblem.PARSE_CRASHED)
TOO_LARGE = "too_large_to_parse"
"""Problem of a document longer than the limit for link extraction."""
_UNREAD = frozenset(
    {
        *(TOO_LARGE, ParseProblem.PARSE_FAILED, ParseProblem.BODY_CUT, *_FATAL),
        *(PayloadProblem.BAD_ENCODING, PayloadProblem.UNKNOWN_ENCODING, PayloadProblem.TOO_MANY_ENCODINGS),
        *(PayloadProblem.TOO_LARGE, PayloadProblem.RATIO_EXCEEDED),
        *(ParseProblem.XML_BROKEN, ParseProblem.XML_ENTITIES, ParseProblem.JSON_BROKEN),
        *(ParseProblem.GZIP_BROKEN, ParseProblem.GZIP_NESTED),
    }
)
_HTML = ("text/html", "application/xhtml+xml")
_SITEMAP_DEPTH = 3
# One index may list this many, and each of those again.
MAX_SITEMAPS = 50_000
"""Limit of sitemaps that one process reads from sitemap indexes."""
# Sitemaps of this size use a second thread: 50,000 URLs cost about a second, and compressed ones ten times as much.
_SLOW_SITEMAP_BYTES = 256 * 1024
_SLOW_GZIP_BYTES = 16 * 1024
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFacts:
    page: ParsedPage | None = None
    links: tuple[Link, ...] = ()
    resources: tuple[Link, ...] = ()
    listed: tuple[str, ...] = ()
    """Pages listed by a sitemap."""
    children: tuple[str, ...] = ()
    """Sitemaps listed by a sitemap index."""
    links_over: int = 0
    """Number of links, or of pages and sitemaps in a sitemap, beyond the limit for one document."""
    resources_over: int = 0
    feed: FeedParse | None = None
    content_hash: str | None = None
    form: BodyForm | None = None
    """Kind of document; None if there is nothing to read."""
    problem: str | None = None
    """Why the document could not be read completely."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowDocument:
    """A slow document: the call that reads it, and the memory it holds until then."""

    call: Callable[[], DocumentFacts]
    size: int


_NOTHING = DocumentFacts()


class DocumentReader:
    """Reads documents for one process; suspicious ones in a child process that can be killed."""

    def __init__(
        self,
        scope: CrawlScope,
        originals: CaptureHistory,
        settings: Settings,
        clock: Clock,
        landed: Callable[[Url], None],
        child: ParseChild | None = None,
    ) -> None:
        """`landed` is called with the target of a seed's redirect."""
        self.find_redirect: Callable[[Url], str | None] = lambda _url: None
        """Returns where an address of this crawl redirects to; set by the process."""
        self.find_capture: Callable[[Attempt], str | None] = lambda _attempt: None
        """Returns the address that a page led to when an earlier run captured it; set by the process."""
        self._scope, self._originals, self._clock, self._landed = scope, originals, clock, landed
        self._child = child or ParseChild(deadline_s=settings.timings.crawl_parse_s)
        self._plan, self._normalisation = scope.plan, scope.normalisation
        self.max_bytes = MAX_PARSED_BYTES
        most = self._plan.max_pages
        # With one page from each, a crawl reaches its limit.
        self._sitemaps_left = MAX_SITEMAPS if most is None else min(max(most, 1), MAX_SITEMAPS)
        """Sitemaps of indexes that may still be added."""
        # Two threads subtract from the rest: if counted twice it would fall below zero, and then limit nothing.
        self._counting = Lock()

    def close(self) -> None:
        self._child.close()

    def may_refer_to(self, attempt: Attempt) -> Original | None:
        return attempt.original if self._originals.readable(attempt) else None

    def read(self, page: PageUnderWay, attempt: Attempt, stored: StoredExchange) -> DocumentFacts | SlowDocument:
        """Return the facts in the last response of a page; for a 304, those of the page's original.

        A document that looks pathological is returned as a call, to be made where waiting is possible (it takes
        seconds).
        """
        head, payload = stored.head, stored.payload
        if page.redirected_to is not None:
            return _NOTHING
        if head.status == 304 and self._polls(attempt):
            return _NOTHING  # nothing new, and everything known before is stored
        if head.status == 304 and attempt.original is not None:
            original = self._originals.load(attempt.original)
            if original is None:
                return DocumentFacts(problem=UNREADABLE)
            return self._document(page.hops[-1].url, attempt, *original, "")
        if payload is None:
            is_read = head.media_type in _HTML or attempt.kind is UrlKind.SITEMAP
            problem = TOO_LARGE if is_read else None
            return DocumentFacts(problem=problem, form=sniff(b"", head.media_type).form)
        if not 200 <= head.status < 300:
            return DocumentFacts(content_hash=_hash(payload))
        return self._document(page.hops[-1].url, attempt, head, payload, stored.payload_digest)

    def read_again(self, reread: PageToReread, link_filter: LinkFilter) -> list[FoundUrl] | None:
        """Return the links of a page at a smaller depth than before; None if its record cannot be read here."""
        filtered = self._sift_again(reread, link_filter)
        return None if filtered is None else [*filtered.found, *filtered.shallower]

    def _sift_again(self, reread: PageToReread, link_filter: LinkFilter) -> FilteredLinks | None:
        url, original = parse(reread.base, self._normalisation), reread.attempt.original
        if reread.leads_to is not None:
            return link_filter.one(url.fetch, reread.leads_to, UrlKind.PAGE, reread.depth)
        stored = self._originals.load(original) if original is not None else None
        # It is on another machine's disk, for members of another source only, or damaged.
        if stored is None and self._plan.keeps_bodies:
            return None
        if stored is None:
            return link_filter.sift(url, None, [Link(link, "a") for link in reread.links], (), reread.depth)
        # Parse it in the child in any case: nothing would notice a parser that hangs in this thread.
        reading = self._document(url.fetch, reread.attempt, *stored, "", in_child=True)
        reading = reading.call() if isinstance(reading, SlowDocument) else reading
        return link_filter.sift(
            url, reading.page.base if reading.page is not None else None, reading.links, (), reread.depth
        )

    def _document(
        self, url: str, attempt: Attempt, head: HttpHead, payload: bytes, digest: str, *, in_child: bool = False
    ) -> DocumentFacts | SlowDocument:
        body, notes = decode(head, payload)
        # If nothing was decoded, the payload's digest is that of the content.
        content_hash = digest.removeprefix("sha256:") if body is payload and digest else _hash(body)
        if attempt.kind is UrlKind.SITEMAP:
            known = DocumentFacts(content_hash=content_hash, notes=notes)
            slow_from = _SLOW_GZIP_BYTES if body.startswith(_GZIP) else _SLOW_SITEMAP_BYTES
            read = (
                partial(_read_feed, known, body, head.charset)
                if self._polls(attempt)
                else partial(_read_sitemap, known, body, url)
            )
            return SlowDocument(call=read, size=len(body)) if len(body) > slow_from else read()
        # The page parser itself checks whether the body is a page.
        is_page = head.media_type in _HTML and self._plan.keeps_bodies
        form = BodyForm.HTML if is_page else sniff(body, head.media_type).form
        known = DocumentFacts(content_hash=content_hash, notes=notes, form=form)
        named = None
        if form is BodyForm.CSS:
            named = css_links(body, head.charset)
        elif (head.media_type or "").endswith(("javascript", "ecmascript")):
            script_links(body.decode("utf-8", "replace"), named := NamedUrls(), is_inline=False)
        if named is not None:
            return replace(known, resources=named.listed(), resources_over=named.over)
        if form is BodyForm.HTML or form is BodyForm.XML or (form is BodyForm.TEXT and not self._plan.keeps_bodies):
            return self._page(known, url, head, body, in_child=in_child)
        return known

    def _page(
        self, known: DocumentFacts, url: str, head: HttpHead, body: bytes, *, in_child: bool
    ) -> DocumentFacts | SlowDocument:
        how: parsing.ReadingOptions = {
            "url": url,
            "media_type": head.media_type,
            "charset": head.charset,
            "x_robots": head.get_all("x-robots-tag"),
            "want_text": not self._plan.keeps_bodies,
        }
        if in_child or looks_pathological(body) is not None:
            # A decoded body may have 50 MiB: keep only the part that the parser reads, and one byte more as a sign that
            # it was cut.
            body = body[: MAX_PARSED_BYTES + 1]
            return SlowDocument(call=lambda: _read_page(known, self._child.parse(body, **how)), size=len(body))
        return _read_page(known, parse_page(body, **how))

    def sift(
        self, link_filter: LinkFilter, page: PageUnderWay, attempt: Attempt, reading: DocumentFacts
    ) -> FilteredLinks:
        filtered = self._sift(link_filter, page, attempt, reading)
        filtered.excluded.update(left_out(page, attempt, reading))
        return filtered

    def _sift(
        self, link_filter: LinkFilter, page: PageUnderWay, attempt: Attempt, reading: DocumentFacts
    ) -> FilteredLinks:
        if page.redirected_to is not None:
            if page.outcome is not Outcome.SUCCESS:
                return FilteredLinks()  # it has too many hops, leaves the scope, or is forbidden by robots.txt
            return self._sift_redirect(link_filter, page.hops[-1].url, attempt, page.redirected_to)
        if self._polls(attempt):
            return filter_poll(link_filter, page.hops, reading.feed, self._clock.now())
        if attempt.kind is UrlKind.SITEMAP:
            return self._sift_sitemap(
                link_filter, parse(page.hops[-1].url, self._normalisation), attempt.depth, reading
            )
        if (not reading.links and not reading.resources) or page.outcome is Outcome.EXCLUDED:
            return FilteredLinks()
        url = parse(page.hops[-1].url, self._normalisation)
        base = reading.page.base if reading.page is not None else None
        links = reading.links
        if attempt.kind is UrlKind.REQUISITE and not self._scope.rules.decide(url, attempt.depth, UrlKind.PAGE).allowed:
            links = ()  # a frame from another host: fetch its requisites, do not follow its links
        filtered = link_filter.sift(url, base, links, reading.resources, attempt.depth, _generation(attempt))
        if self._plan.feeds != "off" and attempt.kind is UrlKind.PAGE:
            filtered.feeds = feeds_of(url, base, reading.links, self._normalisation)
        return filtered

    def _sift_sitemap(self, link_filter: LinkFilter, url: Url, depth: int, reading: DocumentFacts) -> FilteredLinks:
        filtered = link_filter.sift_listed(url.fetch, reading.listed, UrlKind.PAGE, 1)
        if reading.children and depth >= _SITEMAP_DEPTH:
            filtered.excluded["over_limit:sitemap_depth", url.host] += len(reading.children)
        elif reading.children:
            children = link_filter.sift_listed(url.fetch, reading.children, UrlKind.SITEMAP, depth + 1)
            with self._counting:
                taken = children.found[: self._sitemaps_left]
                self._sitemaps_left -= len(taken)
            filtered.found += taken
            filtered.excluded.update(children.excluded)
            if over := len(children.found) - len(taken):
                filtered.excluded["over_limit:sitemaps", url.host] += over
        return filtered

    def _polls(self, attempt: Attempt) -> bool:
        return attempt.kind is UrlKind.SITEMAP and self._plan.polls

    def _sift_redirect(self, link_filter: LinkFilter, base: str, attempt: Attempt, target: str) -> FilteredLinks:
        try:
            url = parse(target, self._normalisation)
        except UrlRefused:
            return FilteredLinks()
        # Items of feeds are at depth 0 too, but are not seeds: their redirects do not widen the scope.
        if attempt.depth == 0 and attempt.kind is UrlKind.PAGE and not self._plan.polls:
            if self._is_new_owner(attempt, url):
                return FilteredLinks(refused=(Outcome.EXCLUDED, f"{NEW_OWNER}{url.host}"))
            self._landed(url)
        filtered = link_filter.one(base, target, attempt.kind, attempt.depth)
        # A target that is new to this process may be the origin of another's redirect.
        if (attempt.hops or not filtered.found) and not filtered.excluded and self._goes_round(attempt, url):
            return FilteredLinks(refused=(Outcome.FAILED, "too_many_redirects"))
        filtered.found = [
            found._replace(
                priority=found.priority + attempt.generation + HOP_PRIORITY,
                hops=attempt.hops + 1,
                generation=attempt.generation,
            )
            for found in filtered.found
        ]
        return filtered

    def _is_new_owner(self, attempt: Attempt, url: Url) -> bool:
        """Whether a seed captured by an earlier run now redirects to a different owner outside the scope."""
        owner = registrable(url.host)
        if owner == registrable(parse(attempt.url).host) or self._scope.rules.decide(url, 0).allowed:
            return False
        before = self.find_capture(attempt)
        return before is not None and registrable(parse(before).host) != owner

    def _goes_round(self, attempt: Attempt, url: Url) -> bool:
        """Whether a redirect to a known URL loops back here or exceeds the redirect limit."""
        # Each domain is fetched separately, so no attempt sees the circle: the stored responses do.
        for _ in range(MAX_REDIRECTS - attempt.hops):
            if url.hash64 == attempt.url_hash:
                return True
            onward = self.find_redirect(url)
            if onward is None:
                return False
            url = parse(onward, self._normalisation)
        return True


def left_out(page: PageUnderWay, attempt: Attempt, reading: DocumentFacts) -> Counter[tuple[str, str]]:
    """Return the URLs that a document's limits dropped, by rule and host; an incompletely read document counts as
    one.
    """
    may_link = attempt.kind is not UrlKind.REQUISITE and reading.form is not BodyForm.OTHER
    is_unread = may_link and not _UNREAD.isdisjoint((*reading.notes, reading.problem))
    if page.outcome is not Outcome.SUCCESS or not (reading.links_over or reading.resources_over or is_unread):
        return Counter()
    host = parse(page.hops[-1].url).host
    counts = Counter({("over_limit:links", host): reading.links_over, ("over_limit:unread", host): int(is_unread)})
    counts["over_limit:requisites", host] = reading.resources_over
    return +counts


def _generation(attempt: Attempt) -> int:
    """Return the generation of a document's requisites: 0 below a page, one more below a requisite."""
    return 0 if attempt.kind is UrlKind.PAGE else attempt.generation + 1


def _read_sitemap(known: DocumentFacts, body: bytes, url: str) -> DocumentFacts:
    sitemap = parse_sitemap(body, url)
    notes = (*known.notes, *sitemap.problems)
    return replace(known, listed=sitemap.urls, children=sitemap.children, links_over=sitemap.over, notes=notes)


def _read_feed(known: DocumentFacts, body: bytes, charset: str | None) -> DocumentFacts:
    feed = parse_feed(body, charset=charset)
    return replace(known, feed=feed, notes=(*known.notes, *feed.problems))


def _read_page(known: DocumentFacts, page: ParsedPage) -> DocumentFacts:
    problem = next((note for note in page.problems if note in _FATAL), None)
    return DocumentFacts(
        page=page,
        links=() if page.nofollow else page.links,
        resources=page.resources,
        links_over=0 if page.nofollow else page.links_over,
        resources_over=page.resources_over,
        content_hash=known.content_hash,
        form=known.form,
        problem=problem,
        notes=(*known.notes, *page.problems),
    )


def _hash(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
