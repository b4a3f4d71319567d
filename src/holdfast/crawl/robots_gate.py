"""Checks URLs against their origin's robots.txt, which is fetched, archived and remembered here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Protocol

from cachetools import LRUCache

from holdfast import log
from holdfast.clock import Clock
from holdfast.config import Settings
from holdfast.crawl.assignment import CrawlScope
from holdfast.crawl.outcomes import MAX_REDIRECTS, ROBOTS, PageUnderWay, follow, is_redirect
from holdfast.crawl.paced_client import PacedClient
from holdfast.crawl.politeness import DomainPoliteness, Pace
from holdfast.errors import LeaseLost, UrlRefused
from holdfast.fetch import robots as policy
from holdfast.fetch.robots import AGENT, RobotsFile, capped
from holdfast.types import (
    Attempt,
    Fetched,
    FetchFailed,
    FetchProblem,
    FetchRequest,
    FoundUrl,
    LeaseRefusal,
    Outcome,
    RobotsAnswer,
    RobotsRecord,
    Truncated,
    UrlKind,
)
from holdfast.urls import Url, parse
from holdfast.values import dataclass
from holdfast.warc.payload import decode, parse_head, payload_chunks

MAX_ROBOTS_BYTES = 512 * 1024
SITEMAP_PRIORITY = 3
_USUAL_SITEMAP = "/sitemap.xml"
_log = log.get()
# A file of 512 KiB takes up to 30 times as much memory when parsed, and a DNS wildcard may have a thousand hosts with
# one.
MEMORY_BYTES = 64 * 1024 * 1024
"""Limit for the memory used by parsed rules in one process."""
_BUSY_ORIGINS = 10_000
_OFFERED_ORIGINS = 100_000

# When to retry a robots.txt that redirects to another process's domain: it may be free, or ours, by then. The wait
# doubles up to a minute, because each retry requests the origin again and archives its response.
_BUSY_S, _LONGEST_BUSY_S = 2.0, 60.0
_NEVER_ASKED = (FetchProblem.ADDRESS_FORBIDDEN, FetchProblem.URL_REFUSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotsPermission:
    """Decision of robots.txt about one URL. `ask_again_at` is set if it could not be read."""

    allowed: bool
    reason: str = "robots:allowed"
    message: str | None = None
    ask_again_at: datetime | None = None
    is_busy: bool = False
    """Whether it could not be requested because another process holds its domain, which is no outage."""
    outcome: Outcome = Outcome.BLOCKED_ROBOTS
    """Outcome of an attempt that is not allowed."""


_ALLOWED = RobotsPermission(allowed=True)


class EnginePort(Protocol):
    """The engine's interface for domain workers; tests pass a stub."""

    def hand_over(self, page: PageUnderWay) -> None: ...

    def borrow(self, domain: str) -> AbstractAsyncContextManager[Pace | LeaseRefusal]:
        """Yield a turn at another domain (for a robots.txt that redirects there), or why it is unavailable."""
        ...

    async def recall_robots(self, origin: str) -> RobotsRecord | None: ...


class RobotsFiles:
    """Robots files remembered by one process for all its domains: parsed rules, and which sitemaps were offered."""

    def __init__(self, scope: CrawlScope, settings: Settings, clock: Clock) -> None:
        self.scope, self.clock = scope, clock
        self.max_delay_s = settings.politeness.max_delay_s
        # Key it by origin and content, so that a domain that is leased again is not parsed again.
        self.parsed: LRUCache[tuple[str, datetime], RobotsFile] = LRUCache(
            MEMORY_BYTES, getsizeof=RobotsFile.memory_bytes
        )
        self.busy: LRUCache[str, tuple[int, datetime]] = LRUCache(_BUSY_ORIGINS)
        """Origins whose robots.txt led to a domain held by another process: how many times in a row, and when to
        check again.
        """
        self.offered: LRUCache[str, bool] = LRUCache(_OFFERED_ORIGINS)
        """Origins whose sitemaps this process has offered; one that is forgotten offers them once more."""

    def rules_of(self, state: RobotsRecord) -> RobotsFile:
        """Return the parsed rules of an origin, parsed once per process and response."""
        key = state.origin, state.fetched_at
        file = self.parsed.get(key)
        if file is None:
            file = self.parsed[key] = RobotsFile.parse(state.body, AGENT)
        return file


class RobotsGate:
    def __init__(
        self, files: RobotsFiles, politeness: DomainPoliteness, client: PacedClient, engine: EnginePort
    ) -> None:
        self._files, self._politeness, self._client, self._engine = files, politeness, client, engine
        self._normalisation = files.scope.normalisation
        self.sitemaps: list[tuple[str, tuple[str, ...]]] = []
        """Origins whose robots.txt was read, with the sitemaps that it names, until they are taken."""
        for state in politeness.robots.values():  # the rules that an earlier lease has read
            self._note(state)

    def take_sitemaps(self) -> Iterator[FoundUrl]:
        """Yield the sitemaps of origins whose robots.txt was read; a seed's origin without any gets the usual path."""
        origins, self.sitemaps = self.sitemaps, []
        scope, offered = self._files.scope, self._files.offered
        if not scope.plan.sitemaps or scope.plan.scope == "page":
            return
        for origin, named in origins:
            if origin in offered:
                continue
            # Do this here, not where a robots.txt is read: a worker for a single request reads it, too, and is released
            # without offering anything.
            offered[origin] = True
            home, is_seed = parse(f"{origin}/", self._normalisation), origin in scope.seed_origins
            if not is_seed and not scope.rules.decide(home, 0).allowed:
                continue  # do not read the sitemaps of hosts that only serve an image
            for address in named or ((f"{origin}{_USUAL_SITEMAP}",) if is_seed else ()):
                try:
                    url = follow(home, address, self._normalisation)
                except UrlRefused:
                    continue
                if scope.rules.decide(url, 1, UrlKind.SITEMAP).allowed:
                    yield FoundUrl(url.fetch, url.hash64, url.domain, UrlKind.SITEMAP, 1, SITEMAP_PRIORITY)

    def is_unnamed_sitemap(self, attempt: Attempt) -> bool:
        """Return whether an attempt requests the usual sitemap path and robots.txt names no sitemap."""
        url = parse(attempt.url, self._normalisation)
        if attempt.kind is not UrlKind.SITEMAP or url.fetch != f"{url.origin}{_USUAL_SITEMAP}":
            return False
        state = self._politeness.robots.get(url.origin)
        return state is None or state.answer is not RobotsAnswer.RULES or not self._files.rules_of(state).sitemaps

    async def may_ask(self, url: Url) -> RobotsPermission:
        """Return whether this URL may be requested, after fetching its robots.txt if due."""
        state, clock = self._politeness.robots.get(url.origin), self._files.clock
        now = clock.now()
        if state is None or ((policy.needs_fetch(state, now) or self._is_unwanted(state)) and not self._waits(state)):
            read = await self._read(url, state)
            if isinstance(read, RobotsPermission):
                return read
            state, now = read, clock.now()
        verdict = policy.verdict(state, now)
        if self._files.scope.plan.robots == "ignore" or verdict is policy.RobotsVerdict.ALLOW:
            return _ALLOWED
        if verdict is not policy.RobotsVerdict.RULES:
            return RobotsPermission(allowed=False, reason="robots_unreachable", ask_again_at=policy.next_try_at(state))
        return self._by_rules(url, state)

    def _waits(self, state: RobotsRecord) -> bool:
        # Not before every page: if another process holds the host for days, each page would request its server again.
        busy, now = self._files.busy.get(state.origin), self._files.clock.now()
        return busy is not None and now < busy[1] and policy.verdict(state, now) in policy.IN_FORCE

    def _is_unwanted(self, state: RobotsRecord) -> bool:
        """Return whether an operator requested a newer robots.txt than this one."""
        after = self._politeness.lease.robots_after
        return after is not None and state.checked_at < after

    def _by_rules(self, url: Url, state: RobotsRecord) -> RobotsPermission:
        decision = self._files.rules_of(state).decide(url.fetch)
        if decision.allowed:
            return _ALLOWED
        reason = "robots:too_costly" if decision.line is None else f"robots:line {decision.line}"
        return RobotsPermission(allowed=False, reason=reason, message=decision.rule)

    async def _read(self, url: Url, previous: RobotsRecord | None) -> RobotsRecord | RobotsPermission:
        """Fetch, archive and store an origin's robots.txt; or return why nothing may be requested."""
        origin = url.origin
        result, hops = await self._fetch(parse(f"{origin}/robots.txt", self._normalisation))
        for hop in hops:
            token = self._politeness.lease.token
            self._engine.hand_over(
                PageUnderWay(attempt=None, token=token, started_at=hop.started_at, hops=[hop], reason=ROBOTS)
            )
        if result is None:
            return self._while_busy(origin, previous)
        self._files.busy.pop(origin, None)
        if isinstance(result, FetchFailed):
            return RobotsPermission(
                allowed=False, reason=result.problem.value, message=result.message, outcome=Outcome.EXCLUDED
            )
        state = policy.read_answer(previous, result, self._files.clock.now())
        self._politeness.learn(state)
        self._note(state)
        return state

    def _while_busy(self, origin: str, previous: RobotsRecord | None) -> RobotsRecord | RobotsPermission:
        """Return the last record, valid for a day, if the file leads to a domain held by another process."""
        now = self._files.clock.now()
        looks, _ = self._files.busy.get(origin, (0, now))
        # Bound the exponent: another process may hold a domain for days, and 2**1000 overflows a float.
        again_at = now + timedelta(seconds=min(_BUSY_S * 2.0 ** min(looks, 10), _LONGEST_BUSY_S))
        self._files.busy[origin] = looks + 1, again_at
        if previous is not None and policy.verdict(previous, now) in policy.IN_FORCE:
            return previous
        return RobotsPermission(allowed=False, reason="robots_elsewhere", ask_again_at=again_at, is_busy=True)

    def _note(self, state: RobotsRecord) -> None:
        """Apply the delay of a robots.txt; report its sitemaps and problems once per origin and process."""
        if state.answer is RobotsAnswer.UNREACHABLE:
            return
        file = self._files.rules_of(state) if state.answer is RobotsAnswer.RULES else None
        asked_s = (file.crawl_delay if file is not None else None) or 0.0
        delay_s, is_cut = capped(asked_s, self._files.max_delay_s)
        if self._files.scope.plan.robots == "obey":
            self._politeness.take_crawl_delay(state.origin, delay_s)
        if state.origin in self._files.offered:
            return
        self.sitemaps.append((state.origin, file.sitemaps if file is not None else ()))
        if file is not None and is_cut:
            _log.warning("robots.delay_capped", origin=state.origin, asked_s=file.crawl_delay)
        if file is not None and file.notes:
            _log.info("robots.noted", origin=state.origin, notes=list(file.notes))

    async def _fetch(self, url: Url) -> tuple[policy.RobotsRead | FetchFailed | None, list[Fetched]]:
        """Follow a robots.txt over at most five redirects, each under its own domain's turn.

        A failure is returned unchanged if the origin itself may never be requested; None if another process holds the
        target domain. A forbidden or resting target counts as a server that does not respond.
        """
        hops: list[Fetched] = []
        origin = url.origin
        for _ in range(MAX_REDIRECTS + 1):
            # One byte more than is read, to tell a file that was cut from one that ends there.
            result = await self._ask(self._client.requests.for_robots(url, MAX_ROBOTS_BYTES + 1), url.domain)
            if isinstance(result, LeaseRefusal):
                known = await self._recall(origin, url)
                if known is None and result is LeaseRefusal.BARRED:
                    known = policy.RobotsRead(origin=origin)
                return known, hops
            if isinstance(result, FetchFailed):
                if not hops and result.problem in _NEVER_ASKED:
                    return result, hops
                return policy.RobotsRead(origin=origin, failure=result.problem), hops
            hops.append(result)
            location = parse_head(result.response_head).get("location") if is_redirect(result.status) else None
            if location is None:
                return read_of(origin, result), hops
            try:
                url = follow(url, location, self._normalisation)
            except UrlRefused:
                return policy.RobotsRead(origin=origin, failure=FetchProblem.URL_REFUSED), hops
        return policy.RobotsRead(origin=origin, status=hops[-1].status, too_many_redirects=True), hops

    async def _ask(self, request: FetchRequest, domain: str) -> Fetched | FetchFailed | LeaseRefusal:
        """Make one request for robots.txt in the turn of the domain it is on, if that can be leased."""
        own = self._politeness
        if domain == own.lease.domain:
            return await self._client.ask(request, own.pace, own)
        own.pace.check()
        async with self._engine.borrow(domain) as pace:
            if isinstance(pace, LeaseRefusal):
                return pace
            try:
                # Its response says nothing about our own domain: neither that it is private, nor that it is busy.
                return await self._client.ask(request, pace, None)
            except LeaseLost:  # this counts for that domain, not for ours
                return LeaseRefusal.HELD

    async def _recall(self, origin: str, url: Url) -> policy.RobotsRead | None:
        """Return what the holder of another domain has read there, if this is the URL of its robots.txt."""
        # An apex whose robots.txt leads to the www host, which another process crawls for days, has the same rules.
        if url.fetch != f"{url.origin}/robots.txt" or url.origin == origin:
            return None
        state = await self._engine.recall_robots(url.origin)
        verdict = policy.verdict(state, self._files.clock.now())
        if state is None or verdict not in policy.IN_FORCE:
            return None
        return policy.RobotsRead(origin=origin, status=state.status, body=state.body)


def read_of(origin: str, fetched: Fetched) -> policy.RobotsRead:
    """Parse a response; an incomplete or undecodable body counts as a failure."""
    # A partial or unreadable file would forbid nothing. Read one that our own limit cut as far as it goes.
    broken = FetchProblem.DISCONNECTED if fetched.truncated in (Truncated.DISCONNECT, Truncated.TIME) else None
    head = parse_head(fetched.response_head)
    body, problems = decode(head, b"".join(payload_chunks(head, fetched.body)))
    if problems and len(body) <= MAX_ROBOTS_BYTES and 200 <= fetched.status < 300:
        _log.warning("robots.unreadable", origin=origin, problems=[*map(str, problems)])
        broken = FetchProblem.BAD_RESPONSE
    body = body[: MAX_ROBOTS_BYTES + 1]
    return policy.RobotsRead(origin=origin, status=fetched.status, body=body, failure=broken)
