"""Makes and sends the requests of a crawl process, each in its domain's turn; adjusts the pace to the responses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from ipaddress import ip_address, ip_network
from typing import Protocol

from cachetools import LRUCache

from holdfast import log
from holdfast.clock import Clock
from holdfast.config import FetchSettings, Settings
from holdfast.crawl.assignment import CrawlScope
from holdfast.crawl.credentials import Credentials
from holdfast.crawl.politeness import DomainPoliteness, Pace
from holdfast.crawl.progress import CrawlProgress
from holdfast.errors import LeaseLost
from holdfast.fetch.client import Client, ClientSettings
from holdfast.fetch.dns import Resolver, ResolverSettings
from holdfast.fetch.endings import BUSY, asked_rest
from holdfast.fetch.guard import AddressGuard
from holdfast.fetch.per_ip import AddressLimit, AddressLimiter, machine_turns
from holdfast.types import Attempt, Fetched, FetchFailed, FetchProblem, FetchRequest, Original, UrlKind
from holdfast.urls import Url, parse
from holdfast.warc.payload import HttpHead, parse_head

_HTML = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
_ROBOTS_DEADLINE_S = 10.0

# How often, and over what time, a nameserver must deny a name before the crawl gives up its domain. A server that is
# down may return within the half hour that a crawl waits; a misspelt or abandoned name does not, and a resolver that is
# wrong temporarily (while joining a network) is wrong for less than this.
_MISSING_TIMES, _MISSING_S = 4, 60.0
_MISSING_NAMES = _ANSWERED = 10_000
_log = log.get()


class Fetcher(Protocol):
    async def fetch(self, request: FetchRequest) -> Fetched | FetchFailed: ...


class CaptureHistory(Protocol):
    """Earlier captures of pages: their WARC records, or the stored signals for those without."""

    def learn(self, attempts: Iterable[Attempt]) -> None: ...

    def readable(self, attempt: Attempt) -> bool:
        """Return whether a 304 would be sufficient, because the original can still be read."""
        ...

    def load(self, original: Original) -> tuple[HttpHead, bytes] | None:
        """Return an original's head and body; None if it cannot be read."""
        ...


class PageRequests:
    def __init__(
        self,
        scope: CrawlScope,
        settings: FetchSettings,
        credentials: Credentials,
        originals: CaptureHistory,
        clock: Clock,
        *,
        parsed_bytes: int,
    ) -> None:
        self.scope, self.credentials, self.clock = scope, credentials, clock
        self._polls, self._originals = scope.plan.polls, originals
        self._polled = {
            parse(polled.url, scope.normalisation).hash64: (polled.etag, polled.last_modified)
            for polled in scope.plan.lists
        }
        """The validators of polled feeds, by the hash of their address."""
        self._deadline_s = settings.deadline_s
        # Without stored bodies, read a body only until it is too large to be parsed.
        most = settings.body_bytes
        self._body_bytes = most if scope.plan.keeps_bodies else min(most, parsed_bytes + 1)

    def polls(self, attempt: Attempt) -> bool:
        """Return whether an attempt is a poll: its next turn is its retry, and it has validators of its own."""
        return attempt.kind is UrlKind.SITEMAP and self._polls

    def for_page(self, url: Url, attempt: Attempt | None) -> FetchRequest:
        """Return the request for a URL; conditional if it is the attempt's own URL and a 304 could be used."""
        headers = [("Accept", _HTML if attempt is None or attempt.kind is UrlKind.PAGE else "*/*")]
        etag = last_modified = None
        if attempt is not None and self.polls(attempt):
            etag, last_modified = self._polled.get(attempt.url_hash, (None, None))
        # A 304 whose original has become unreadable would leave us without a body.
        elif attempt is not None and self._originals.readable(attempt):
            etag, last_modified = attempt.etag, attempt.last_modified
        if etag:
            headers.append(("If-None-Match", etag))
        if last_modified:
            headers.append(("If-Modified-Since", last_modified))
        return self._request(url, tuple(headers), self._deadline_s, self._body_bytes)

    def for_robots(self, url: Url, max_bytes: int) -> FetchRequest:
        deadline_s = min(_ROBOTS_DEADLINE_S, self._deadline_s)
        return self._request(url, (("Accept", "text/plain,*/*;q=0.8"),), deadline_s, max_bytes)

    def _request(
        self, url: Url, headers: tuple[tuple[str, str], ...], deadline_s: float, max_bytes: int
    ) -> FetchRequest:
        return FetchRequest(
            url=url.fetch,
            headers=self.credentials.join(headers, url, self.clock.now()),
            deadline_s=deadline_s,
            max_body_bytes=max_bytes,
        )


class PacedClient:
    """Sends a process's requests, each in its domain's turn; records send times and the servers' pacing requests."""

    def __init__(self, client: Fetcher, requests: PageRequests, settings: Settings, progress: CrawlProgress) -> None:
        self._client, self.requests, self.progress = client, requests, progress
        self._credentials, self._clock = requests.credentials, requests.clock
        self._normalisation = requests.scope.normalisation
        self._private = tuple(map(ip_network, requests.scope.plan.allow_networks))
        """Networks that were allowed explicitly: only there the delay may go below 1 s."""
        self._limits, self._timings = settings.politeness, settings.timings
        # Longer than a lease: a domain without a DNS name is released, and retried under the next lease.
        self._missing: LRUCache[str, tuple[int, float]] = LRUCache(_MISSING_NAMES)
        """How many times in a row DNS reported a name as missing, and since when (monotonic)."""
        self.answered: LRUCache[str, str] = LRUCache(_ANSWERED)
        """The page that a domain answered last, by domain: the host is up as long as it answers that one."""

    def name_is_gone(self, domain: str) -> bool:
        """Return whether a DNS name has been missing often and long enough to treat its domain as gone."""
        times, since = self._missing.get(domain) or (0, 0.0)
        if times < _MISSING_TIMES:
            return False
        return self._clock.monotonic() - since >= min(_MISSING_S, self._timings.crawl_unreachable_s)

    async def ask(self, request: FetchRequest, pace: Pace, own: DomainPoliteness | None) -> Fetched | FetchFailed:
        """Make one request in its turn; `own` learns from the response, unless the turn is borrowed from another
        domain.
        """
        async with pace.turn():
            result = await self._send(request, pace, own)
        # A server may close an idle connection just when a request is sent: that must use up no attempt of the page,
        # and a robots.txt must not count as unreachable. Retry in a new turn, because the server may have seen the
        # first request.
        if isinstance(result, FetchFailed) and result.kept_connection:
            async with pace.turn():
                result = await self._send(replace(request, fresh_connection=True), pace, own)
        return result

    async def _send(self, request: FetchRequest, pace: Pace, own: DomainPoliteness | None) -> Fetched | FetchFailed:
        pace.requested_url = request.url
        try:
            result = await self._client.fetch(replace(request, before_send=pace.before_send))
        except BaseException:
            if pace.waiting_since is not None:  # the request may have been sent before the interruption
                pace.asked(sent_at=self._clock.monotonic(), first_byte_at=None)
            raise
        finally:
            pace.requested_url = None
        if own is not None:
            self._note_name(own.lease.domain, result)
        # Count back from now: a pause of this process then makes the request look later than it was, never earlier.
        began_at = self._clock.monotonic() - result.took_s
        if isinstance(result, Fetched):
            # Remove secrets before anything stores this: everything that is passed on gets archived.
            if (head := self._credentials.hidden(result.request_head)) is not result.request_head:
                result = replace(result, request_head=head)
            if own is not None and result.ip != own.server_ip:
                own.note_address(result.ip, is_private=self._is_private(result.ip))
            self.progress.asked(len(result.response_head) + result.body.size)
            first = None if result.first_byte_s is None else began_at + result.first_byte_s
            pace.asked(sent_at=began_at + result.sent_s, first_byte_at=first)
            self._apply_headers(result, pace, own)
        elif result.sent_s is not None:
            self.progress.asked(0)
            pace.asked(sent_at=began_at + result.sent_s, first_byte_at=None)
        elif self._clock.monotonic() >= pace.lease_until:
            raise LeaseLost("the lease of this domain ran out before the request could leave")
        elif result.problem.transient:
            pace.tried(began_at)
        return result

    def _is_private(self, ip: str) -> bool:
        return any(ip_address(ip) in network for network in self._private)

    def _note_name(self, domain: str, result: Fetched | FetchFailed) -> None:
        if isinstance(result, Fetched) or result.problem is not FetchProblem.NO_SUCH_NAME:
            self._missing.pop(domain, None)
            return
        times, since = self._missing.get(domain) or (0, self._clock.monotonic())
        self._missing[domain] = times + 1, since

    def _apply_headers(self, answer: Fetched, pace: Pace, own: DomainPoliteness | None) -> None:
        """Store a response's cookies and apply its Retry-After, whatever the request was for."""
        # Most responses have neither header: searching the bytes for their names is cheaper than parsing every head.
        head = answer.response_head.lower()
        now = self._clock.now()
        if b"set-cookie" in head:
            values = parse_head(answer.response_head).get_all("set-cookie")
            self._credentials.keep(parse(answer.url, self._normalisation), values, now)
        if answer.status < 300 or b"retry-after" not in head:
            return
        value = parse_head(answer.response_head).get("retry-after")
        rest = asked_rest(answer.status, value, now, max_delay_s=self._limits.max_delay_s)
        if rest is None:
            return
        seconds, is_clamped = rest
        if is_clamped:
            domain = own.lease.domain if own is not None else parse(answer.url, self._normalisation).domain
            _log.warning("crawl.retry_after_clamped", domain=domain, seconds=seconds)
        pace.rest_until(self._clock.monotonic() + seconds)
        if own is not None:
            own.note_rest(is_busy=answer.status in BUSY)


# Cache this: the IP address of each request is checked, and parsing it again takes 9 us.
_REMEMBERED_ADDRESSES = 4096


def address_limiter(
    settings: Settings, allow_networks: Sequence[str], clock: Clock, *, rate: float | None = None
) -> AddressLimiter:
    """Return this machine's address limiter, with the rate of the settings unless one is given."""
    fetch, networks = settings.fetch, tuple(map(ip_network, allow_networks))
    limit = AddressLimit(rate=fetch.per_ip_rate if rate is None else rate, connections=fetch.per_ip_connections)
    # The default protects others' servers: in an allowed private network, a limit applies only if one was set.
    was_set = rate is not None or {"per_ip_rate", "per_ip_connections"} & fetch.model_fields_set

    @lru_cache(maxsize=_REMEMBERED_ADDRESSES)
    def is_exempt(address: str) -> bool:
        return not was_set and any(ip_address(address) in network for network in networks)

    return AddressLimiter(limit, clock, is_exempt=is_exempt, machine=machine_turns(settings.home))


def open_client(
    settings: Settings, own: ClientSettings, networks: Sequence[str], clock: Clock, limiter: AddressLimiter
) -> Client:
    """Return a client with the name servers of the settings; it connects to public addresses and these networks."""
    guard = AddressGuard(tuple(map(ip_network, networks)))
    names = Resolver(ResolverSettings(nameservers=tuple(settings.fetch.nameservers)), guard, clock)
    return Client(own, guard, clock, names, limiter)
