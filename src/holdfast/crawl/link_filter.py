"""Decides which URLs of a document are added to a crawl, and which rule excludes the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import field
from threading import Lock

from cachetools import LRUCache

from holdfast.clock import Clock, to_micros
from holdfast.config import Settings
from holdfast.crawl.assignment import CrawlScope
from holdfast.crawl.robots_gate import SITEMAP_PRIORITY
from holdfast.parse import FeedEntry
from holdfast.types import FoundUrl, Link, ListedUrl, Outcome, PolledListing, UrlKind
from holdfast.urls import SEED_RULE, Base, ResolvedLink, TrapGuard, TrapLimits, Url, priority, resolve
from holdfast.values import dataclass

MAX_LINKS = 20_000
"""Limit of new URLs of one kind from one document; those beyond are counted as over_limit."""
URLS_PER_S = 100.0
"""New URLs per second from one discovering domain; more are only delayed."""
BURST_URLS = 1000
"""New URLs of a domain that pass undelayed before the rate limit applies."""
# Number of discovering domains whose pace is remembered: no more are requested within the ten seconds of a burst.
_PACED_DOMAINS = 10_000
# Above every page: fetch the requisites of a captured page before the next page, so that it replays completely.
REQUISITE_PRIORITY = 4
MAX_GENERATIONS = 10
"""Depth limit for requisites of requisites: a style sheet or script may import others, but not forever. Each
generation ranks above the one before.
"""
# Redirects between domains rank above every generation.
_RANKED_GENERATIONS = 5
# The depth of an undiscovered address: larger than every real depth.
_UNMET = 1 << 62
# The depth of a URL that a limit excluded; a later document that links to it may still add it.
_OVER_LIMIT = 1 << 61
# The depth of a URL that is too deep; a shorter path may still lead there.
_TOO_DEEP = 1 << 60
# Each host is a row in the database, and a hostile page may link to a thousand hosts that do not exist.
MAX_EXCLUDED_HOSTS = 10_000
"""Limit of hosts counted by name in one process for excluded links."""
OTHER_HOSTS = "(other hosts)"
"""Stands for all hosts beyond that limit."""


@dataclass(slots=True)
class FilteredLinks:
    found: list[FoundUrl] = field(default_factory=list)
    shallower: list[FoundUrl] = field(default_factory=list)
    """Pages already seen at a greater depth."""
    excluded: Counter[tuple[str, str]] = field(default_factory=Counter)
    listing: PolledListing | None = None
    """Content of a polled feed or sitemap."""
    feeds: list[FoundUrl] = field(default_factory=list)
    refused: tuple[Outcome, str] | None = None
    """How a redirect that is not followed ends."""


class SeenUrls:
    """URLs this process has seen, with the smallest depth of each."""

    # Two generations bound the memory (about 100 bytes per URL): the older half is dropped as a whole, at no cost per
    # URL, and the database knows the forgotten ones.

    def __init__(self, limit: int, forgot: Callable[[], None] = lambda: None) -> None:
        """`forgot` is called when the older half is dropped."""
        self._half, self._forgot = max(1, limit // 2), forgot
        self.recent: dict[int, int] = {}
        """Those that were met last, with their depths."""
        self._old: dict[int, int] = {}

    def add(self, url_hash: int, depth: int = 0) -> int | None:
        """Record a URL; return the depth at which it was seen before, None if it is new."""
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
        self.recent.pop(url_hash, None)
        self._old.pop(url_hash, None)

    def __len__(self) -> int:
        return len(self.recent) + len(self._old)


class LinkFilter:
    def __init__(
        self, scope: CrawlScope, settings: Settings, clock: Clock, *, forgot: Callable[[], None] = lambda: None
    ) -> None:
        """`forgot` is called when URLs that are in the database may be seen again as if they were new."""
        self._scope, self._clock, self._forgot = scope, clock, forgot
        # Both the parsing thread and the one for slow documents filter.
        self._lock = Lock()
        self._rules = scope.rules
        self._most = settings.engine.known_urls
        self._seen = SeenUrls(self._most, forgot)
        limits = settings.timings
        self._traps = TrapGuard(
            TrapLimits(
                query_variants=limits.traps_query_variants,
                domains=limits.traps_hosts,
                directory_urls=limits.traps_directory_urls,
                domain_urls=limits.traps_domain_urls,
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
    ) -> FilteredLinks:
        """Return the URLs to add from a document at this depth; `generation` is that of its requisites."""
        filtered = FilteredLinks()
        base = Base(page, base_href, self._scope.normalisation)
        linked = self._resolve(base, [link.url for link in links], page.host, filtered)
        self._take(linked, UrlKind.PAGE, depth + 1, filtered, most=MAX_LINKS)
        if self._requisites:
            needed = self._resolve(base, [link.url for link in resources], page.host, filtered)
            most = MAX_LINKS if generation <= MAX_GENERATIONS else 0
            self._take(needed, UrlKind.REQUISITE, depth, filtered, generation, most=most)
        if len(filtered.found) > 1:
            self._pace(page.domain, filtered)
        return filtered

    def _resolve(self, base: Base, hrefs: list[str], host: str, filtered: FilteredLinks) -> list[ResolvedLink]:
        found, dropped = base.resolve(hrefs)
        if dropped:
            filtered.excluded["not_an_address", host] += dropped
        return found

    def sift_listed(self, base_url: str, urls: Iterable[str], kind: UrlKind, depth: int) -> FilteredLinks:
        """Return the URLs to add from a list that states their kind (a sitemap)."""
        filtered = FilteredLinks()
        self._take(resolve(Base(base_url, policy=self._scope.normalisation), urls), kind, depth, filtered)
        return filtered

    def sift_entries(
        self, base_url: str, entries: Iterable[FeedEntry], kind: UrlKind, filtered: FilteredLinks
    ) -> list[ListedUrl]:
        """Return the in-scope entries of a polled feed or sitemap with their dates, including URLs seen before."""
        base, listed = Base(base_url, policy=self._scope.normalisation), []
        for url, told_at in entries:
            for link in base.resolve((url,)).links:
                verdict = self._scope.rules.decide(link, 0, kind)
                if verdict.allowed:
                    listed.append(ListedUrl(FoundUrl(link.fetch, link.hash64, link.domain, kind, 0, 0), told_at))
                else:
                    filtered.excluded[verdict.rule, self._counted_as(link.host)] += 1
        return listed

    def one(self, base_url: str, url: str, kind: UrlKind, depth: int) -> FilteredLinks:
        """Return the target of a redirect if it is in scope and new."""
        return self.sift_listed(base_url, [url], kind, depth)

    def forget(self, found: Iterable[FoundUrl]) -> None:
        """Remove URLs whose page could not be settled: they were not added, and the page will be read again."""
        with self._lock:
            for one in found:
                self._seen.forget(one.url_hash ^ (0 if one.kind is UrlKind.PAGE else 1))
        self._forgot()

    def _take(
        self,
        resolved: Iterable[ResolvedLink],
        kind: UrlKind,
        depth: int,
        filtered: FilteredLinks,
        generation: int = 0,
        *,
        most: int = _UNMET,
    ) -> None:
        """Add the URLs that are new and in scope, up to `most`; each URL dropped by a limit is counted once."""
        most += len(filtered.found)
        with self._lock:
            rules = self._scope.rules
            if rules is not self._rules:  # a seed was redirected: check excluded URLs again
                self._rules, self._seen = rules, SeenUrls(self._most, self._forgot)
                self._forgot()
            # A URL may be both embedded and a page: check each kind once.
            salt = 0 if kind is UrlKind.PAGE else 1
            met_at = 0 if salt else depth
            over = "over_limit:requisites" if salt else "over_limit:links"
            counted = {_OVER_LIMIT: over, _TOO_DEEP: "max_depth"}
            depth_of = self._seen.recent.get
            for link in resolved:
                # Most links of a page are known: for them this lookup is all.
                if depth_of(link.hash64 ^ salt, _UNMET) <= met_at:
                    continue
                known = self._seen.add(link.hash64 ^ salt, met_at)
                if known in counted:
                    # The rules decide again below, and may count the URL again.
                    filtered.excluded[counted[known], self._counted_as(link.host)] -= 1
                elif known is not None:
                    if met_at < known and rules.decide(link, depth, kind).allowed:
                        rank = _rank(link, kind, depth)
                        filtered.shallower.append(FoundUrl(link.fetch, link.hash64, link.domain, kind, depth, rank))
                    continue
                verdict = rules.decide(link, depth, kind)
                if verdict.allowed and len(filtered.found) >= most:
                    filtered.excluded[over, self._counted_as(link.host)] += 1
                    self._seen.recent[link.hash64 ^ salt] = _OVER_LIMIT
                    continue
                trap = self._traps.refuses(link) if verdict.allowed else None
                if not verdict.allowed or trap is not None:
                    filtered.excluded[trap or verdict.rule, self._counted_as(link.host)] += 1
                    if verdict.rule == "max_depth":
                        self._seen.recent[link.hash64 ^ salt] = _TOO_DEEP
                    continue
                if verdict.rule == SEED_RULE or (kind is UrlKind.REQUISITE and rules.is_seed(link.hash64)):
                    # It may be discovered before it is added as a seed: either way, it is a seed.
                    rank = priority(link.normalised, 0, is_seed=True)
                    filtered.found.append(FoundUrl(link.fetch, link.hash64, link.domain, UrlKind.PAGE, 0, rank))
                    continue
                rank = _rank(link, kind, depth) + min(generation, _RANKED_GENERATIONS)
                filtered.found.append(
                    FoundUrl(link.fetch, link.hash64, link.domain, kind, depth, rank, generation=generation)
                    if generation
                    else FoundUrl(link.fetch, link.hash64, link.domain, kind, depth, rank)
                )

    def _counted_as(self, host: str) -> str:
        known = self._excluded_hosts
        if host in known:
            return host
        if len(known) >= MAX_EXCLUDED_HOSTS:
            return OTHER_HOSTS
        known.add(host)
        return host

    def _pace(self, domain: str, filtered: FilteredLinks) -> None:
        """Delay what a domain discovers beyond 100 URLs per second and a burst of 1,000."""
        now = self._clock.monotonic()
        with self._lock:  # two threads that evict from the cache concurrently would raise KeyError
            ready = max(self.ready_at.get(domain, 0.0), now - BURST_URLS / URLS_PER_S)
            late = ready + len(filtered.found) / URLS_PER_S - now
            self.ready_at[domain] = ready + len(filtered.found) / URLS_PER_S  # a forgotten domain may burst once more
        if late > 0:
            first = max(0, len(filtered.found) - int(late * URLS_PER_S))
            start = to_micros(self._clock.now())
            filtered.found[first:] = [
                found._replace(scheduled_for=start + int((n + 1) / URLS_PER_S * 1e6))
                for n, found in enumerate(filtered.found[first:])
            ]


def _rank(link: ResolvedLink, kind: UrlKind, depth: int) -> int:
    if kind is UrlKind.PAGE:
        return priority(link.normalised, depth)
    return REQUISITE_PRIORITY if kind is UrlKind.REQUISITE else SITEMAP_PRIORITY
