"""Reading a stored page: decoded, parsed by what it is, turned into addresses to add. Never raises for content."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from datetime import datetime
from functools import partial
from threading import Lock

from cachetools import LRUCache

from holdfast import parse as parsing
from holdfast.clock import Clock, to_micros
from holdfast.config import Settings
from holdfast.crawl.domain_worker import CaptureHistory
from holdfast.crawl.outcomes import PageUnderWay, StoredExchange
from holdfast.crawl.plan import CrawlScope
from holdfast.crawl.robots_gate import SITEMAP_PRIORITY
from holdfast.errors import UrlRefused
from holdfast.fetch.endings import parse_retry_after
from holdfast.parse import (
    FeedEntry,
    FeedParse,
    ParseChild,
    ParseProblem,
    css_links,
    looks_pathological,
    parse_feed,
    parse_page,
    parse_sitemap,
)
from holdfast.parse.charset import BodyForm, sniff
from holdfast.types import (
    Attempt,
    Fetched,
    FoundUrl,
    Link,
    ListedUrl,
    Original,
    Outcome,
    PageToReread,
    ParsedPage,
    PolledListing,
    UrlKind,
)
from holdfast.urls import (
    DEFAULT,
    SEED_RULE,
    Base,
    Normalisation,
    ResolvedLink,
    TrapGuard,
    TrapLimits,
    Url,
    parse,
    priority,
    resolve,
)
from holdfast.values import dataclass
from holdfast.warc.payload import HttpHead, decode, parse_head

MAX_LINKS = 1000
"""Links taken from one page; the rest are counted as over_limit."""
URLS_PER_S = 100.0
"""New URLs a second from one discovering domain; more are only delayed."""
# Discovering domains whose pace is remembered: more are not asked within the ten seconds that a burst is worth.
_PACED_DOMAINS = 10_000
# Above every page: what a captured page needs is fetched before the next page, so that it replays whole.
REQUISITE_PRIORITY = 4
MAX_GENERATIONS = 5
"""How far what a requisite needs is fetched: a style sheet may import one that imports one, but not for ever. Each
generation ranks above the one before."""
# The depth of what was not met yet: no way is as long.
_UNMET = 1 << 62
# Each host is a row in the database, and a hostile page may name a thousand that there are not.
MAX_EXCLUDED_HOSTS = 10_000
"""Hosts of links left out that are counted by name in one process."""
OTHER_HOSTS = "(other hosts)"
"""Stands for all hosts beyond them."""
# Added after a redirect from one domain to another: such a target is asked first.
HOP_PRIORITY = 10


@dataclass(slots=True)
class SievedLinks:
    """What came through, and what did not."""

    found: list[FoundUrl] = field(default_factory=list)
    shallower: list[FoundUrl] = field(default_factory=list)
    """Pages that were met before, further away."""
    excluded: Counter[tuple[str, str]] = field(default_factory=Counter)
    listing: PolledListing | None = None
    """What a feed or a sitemap said that is polled."""
    feeds: list[FoundUrl] = field(default_factory=list)
    """Feeds that a page refers to."""


class SeenUrls:
    """Addresses that this process has met, with the smallest depth of each."""

    # Two generations, so that memory stays bounded (about 100 bytes a URL): the older half is dropped as a whole, which
    # costs nothing for each address, and the database knows what was forgotten.

    def __init__(self, limit: int, forgot: Callable[[], None] = lambda: None) -> None:
        """`forgot` is called when the older half is dropped."""
        self._half, self._forgot = max(1, limit // 2), forgot
        self.recent: dict[int, int] = {}
        """Those that were met last, with their depths."""
        self._old: dict[int, int] = {}

    def add(self, url_hash: int, depth: int = 0) -> int | None:
        """Remember an address; return the depth at which it was met before, None if it was not."""
        known = self.recent.get(url_hash)
        if known is None:
            known = self._old.get(url_hash)
        if known is None or depth < known:
            self.recent[url_hash] = depth
            if len(self.recent) >= self._half:
                if self._old:
                    self._forgot()
                self._old, self.recent = self.recent, {}
        return known

    def forget(self, url_hash: int) -> None:
        """Let an address that was just added be met anew."""
        self.recent.pop(url_hash, None)
        self._old.pop(url_hash, None)

    def __len__(self) -> int:
        return len(self.recent) + len(self._old)


class LinkSieve:
    """Which of the addresses that documents name are added. One per process, used by the threads that parse."""

    def __init__(
        self, scope: CrawlScope, settings: Settings, clock: Clock, *, forgot: Callable[[], None] = lambda: None
    ) -> None:
        """`forgot` is called when addresses that are in the database may be met again as if they were new."""
        self._scope, self._clock, self._forgot = scope, clock, forgot
        # The thread that parses and the one for slow documents both sieve.
        self._lock = Lock()
        self._rules = scope.rules
        self._most = settings.engine.known_urls
        self._seen = SeenUrls(self._most, forgot)
        traps = settings.traps
        self._traps = TrapGuard(
            TrapLimits(
                query_variants=traps.query_variants,
                domains=traps.hosts,
                directory_urls=traps.directory_urls,
                domain_urls=traps.domain_urls,
            )
        )
        self._requisites = scope.plan.requisites and scope.plan.keeps_bodies
        self.ready_at: LRUCache[str, float] = LRUCache(_PACED_DOMAINS)
        """From when on the links of a discovering domain count against its pace (monotonic)."""
        self._excluded_hosts: set[str] = set()

    def sift(
        self,
        page: Url,
        base_href: str | None,
        links: Iterable[Link],
        resources: Iterable[Link],
        depth: int,
        generation: int = 0,
    ) -> SievedLinks:
        """Return the addresses to add from one document at this depth; its requisites are of this generation."""
        sieved = SievedLinks()
        base = Base(page, base_href, self._scope.normalisation)
        self._take(
            self._resolve(base, [link.url for link in links], page.host, sieved), UrlKind.PAGE, depth + 1, sieved
        )
        if self._requisites:
            needed = [link.url for link in resources]
            if needed and generation > MAX_GENERATIONS:
                sieved.excluded["over_limit:requisites", page.host] += len(needed)
            else:
                self._take(self._resolve(base, needed, page.host, sieved), UrlKind.REQUISITE, depth, sieved, generation)
        if len(sieved.found) > 1:
            self._pace(page.domain, sieved)
        return sieved

    def _resolve(self, base: Base, hrefs: list[str], host: str, sieved: SievedLinks) -> list[ResolvedLink]:
        """Return the addresses that references spell, at most a thousand; what is over, or is none, is counted."""
        if len(hrefs) > MAX_LINKS:
            sieved.excluded["over_limit:links", host] += len(hrefs) - MAX_LINKS
        found, dropped = base.resolve(hrefs[:MAX_LINKS])
        if dropped:
            sieved.excluded["not_an_address", host] += dropped
        return found

    def sift_listed(self, base_url: str, urls: Iterable[str], kind: UrlKind, depth: int) -> SievedLinks:
        """Return the addresses to add from a list that says what they are (a sitemap)."""
        sieved = SievedLinks()
        self._take(resolve(Base(base_url, policy=self._scope.normalisation), urls), kind, depth, sieved)
        return sieved

    def sift_entries(
        self, base_url: str, entries: Iterable[FeedEntry], kind: UrlKind, sieved: SievedLinks
    ) -> list[ListedUrl]:
        """Return what a polled feed or sitemap names, in scope and with its dates; met before or not."""
        base, listed = Base(base_url, policy=self._scope.normalisation), []
        for url, told_at in entries:
            for link in base.resolve((url,)).links:
                verdict = self._scope.rules.decide(link, 0, kind)
                if verdict.allowed:
                    listed.append(ListedUrl(FoundUrl(link.fetch, link.hash64, link.domain, kind, 0, 0), told_at))
                else:
                    sieved.excluded[verdict.rule, self._counted_as(link.host)] += 1
        return listed

    def one(self, base_url: str, url: str, kind: UrlKind, depth: int) -> SievedLinks:
        """Return the one address that a redirect points to, if it is in scope and new."""
        return self.sift_listed(base_url, [url], kind, depth)

    def forget(self, found: Iterable[FoundUrl]) -> None:
        """Let addresses be met anew whose page could not be settled: they were not added, and it is read again."""
        with self._lock:
            for one in found:
                self._seen.forget(one.url_hash ^ (0 if one.kind is UrlKind.PAGE else 1))
        self._forgot()

    def _take(
        self, resolved: Iterable[ResolvedLink], kind: UrlKind, depth: int, sieved: SievedLinks, generation: int = 0
    ) -> None:
        with self._lock:
            rules = self._scope.rules
            if rules is not self._rules:  # a seed has landed: what was left out before is judged anew
                self._rules, self._seen = rules, SeenUrls(self._most, self._forgot)
                self._forgot()
            # What is no page may be embedded, and what is embedded may be a page too: each sighting is judged once.
            salt = 0 if kind is UrlKind.PAGE else 1
            met_at = 0 if salt else depth
            depth_of = self._seen.recent.get
            for link in resolved:
                # Most links of a page were met before: for them this look is all.
                if depth_of(link.hash64 ^ salt, _UNMET) <= met_at:
                    continue
                known = self._seen.add(link.hash64 ^ salt, met_at)
                if known is not None:
                    if met_at < known and rules.decide(link, depth, kind).allowed:
                        rank = _rank(link, kind, depth)
                        sieved.shallower.append(FoundUrl(link.fetch, link.hash64, link.domain, kind, depth, rank))
                    continue
                verdict = rules.decide(link, depth, kind)
                trap = self._traps.refuses(link) if verdict.allowed else None
                if not verdict.allowed or trap is not None:
                    sieved.excluded[trap or verdict.rule, self._counted_as(link.host)] += 1
                    if verdict.rule == "max_depth":
                        self._seen.forget(link.hash64 ^ salt)  # a shorter way may lead there
                    continue
                if verdict.rule == SEED_RULE or (kind is UrlKind.REQUISITE and rules.is_seed(link.hash64)):
                    # It may be met before it is added as a seed: whichever comes first, it is one.
                    rank = priority(link.normalised, 0, is_seed=True)
                    sieved.found.append(FoundUrl(link.fetch, link.hash64, link.domain, UrlKind.PAGE, 0, rank))
                    continue
                rank = _rank(link, kind, depth) + generation
                sieved.found.append(
                    FoundUrl(link.fetch, link.hash64, link.domain, kind, depth, rank, generation=generation)
                    if generation
                    else FoundUrl(link.fetch, link.hash64, link.domain, kind, depth, rank)
                )

    def _counted_as(self, host: str) -> str:
        """Return the name under which a link to this host is counted that was left out."""
        known = self._excluded_hosts
        if host in known:
            return host
        if len(known) >= MAX_EXCLUDED_HOSTS:
            return OTHER_HOSTS
        known.add(host)
        return host

    def _pace(self, domain: str, sieved: SievedLinks) -> None:
        """Delay what a domain discovers beyond 100 URLs a second; a burst of one page's links passes at once."""
        now = self._clock.monotonic()
        with self._lock:  # two threads that make room in the cache at once would raise KeyError
            ready = max(self.ready_at.get(domain, 0.0), now - MAX_LINKS / URLS_PER_S)
            late = ready + len(sieved.found) / URLS_PER_S - now
            self.ready_at[domain] = ready + len(sieved.found) / URLS_PER_S  # forgotten, it may pass one burst more
        if late > 0:
            first = max(0, len(sieved.found) - int(late * URLS_PER_S))
            start = to_micros(self._clock.now())
            sieved.found[first:] = [
                found._replace(scheduled_for=start + int((n + 1) / URLS_PER_S * 1e6))
                for n, found in enumerate(sieved.found[first:])
            ]


def _rank(link: ResolvedLink, kind: UrlKind, depth: int) -> int:
    if kind is UrlKind.PAGE:
        return priority(link.normalised, depth)
    return REQUISITE_PRIORITY if kind is UrlKind.REQUISITE else SITEMAP_PRIORITY


MAX_FEEDS = 20
"""Feeds that are taken from one page."""
_FOR_GOOD = (301, 308)
_FEED = FeedParse()


def sift_poll(sieve: LinkSieve, hops: Sequence[Fetched], feed: FeedParse | None, now: datetime) -> SievedLinks:
    """Return what a poll brought: the items in scope with their dates, where it moved to, how long to stay away."""
    sieved, last = SievedLinks(), hops[-1]
    read = feed or _FEED
    sieved.listing = PolledListing(
        is_feed=read.form is not None and read.form.is_feed,
        items=tuple(sieve.sift_entries(last.url, read.entries, UrlKind.PAGE, sieved)),
        children=tuple(sieve.sift_entries(last.url, read.children, UrlKind.SITEMAP, sieved)),
        named=len(read.entries) + len(read.children),
        problem=_problem(last, feed),
        moved_to=_moved_to(hops),
        retry_after_s=parse_retry_after(parse_head(last.response_head).get("retry-after"), now),
    )
    return sieved


def feeds_of(
    page: Url, base_href: str | None, links: Iterable[Link], policy: Normalisation = DEFAULT
) -> list[FoundUrl]:
    """Return the feeds that a page names (`rel=alternate` with the type of a feed), resolved, at most twenty."""
    hrefs = [link.url for link in links if link.rel == "feed"][:MAX_FEEDS]
    if not hrefs:
        return []
    found = Base(page, base_href, policy).resolve(hrefs).links
    return [FoundUrl(link.fetch, link.hash64, link.domain, UrlKind.SITEMAP, 1, 0) for link in found]


def _problem(answer: Fetched, feed: FeedParse | None) -> str | None:
    """Return why a good answer could not be read: it is nothing that we know, or too large to be looked at."""
    if answer.status == 304 or not 200 <= answer.status < 300:
        return None
    return "too_large_to_parse" if feed is None else feed.failure


def _moved_to(hops: Sequence[Fetched]) -> str | None:
    """Return where a list has moved for good."""
    # Only where it was found, so that a mistake of a day loses no feed.
    is_found = 200 <= hops[-1].status < 300 or hops[-1].status == 304
    return hops[-1].url if len(hops) > 1 and is_found and all(hop.status in _FOR_GOOD for hop in hops[:-1]) else None


UNREADABLE = "original_unreadable"
"""The problem of a 304 whose original cannot be read: the page must be asked for again, without a condition."""
_FATAL = (ParseProblem.PARSE_TIMEOUT, ParseProblem.PARSE_CRASHED)
_HTML = ("text/html", "application/xhtml+xml")
_SITEMAP_DEPTH = 3
# One index may name as many, and each of them again.
MAX_SITEMAPS = 50_000
"""Sitemaps that one process takes from indexes."""
# Sitemaps from here on take a second thread: 50,000 addresses cost about a second, and ten times as much is packed.
_SLOW_SITEMAP_BYTES = 256 * 1024
_SLOW_GZIP_BYTES = 16 * 1024
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFacts:
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
    form: BodyForm | None = None
    """What kind of document it is; None where there is none to read."""
    problem: str | None = None
    """Why the document could not be read to its end."""
    notes: tuple[str, ...] = ()
    """What went less than well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowDocument:
    """A document that takes long: the call that reads it, and how much memory it holds until then."""

    call: Callable[[], DocumentFacts]
    size: int


_NOTHING = DocumentFacts()


class DocumentReader:
    """Reads documents for one process; suspicious ones in a child that can be killed."""

    def __init__(
        self,
        scope: CrawlScope,
        originals: CaptureHistory,
        child: ParseChild,
        settings: Settings,
        clock: Clock,
        landed: Callable[[Url], None],
    ) -> None:
        """`landed` is called with where a seed's redirect leads."""
        self._scope, self._originals, self._child, self._clock, self._landed = scope, originals, child, clock, landed
        self._plan, self._normalisation = scope.plan, scope.normalisation
        self.max_bytes = settings.parse.max_bytes
        most = self._plan.max_pages
        # With one page from each, a crawl has all that it may have.
        self._sitemaps_left = MAX_SITEMAPS if most is None else min(max(most, 1), MAX_SITEMAPS)
        """Sitemaps of indexes that may still be added."""
        # Two threads take from what is left: counted twice it would fall below zero, and then limit nothing.
        self._counting = Lock()

    def may_refer_to(self, attempt: Attempt) -> Original | None:
        """Return the original that a revisit of this page may point to: one that is still there."""
        return attempt.original if self._originals.readable(attempt) else None

    def read(self, page: PageUnderWay, attempt: Attempt, stored: StoredExchange) -> DocumentFacts | SlowDocument:
        """Return what the last answer of a page says; a 304 says what the page's original said.

        A document that looks pathological comes back as a call, to be made where it can wait (it takes seconds).
        """
        head, payload = stored.head, stored.payload
        if page.redirected_to is not None:
            return _NOTHING
        if head.status == 304 and self._polls(attempt):
            return _NOTHING  # nothing new, and what was known before is written down
        if head.status == 304 and attempt.original is not None:
            original = self._originals.load(attempt.original)
            if original is None:
                return DocumentFacts(problem=UNREADABLE)
            return self._document(page.hops[-1].url, attempt, *original, "")
        if payload is None:
            problem = "too_large_to_parse" if head.media_type in _HTML else None
            return DocumentFacts(problem=problem, form=sniff(b"", head.media_type).form)
        if not 200 <= head.status < 300:
            return DocumentFacts(content_hash=_hash(payload))
        return self._document(page.hops[-1].url, attempt, head, payload, stored.payload_digest)

    def read_again(self, reread: PageToReread, sieve: LinkSieve) -> list[FoundUrl]:
        """Return where a page leads, seen from a smaller depth than before, by what is stored of it."""
        sieved = self._sift_again(reread, sieve)
        return [*sieved.found, *sieved.shallower]

    def _sift_again(self, reread: PageToReread, sieve: LinkSieve) -> SievedLinks:
        url, original = parse(reread.base, self._normalisation), reread.attempt.original
        if reread.leads_to is not None:
            return sieve.one(url.fetch, reread.leads_to, UrlKind.PAGE, reread.depth)
        stored = self._originals.load(original) if original is not None else None
        if stored is None:
            return sieve.sift(url, None, [Link(link, "a") for link in reread.links], (), reread.depth)
        # In the child, whatever it looks like: no watch over this thread would notice a parser that hangs.
        reading = self._document(url.fetch, reread.attempt, *stored, "", in_child=True)
        reading = reading.call() if isinstance(reading, SlowDocument) else reading
        return sieve.sift(url, reading.page.base if reading.page is not None else None, reading.links, (), reread.depth)

    def _document(
        self, url: str, attempt: Attempt, head: HttpHead, payload: bytes, digest: str, *, in_child: bool = False
    ) -> DocumentFacts | SlowDocument:
        body, notes = decode(head, payload)
        # Where nothing was decoded, the payload's digest is the content's.
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
        # What says that it is a page is looked at by the page parser itself.
        is_page = head.media_type in _HTML and self._plan.keeps_bodies
        form = BodyForm.HTML if is_page else sniff(body, head.media_type).form
        known = DocumentFacts(content_hash=content_hash, notes=notes, form=form)
        if form is BodyForm.CSS:
            return replace(known, resources=css_links(body, head.charset))
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
            return SlowDocument(call=lambda: _read_page(known, self._child.parse(body, **how)), size=len(body))
        return _read_page(known, parse_page(body, **how))

    def sift(self, sieve: LinkSieve, page: PageUnderWay, attempt: Attempt, reading: DocumentFacts) -> SievedLinks:
        """Return the addresses that a page brings: links, requisites, listed pages, or where it was sent to."""
        if page.redirected_to is not None:
            if page.outcome is not Outcome.SUCCESS:
                return SievedLinks()  # it leads too far, out of scope, or where robots.txt forbids
            return self._sift_redirect(sieve, page.hops[-1].url, attempt, page.redirected_to)
        if self._polls(attempt):
            return sift_poll(sieve, page.hops, reading.feed, self._clock.now())
        if attempt.kind is UrlKind.SITEMAP:
            return self._sift_sitemap(sieve, parse(page.hops[-1].url, self._normalisation), attempt.depth, reading)
        if (not reading.links and not reading.resources) or page.outcome is Outcome.EXCLUDED:
            return SievedLinks()
        url = parse(page.hops[-1].url, self._normalisation)
        base = reading.page.base if reading.page is not None else None
        links = reading.links
        if attempt.kind is UrlKind.REQUISITE and not self._scope.rules.decide(url, attempt.depth, UrlKind.PAGE).allowed:
            links = ()  # a frame from elsewhere: what it needs is fetched, where it leads is not
        sieved = sieve.sift(url, base, links, reading.resources, attempt.depth, _generation(attempt))
        if self._plan.feeds != "off" and attempt.kind is UrlKind.PAGE:
            sieved.feeds = feeds_of(url, base, reading.links, self._normalisation)
        return sieved

    def _sift_sitemap(self, sieve: LinkSieve, url: Url, depth: int, reading: DocumentFacts) -> SievedLinks:
        """Return the pages and the sitemaps that a sitemap lists; of those no more than there may be pages."""
        sieved = sieve.sift_listed(url.fetch, reading.listed, UrlKind.PAGE, 1)
        if reading.children and depth >= _SITEMAP_DEPTH:
            sieved.excluded["over_limit:sitemap_depth", url.host] += len(reading.children)
        elif reading.children:
            children = sieve.sift_listed(url.fetch, reading.children, UrlKind.SITEMAP, depth + 1)
            with self._counting:
                taken = children.found[: self._sitemaps_left]
                self._sitemaps_left -= len(taken)
            sieved.found += taken
            sieved.excluded += children.excluded
            if over := len(children.found) - len(taken):
                sieved.excluded["over_limit:sitemaps", url.host] += over
        return sieved

    def _polls(self, attempt: Attempt) -> bool:
        return attempt.kind is UrlKind.SITEMAP and self._plan.polls

    def _sift_redirect(self, sieve: LinkSieve, base: str, attempt: Attempt, target: str) -> SievedLinks:
        try:
            url = parse(target, self._normalisation)
        except UrlRefused:
            return SievedLinks()
        # Items of feeds are at depth 0 too, but no seeds: where they lead widens no scope.
        if attempt.depth == 0 and attempt.kind is UrlKind.PAGE and not self._plan.polls:
            self._landed(url)
        sieved = sieve.one(base, target, attempt.kind, attempt.depth)
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
    return 0 if attempt.kind is UrlKind.PAGE else attempt.generation + 1


def _read_sitemap(known: DocumentFacts, body: bytes, url: str) -> DocumentFacts:
    sitemap = parse_sitemap(body, url)
    return replace(known, listed=sitemap.urls, children=sitemap.children, notes=(*known.notes, *sitemap.problems))


def _read_feed(known: DocumentFacts, body: bytes, charset: str | None) -> DocumentFacts:
    feed = parse_feed(body, charset=charset)
    return replace(known, feed=feed, notes=(*known.notes, *feed.problems))


def _read_page(known: DocumentFacts, page: ParsedPage) -> DocumentFacts:
    problem = next((note for note in page.problems if note in _FATAL), None)
    return DocumentFacts(
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
