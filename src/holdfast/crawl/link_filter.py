"""Which of the addresses that a document names are added to a crawl, and by which rule the others are left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import field
from threading import Lock

from cachetools import LRUCache

from holdfast.clock import Clock, to_micros
from holdfast.config import Settings
from holdfast.crawl.plan import CrawlScope
from holdfast.crawl.robots_gate import SITEMAP_PRIORITY
from holdfast.parse import FeedEntry
from holdfast.types import FoundUrl, Link, ListedUrl, Outcome, PolledListing, UrlKind
from holdfast.urls import SEED_RULE, Base, ResolvedLink, TrapGuard, TrapLimits, Url, priority, resolve
from holdfast.values import dataclass

MAX_LINKS = 20_000
"""New addresses of one kind that are taken from one document; those beyond are counted as over_limit."""
URLS_PER_S = 100.0
"""New URLs a second from one discovering domain; more are only delayed."""
BURST_URLS = 1000
"""New URLs of a domain that pass at once before its pace counts."""
# Discovering domains whose pace is remembered: more are not asked within the ten seconds that a burst is worth.
_PACED_DOMAINS = 10_000
# Above every page: what a captured page needs is fetched before the next page, so that it replays whole.
REQUISITE_PRIORITY = 4
MAX_GENERATIONS = 10
"""How far what a requisite needs is fetched: a style sheet or a script may import one that imports one, but not for
ever. Each generation ranks above the one before."""
# Redirects between domains rank above every generation.
_RANKED_GENERATIONS = 5
# The depth of an undiscovered address: larger than every real depth.
_UNMET = 1 << 62
# The depth of an address that a limit left out; a later document that links to it may still add it.
_OVER_LIMIT = 1 << 61
# The depth of an address that lies too deep; a shorter way may still lead there.
_TOO_DEEP = 1 << 60
# Each host is a row in the database, and a hostile page may name a thousand that there are not.
MAX_EXCLUDED_HOSTS = 10_000
"""Hosts of links left out that are counted by name in one process."""
OTHER_HOSTS = "(other hosts)"
"""Stands for all hosts beyond them."""


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
    refused: tuple[Outcome, str] | None = None
    """How a redirect ends that is not followed."""


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
        linked = self._resolve(base, [link.url for link in links], page.host, sieved)
        self._take(linked, UrlKind.PAGE, depth + 1, sieved, most=MAX_LINKS)
        if self._requisites:
            needed = self._resolve(base, [link.url for link in resources], page.host, sieved)
            most = MAX_LINKS if generation <= MAX_GENERATIONS else 0
            self._take(needed, UrlKind.REQUISITE, depth, sieved, generation, most=most)
        if len(sieved.found) > 1:
            self._pace(page.domain, sieved)
        return sieved

    def _resolve(self, base: Base, hrefs: list[str], host: str, sieved: SievedLinks) -> list[ResolvedLink]:
        """Return the addresses that references spell; those that spell none are counted."""
        found, dropped = base.resolve(hrefs)
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
        self,
        resolved: Iterable[ResolvedLink],
        kind: UrlKind,
        depth: int,
        sieved: SievedLinks,
        generation: int = 0,
        *,
        most: int = _UNMET,
    ) -> None:
        """Add the addresses that are new and in scope, at most so many; what limits leave out is counted once."""
        most += len(sieved.found)
        with self._lock:
            rules = self._scope.rules
            if rules is not self._rules:  # a seed has landed: what was left out before is judged anew
                self._rules, self._seen = rules, SeenUrls(self._most, self._forgot)
                self._forgot()
            # What is no page may be embedded, and what is embedded may be a page too: each sighting is judged once.
            salt = 0 if kind is UrlKind.PAGE else 1
            met_at = 0 if salt else depth
            over = "over_limit:requisites" if salt else "over_limit:links"
            counted = {_OVER_LIMIT: over, _TOO_DEEP: "max_depth"}
            depth_of = self._seen.recent.get
            for link in resolved:
                # Most links of a page were met before: for them this look is all.
                if depth_of(link.hash64 ^ salt, _UNMET) <= met_at:
                    continue
                known = self._seen.add(link.hash64 ^ salt, met_at)
                if known in counted:  # it is judged anew, and counts by what comes of that
                    sieved.excluded[counted[known], self._counted_as(link.host)] -= 1
                elif known is not None:
                    if met_at < known and rules.decide(link, depth, kind).allowed:
                        rank = _rank(link, kind, depth)
                        sieved.shallower.append(FoundUrl(link.fetch, link.hash64, link.domain, kind, depth, rank))
                    continue
                verdict = rules.decide(link, depth, kind)
                if verdict.allowed and len(sieved.found) >= most:
                    sieved.excluded[over, self._counted_as(link.host)] += 1
                    self._seen.recent[link.hash64 ^ salt] = _OVER_LIMIT
                    continue
                trap = self._traps.refuses(link) if verdict.allowed else None
                if not verdict.allowed or trap is not None:
                    sieved.excluded[trap or verdict.rule, self._counted_as(link.host)] += 1
                    if verdict.rule == "max_depth":
                        self._seen.recent[link.hash64 ^ salt] = _TOO_DEEP
                    continue
                if verdict.rule == SEED_RULE or (kind is UrlKind.REQUISITE and rules.is_seed(link.hash64)):
                    # It may be met before it is added as a seed: whichever comes first, it is one.
                    rank = priority(link.normalised, 0, is_seed=True)
                    sieved.found.append(FoundUrl(link.fetch, link.hash64, link.domain, UrlKind.PAGE, 0, rank))
                    continue
                rank = _rank(link, kind, depth) + min(generation, _RANKED_GENERATIONS)
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
        """Delay what a domain discovers beyond 100 URLs a second and a burst of 1,000."""
        now = self._clock.monotonic()
        with self._lock:  # two threads that make room in the cache at once would raise KeyError
            ready = max(self.ready_at.get(domain, 0.0), now - BURST_URLS / URLS_PER_S)
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
