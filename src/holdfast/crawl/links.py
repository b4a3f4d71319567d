"""From what a document mentions to what the frontier should add: resolved, in scope, not seen here before.

Out-of-scope links are counted by rule and host; the database's unique key remains the authority on what is new.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import field
from threading import Lock

from cachetools import LRUCache

from holdfast.clock import to_micros
from holdfast.crawl.crew import Crew
from holdfast.parse import Entry
from holdfast.types import Found, Kind, Link, Listed, Listing
from holdfast.urls import SEED_RULE, Base, Resolved, TrapGuard, TrapLimits, Url, priority, resolve
from holdfast.values import dataclass

MAX_LINKS = 1000
"""Links taken from one page (TC-027); the rest are counted as over_limit."""
URLS_PER_S = 100.0
"""New URLs a second from one discovering domain (TC-027); more are only delayed."""
_PACED_DOMAINS = 10_000
"""Discovering domains whose pace is remembered: more are not asked within the ten seconds that a burst is worth."""
REQUISITE_PRIORITY = 4
"""Above every page: what a captured page needs is fetched before the next page, so that it replays whole."""
MAX_GENERATIONS = 5
"""How far what a requisite needs is fetched: a style sheet may import one that imports one, but not for ever. Each
generation ranks above the one before."""
SITEMAP_PRIORITY = 3
_UNMET = 1 << 62
"""The depth of what was not met yet: no way is as long."""
MAX_EXCLUDED_HOSTS = 10_000
"""Hosts of links left out that are counted by name in one process. Each is a row, and a hostile page may name a
thousand that there are not."""
OTHER_HOSTS = "(other hosts)"
"""Stands for all hosts beyond them."""
HOP_PRIORITY = 10
"""Added after a redirect from one domain to another: such a target is asked first."""


@dataclass(slots=True)
class Sieved:
    """What came through, and what did not."""

    found: list[Found] = field(default_factory=list)
    shallower: list[Found] = field(default_factory=list)
    """Pages that were met before, further away."""
    excluded: Counter[tuple[str, str]] = field(default_factory=Counter)
    listing: Listing | None = None
    """What a feed or a sitemap said that is polled."""
    feeds: list[Found] = field(default_factory=list)
    """Feeds that a page refers to."""


class Seen:
    """Addresses that this process has met, with the smallest depth of each.

    Two generations, so that memory stays bounded (about 100 bytes a URL).
    """

    def __init__(self, limit: int) -> None:
        self._half = max(1, limit // 2)
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
                self._old, self.recent = self.recent, {}
        return known

    def forget(self, url_hash: int) -> None:
        """Let an address that was just added be met anew."""
        self.recent.pop(url_hash, None)
        self._old.pop(url_hash, None)

    def __len__(self) -> int:
        return len(self.recent) + len(self._old)


class Sieve:
    """One per process; used by the threads that parse, one at a time."""

    def __init__(self, crew: Crew) -> None:
        self._crew, self._clock = crew, crew.clock
        self._lock = Lock()
        self._scope = crew.scope
        self._seen = Seen(crew.settings.engine.known_urls)
        traps = crew.settings.traps
        self._traps = TrapGuard(
            TrapLimits(query_variants=traps.query_variants, domains=traps.hosts, directory_urls=traps.directory_urls,
                       domain_urls=traps.domain_urls)
        )  # fmt: skip
        self._requisites = crew.plan.requisites and crew.plan.keeps_bodies
        self._ready_at: LRUCache[str, float] = LRUCache(_PACED_DOMAINS)
        self._excluded_hosts: set[str] = set()

    def sift(self, page: Url, base_href: str | None, links: Iterable[Link], resources: Iterable[Link], depth: int,
             generation: int = 0) -> Sieved:  # fmt: skip
        """Return the addresses to add from one document at this depth; its requisites are of this generation."""
        sieved = Sieved()
        base = Base(page, base_href, self._crew.policy)
        self._take(self._resolve(base, [link.url for link in links], page.host, sieved), Kind.PAGE, depth + 1, sieved)
        if self._requisites:
            needed = [link.url for link in resources]
            if needed and generation > MAX_GENERATIONS:
                sieved.excluded["over_limit:requisites", page.host] += len(needed)
            else:
                self._take(self._resolve(base, needed, page.host, sieved), Kind.REQUISITE, depth, sieved, generation)
        if len(sieved.found) > 1:
            self._pace(page.domain, sieved)
        return sieved

    def _resolve(self, base: Base, hrefs: list[str], host: str, sieved: Sieved) -> list[Resolved]:
        """Return the addresses that references spell, at most a thousand; what is over, or is none, is counted."""
        if len(hrefs) > MAX_LINKS:
            sieved.excluded["over_limit:links", host] += len(hrefs) - MAX_LINKS
        found, dropped = base.resolve(hrefs[:MAX_LINKS])
        if dropped:
            sieved.excluded["not_an_address", host] += dropped
        return found

    def sift_listed(self, base_url: str, urls: Iterable[str], kind: Kind, depth: int) -> Sieved:
        """Return the addresses to add from a list that says what they are (a sitemap)."""
        sieved = Sieved()
        self._take(resolve(Base(base_url, policy=self._crew.policy), urls), kind, depth, sieved)
        return sieved

    def sift_entries(self, base_url: str, entries: Iterable[Entry], kind: Kind, sieved: Sieved) -> list[Listed]:
        """Return what a polled feed or sitemap names, in scope and with its dates; met before or not."""
        base, listed = Base(base_url, policy=self._crew.policy), []
        for url, told_at in entries:
            for link in base.resolve((url,)).links:
                verdict = self._crew.scope.decide(link, 0, kind)
                if verdict.allowed:
                    listed.append(Listed(Found(link.fetch, link.hash64, link.domain, kind, 0, 0), told_at))
                else:
                    sieved.excluded[verdict.rule, self._counted_as(link.host)] += 1
        return listed

    def one(self, base_url: str, url: str, kind: Kind, depth: int) -> Sieved:
        """Return the one address that a redirect points to, if it is in scope and new."""
        return self.sift_listed(base_url, [url], kind, depth)

    def forget(self, found: Iterable[Found]) -> None:
        """Let addresses be met anew whose page could not be settled: nobody has added them, and it is read again."""
        with self._lock:
            for one in found:
                self._seen.forget(one.url_hash ^ (0 if one.kind is Kind.PAGE else 1))

    def _take(self, resolved: Iterable[Resolved], kind: Kind, depth: int, sieved: Sieved, generation: int = 0) -> None:
        with self._lock:
            scope = self._crew.scope
            if scope is not self._scope:  # a seed has landed: what was left out before is judged anew
                self._scope, self._seen = scope, Seen(self._crew.settings.engine.known_urls)
            # What is no page may be embedded, and what is embedded may be a page too: each sighting is judged once.
            salt = 0 if kind is Kind.PAGE else 1
            met_at = 0 if salt else depth
            depth_of = self._seen.recent.get
            for link in resolved:
                # Most links of a page were met before: for them this look is all.
                if depth_of(link.hash64 ^ salt, _UNMET) <= met_at:
                    continue
                known = self._seen.add(link.hash64 ^ salt, met_at)
                if known is not None:
                    if met_at < known and scope.decide(link, depth, kind).allowed:
                        rank = _rank(link, kind, depth)
                        sieved.shallower.append(Found(link.fetch, link.hash64, link.domain, kind, depth, rank))
                    continue
                verdict = scope.decide(link, depth, kind)
                trap = self._traps.refuses(link) if verdict.allowed else None
                if not verdict.allowed or trap is not None:
                    sieved.excluded[trap or verdict.rule, self._counted_as(link.host)] += 1
                    if verdict.rule == "max_depth":
                        self._seen.forget(link.hash64 ^ salt)  # a shorter way may lead there
                    continue
                if verdict.rule == SEED_RULE or (kind is Kind.REQUISITE and scope.is_seed(link.hash64)):
                    # It may be met before it is added as a seed: whichever comes first, it is one.
                    rank = priority(link.normalised, 0, is_seed=True)
                    sieved.found.append(Found(link.fetch, link.hash64, link.domain, Kind.PAGE, 0, rank))
                    continue
                rank = _rank(link, kind, depth) + generation
                sieved.found.append(
                    Found(link.fetch, link.hash64, link.domain, kind, depth, rank, generation=generation)
                    if generation
                    else Found(link.fetch, link.hash64, link.domain, kind, depth, rank)
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

    def _pace(self, domain: str, sieved: Sieved) -> None:
        """Delay what a domain discovers beyond 100 URLs a second; a burst of one page's links passes at once."""
        now = self._clock.monotonic()
        ready = max(self._ready_at.get(domain, 0.0), now - MAX_LINKS / URLS_PER_S)
        late = ready + len(sieved.found) / URLS_PER_S - now
        self._ready_at[domain] = ready + len(sieved.found) / URLS_PER_S  # forgotten, it may pass one burst more
        if late > 0:
            first = max(0, len(sieved.found) - int(late * URLS_PER_S))
            start = to_micros(self._clock.now())
            sieved.found[first:] = [
                found._replace(scheduled_for=start + int((n + 1) / URLS_PER_S * 1e6))
                for n, found in enumerate(sieved.found[first:])
            ]


def _rank(link: Resolved, kind: Kind, depth: int) -> int:
    if kind is Kind.PAGE:
        return priority(link.normalised, depth)
    return REQUISITE_PRIORITY if kind is Kind.REQUISITE else SITEMAP_PRIORITY
