"""A few polite requests outside any crawl: surveys, live pages, dry runs, probes, `holdfast robots`. Same guard,
same leases, same delays.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from holdfast.clock import Clock, SystemClock
from holdfast.config import DATABASE_FILE, Settings
from holdfast.crawl.outcomes import MAX_REDIRECTS, follow, is_redirect
from holdfast.crawl.paced_client import address_limiter, open_client
from holdfast.crawl.politeness import Pace
from holdfast.crawl.robots_gate import read_of
from holdfast.errors import AddressForbidden, NotPermitted, Unavailable, UrlRefused
from holdfast.fetch import robots as robots_file
from holdfast.fetch.client import Client, ClientSettings
from holdfast.fetch.endings import asked_rest
from holdfast.fetch.robots import AGENT, RobotsFile, capped
from holdfast.frontier.politeness import delay_between
from holdfast.parse import looks_pathological, parse_page, scan_links
from holdfast.processes.owners import VISITOR, OwnerProcess
from holdfast.processes.runfile import RunFile
from holdfast.sources.plan import CrawlPlan
from holdfast.types import (
    DomainLease,
    DomainUpdate,
    Fetched,
    FetchFailed,
    FetchProblem,
    FetchRequest,
    ParsedPage,
    RobotsAnswer,
    RobotsRecord,
)
from holdfast.urls import DEFAULT, Normalisation, Url, parse
from holdfast.values import dataclass
from holdfast.warc.payload import DecodeCaps, HttpHead, PayloadProblem, decode, parse_head, payload_chunks
from holdfast.wiring import Runtime, open_runtime

PATIENCE_S = 30.0
"""How long to wait for a busy domain."""
_LOOK_S = 0.5
# Share of a lease that is left unused, as in a crawl: running requests must end with the lease.
_MARGIN = 0.1


class DomainLeases:
    """The domains leased by one command; use only on their own thread. Without a runtime nothing is leased."""

    def __init__(self, runtime: Runtime | None) -> None:
        self._runtime = runtime
        self._owner = None
        if runtime is not None:
            self._owner = OwnerProcess(
                runtime.raw_db, runtime.clock, run=RunFile(runtime.run_folder), kind=VISITOR, execution_id=None
            )
        self._held: dict[str, DomainLease] = {}
        self.crawl_delays: dict[str, float] = {}
        """The delays required by robots.txt, by domain."""
        self._next_at: dict[str, datetime] = {}
        """When a domain may be requested again according to its responses."""
        self.good_until = math.inf
        """Until when (monotonic) all leases held here are valid if none is renewed; for any thread."""

    def try_take(self, domain: str) -> float | None:
        """Lease a domain; return the seconds until it may be requested, None if it is unavailable now.

        Raise `DomainForbidden` if it is never available: waiting for it would not end.
        """
        if self._runtime is None or self._owner is None:
            return 0.0
        asked_at = self._runtime.clock.monotonic()
        lease = self._held.get(domain) or self._runtime.frontier.lease_named(self._owner.id, domain)
        if lease is None:
            closed = self._runtime.frontier.closed(domain)
            if closed == "forbidden":
                raise DomainForbidden(domain)
            if closed == "paused":
                # Fail immediately: there is no point in waiting for an operator.
                raise DomainBusy(f"requests to {domain} are paused by an operator; resume the domain, then try again")
            return None
        politeness = self._runtime.settings.politeness
        if domain not in self._held:
            self._held[domain] = lease
            self.good_until = min(self.good_until, self._lasts_until(asked_at))
            self.crawl_delays[domain] = _asked_delay(lease, max_delay_s=politeness.max_delay_s)
        wait = (lease.next_allowed_at - self._runtime.clock.now()).total_seconds()
        # The last owner died, and may have sent a request a moment ago.
        return max(0.0, wait, self.delay_of(domain, politeness.delay_s) if lease.taken_over else 0.0)

    def delay_of(self, domain: str, delay_s: float) -> float:
        """Return the seconds between two requests: `delay_s`, or more if an operator, robots.txt or 429s require
        it.
        """
        asked_s, lease = max(delay_s, self.crawl_delays.get(domain, 0.0)), self._held.get(domain)
        if lease is None:
            return asked_s
        return delay_between(max(asked_s, lease.delay_s), penalty=lease.circuit.penalty, is_private=True)

    def asked(self, domain: str, *, rests_s: float) -> None:
        """Record that a domain was requested, and for how many seconds it must rest."""
        if self._runtime is not None:
            self._next_at[domain] = self._runtime.clock.now() + timedelta(seconds=rests_s)

    def take(self, domain: str, *, patience_s: float = PATIENCE_S, sleep: Callable[[float], None] = time.sleep) -> None:
        """Lease a domain and wait for its turn; raise `Unavailable` if it is held or must rest longer than
        `patience_s`.
        """
        waited = 0.0
        while (wait := self.try_take(domain)) is None:
            if waited >= patience_s:
                raise busy(domain)
            sleep(_LOOK_S)
            waited += _LOOK_S
        sleep(wait)

    def rests(self, domain: str) -> bool:
        """Return whether a domain that is not leased is unavailable: it is forbidden, or must rest for long."""
        return self._runtime is not None and self._runtime.frontier.is_barred(domain)

    def renew(self) -> bool:
        """Extend the leases; call at least every 15 s. Return False if a domain was lost: do not request it any
        more.
        """
        if self._runtime is None or self._owner is None or not self._held:
            return True
        # Read the clock before the statement, so that our leases never last longer than those in the rows.
        asked_at = self._runtime.clock.monotonic()
        leases = self._runtime.frontier.renew(self._owner.id)
        with self._runtime.raw_db.write() as tx:
            # A start on another machine releases the leases of an owner that is silent for two minutes.
            self._owner.beat(tx)
        if not all(leases.get(lease.domain_id, (None,))[0] == lease.token for lease in self._held.values()):
            return False
        self.good_until = self._lasts_until(asked_at)
        return True

    def _lasts_until(self, asked_at: float) -> float:
        assert self._runtime is not None
        return asked_at + self._runtime.settings.timings.lease_seconds * (1.0 - _MARGIN)

    def robots(self, url: Url) -> RobotsRecord | None:
        """Return the robots.txt that a crawl stored for an origin; None if an operator requested a new fetch."""
        if self._runtime is None:
            return None
        known, lease = self._runtime.frontier.robots(url.origin), self._held.get(url.domain)
        again_after = None if lease is None else lease.robots_after
        return None if known is None or (again_after is not None and known.checked_at < again_after) else known

    def give_back(self, *, delay_s: float) -> None:
        """Release all domains. The next holder waits for the delay, as after a request just now, and at least for
        as long
        as the domain requested from us or from the holder before us.
        """
        if self._runtime is None or self._owner is None:
            return
        now = self._runtime.clock.now()
        updates = [
            DomainUpdate(
                domain_id=lease.domain_id,
                token=lease.token,
                next_allowed_at=max(
                    lease.next_allowed_at,
                    self._next_at.get(domain, now),
                    now + timedelta(seconds=self.delay_of(domain, delay_s)),
                ),
                circuit=lease.circuit,
            )
            for domain, lease in self._held.items()
        ]
        self._held.clear()
        self.good_until = math.inf
        self._runtime.frontier.release(0, self._owner.id, updates)
        self._owner.end()


def _asked_delay(lease: DomainLease, *, max_delay_s: float) -> float:
    files = (RobotsFile.parse(state.body, AGENT) for state in lease.robots if state.answer is RobotsAnswer.RULES)
    return max((capped(file.crawl_delay or 0.0, max_delay_s)[0] for file in files), default=0.0)


class DomainBusy(Unavailable):
    """Another process crawls a domain, or its pace allows no request soon."""

    code = "domain_busy"
    retry_after_s = 5


class DomainForbidden(NotPermitted):
    """An operator forbids a domain."""

    code = "domain_forbidden"

    def __init__(self, domain: str) -> None:
        super().__init__(
            f"{domain} is forbidden by an operator of this installation, so nothing is asked there; leave it out, or"
            " have it allowed"
        )


def busy(domain: str) -> DomainBusy:
    return DomainBusy(
        f"{domain} is being crawled or is rate-limited; try again later, or stop the crawl with: holdfast stop"
    )


@contextmanager
def open_leases(settings: Settings, *, delay_s: float) -> Iterator[DomainLeases]:
    """Open the leases of a command, in the database if there is one, and release them at the end."""
    if settings.database_url is None and not (Path(settings.home) / DATABASE_FILE).is_file():
        yield DomainLeases(None)
        return
    with open_runtime(settings) as runtime:
        leases = DomainLeases(runtime)
        try:
            yield leases
        finally:
            # The leases expire by themselves; everything written under them stays.
            with suppress(Unavailable):
                leases.give_back(delay_s=delay_s)


@contextmanager
def hold_domains(
    settings: Settings,
    domains: Iterable[str],
    *,
    delay_s: float,
    twins: Iterable[str] = (),
    patience_s: float = PATIENCE_S,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[DomainLeases]:
    """Lease these domains while a tool crawls them; call `renew` meanwhile. Raise `DomainBusy` if one stays busy,
    `DomainForbidden` if one is forbidden.

    `twins` are redirect targets the tool may reach: they are leased too, so that no crawl requests them in
    parallel. A twin that rests because it does not respond, or that is forbidden, does not prevent the start.
    """
    wanted = set(domains)
    with open_leases(settings, delay_s=delay_s) as leases:
        # Lease them in one order, so that two tools never wait for each other.
        for domain in sorted(wanted | set(twins)):
            if domain not in wanted and leases.rests(domain):
                continue
            leases.take(domain, patience_s=patience_s, sleep=sleep)
            # Those leased first have waited for the others.
            if not leases.renew():
                raise busy(domain)
        yield leases


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedDocument:
    url: Url
    fetched: Fetched
    body: bytes
    is_cut: bool
    """Whether the body was larger than the limit or ended early."""

    def parse(self, head: HttpHead) -> ParsedPage:
        """Return the parsed body; of one that could keep a parser busy for long, only its links."""
        if looks_pathological(self.body):
            return ParsedPage(links=scan_links(self.body))
        x_robots = head.get_all("x-robots-tag")
        return parse_page(
            self.body, url=self.url.fetch, media_type=head.media_type, charset=head.charset, x_robots=x_robots
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentLimits:
    request_s: float
    body_bytes: int = 10 * 1024 * 1024
    """Limit for the compressed and the decompressed size."""
    redirects: int = MAX_REDIRECTS
    patience_s: float | None = None
    """Longest wait for a domain's turn; `PATIENCE_S` or the domain's delay if not set."""


_ROBOTS_LIMITS = DocumentLimits(request_s=10.0)
_OVERSIZE = frozenset({PayloadProblem.TOO_LARGE, PayloadProblem.RATIO_EXCEEDED})


class RobotsDenied(NotPermitted):
    """robots.txt disallows a URL, or cannot be read."""

    code = "robots_denied"

    def __init__(self, url: Url) -> None:
        super().__init__(f"robots.txt of {url.origin} does not allow {url.fetch}; it was not requested")
        self.url = url


class PoliteClient:
    """Makes one request at a time, each domain at its pace. `policy` defines the allowed ports."""

    def __init__(
        self,
        client_of: Callable[[str], Client],
        clock: Clock,
        leases: DomainLeases,
        *,
        delay_s: float,
        max_delay_s: float,
        policy: Normalisation = DEFAULT,
    ) -> None:
        self._client_of, self._clock, self._leases = client_of, clock, leases
        self._delay_s, self._max_delay_s, self._policy = delay_s, max_delay_s, policy
        self._paces: dict[str, Pace] = {}
        self._robots: dict[str, RobotsRecord] = {}
        self.failures: dict[str, FetchFailed] = {}
        """Why the robots.txt of an origin could not be fetched, by origin."""

    def delay_of(self, domain: str) -> float:
        """Return the seconds between two requests to a domain, as far as its robots.txt is known."""
        return self._leases.delay_of(domain, self._delay_s)

    async def get(
        self, url: Url, limits: DocumentLimits, *, obey_robots: bool = False
    ) -> FetchedDocument | FetchFailed | None:
        """Return the final response of a URL; None after too many redirects.

        With `obey_robots`, raise `RobotsDenied` for the first URL on the way that robots.txt disallows, and
        `AddressForbidden` for the first that the guard rejects.
        """
        found = await self._follow(url, limits, obey_robots=obey_robots)
        if found is None or isinstance(found, FetchFailed):
            return found
        head = parse_head(found.response_head)
        body, problems = decode(head, payload_chunks(head, found.body), DecodeCaps(max_output_bytes=limits.body_bytes))
        found.body.close()
        is_cut = found.truncated is not None or not _OVERSIZE.isdisjoint(problems)
        at = parse(found.url, self._policy)
        return FetchedDocument(url=at, fetched=found, body=body, is_cut=is_cut)

    async def _follow(self, url: Url, limits: DocumentLimits, *, obey_robots: bool) -> Fetched | FetchFailed | None:
        for _ in range(limits.redirects + 1):
            if obey_robots:
                await self._demand_allowed(url, limits)
            result = await self._ask(url, limits)
            if isinstance(result, FetchFailed):
                return result
            location = parse_head(result.response_head).get("location") if is_redirect(result.status) else None
            if location is None:
                return result
            result.body.close()
            try:
                url = follow(url, location, self._policy)
            except UrlRefused as exc:
                return FetchFailed(
                    url=url.fetch,
                    problem=FetchProblem.URL_REFUSED,
                    message=exc.reason,
                    started_at=self._clock.now(),
                    took_s=0.0,
                )
        return None

    async def _demand_allowed(self, url: Url, limits: DocumentLimits) -> None:
        state = await self.robots(url, limits, stored=True)
        verdict = robots_file.verdict(state, state.checked_at)
        is_allowed = verdict is robots_file.RobotsVerdict.ALLOW or (
            verdict is robots_file.RobotsVerdict.RULES and rules_of(state, AGENT).decide(url.fetch).allowed
        )
        if not is_allowed:
            raise RobotsDenied(url)

    async def _ask(self, url: Url, limits: DocumentLimits) -> Fetched | FetchFailed:
        pace = self._paces.get(url.domain) or await self._open(url.domain, limits.patience_s or PATIENCE_S)
        longest_s = limits.patience_s or max(PATIENCE_S, self._leases.delay_of(url.domain, self._delay_s))
        if pace.next_at - self._clock.monotonic() > longest_s:
            raise busy(url.domain)  # its server requested a longer pause than a command waits
        result = await self._ask_in_turn(url, pace, limits)
        if isinstance(result, FetchFailed) and result.kept_connection:  # this says nothing about the page
            result = await self._ask_in_turn(url, pace, limits, fresh=True)
        return result

    async def _ask_in_turn(
        self, url: Url, pace: Pace, limits: DocumentLimits, *, fresh: bool = False
    ) -> Fetched | FetchFailed:
        def before_send() -> float:
            # The turns of the domain and of the IP address may have come long after the lease expired.
            if not self._leases.renew():
                raise busy(url.domain)
            return limits.request_s

        async with pace.turn():
            request = FetchRequest(
                url=url.fetch,
                deadline_s=limits.request_s,
                max_body_bytes=limits.body_bytes,
                before_send=before_send,
                fresh_connection=fresh,
            )
            result = await self._client_of(url.host).fetch(request)
            # Count back from now: a pause of this process between two readings may then only lengthen the delay.
            at = self._clock.monotonic() - result.took_s
            first = result.first_byte_s if isinstance(result, Fetched) else None
            sent_at = at + (result.sent_s or 0.0)
            pace.asked(sent_at=sent_at, first_byte_at=None if first is None else at + first)
            if isinstance(result, Fetched):
                value = parse_head(result.response_head).get("retry-after")
                rest = asked_rest(result.status, value, self._clock.now(), max_delay_s=self._max_delay_s)
                pace.rest_until(self._clock.monotonic() + (rest[0] if rest is not None else 0.0))
            self._leases.asked(url.domain, rests_s=pace.next_at - self._clock.monotonic())
        return result

    async def _open(self, domain: str, patience_s: float) -> Pace:
        """Lease a domain, so that no crawl requests it meanwhile; raise `Unavailable` if that takes too long."""
        looks = 0
        while (wait_s := self._leases.try_take(domain)) is None:
            looks += 1
            if looks * _LOOK_S > patience_s:
                raise busy(domain)
            await asyncio.sleep(_LOOK_S)
        pace = self._paces[domain] = Pace(
            self._clock,
            first_at=self._clock.monotonic() + wait_s,
            lease_until=float("inf"),
            delay=lambda: self._leases.delay_of(domain, self._delay_s),
        )
        return pace

    async def robots(self, url: Url, limits: DocumentLimits = _ROBOTS_LIMITS, *, stored: bool = False) -> RobotsRecord:
        """Return the robots.txt record of an origin, fetched at most once.

        While a crawl holds the domain, and always with `stored`, the copy that the crawl stored is used if it is
        valid.
        """
        known = self._robots.get(url.origin)
        if known is not None:
            return known
        if (url.domain not in self._paces and self._leases.try_take(url.domain) is None) or stored:
            known = self._leases.robots(url)
            if known is not None and robots_file.verdict(known, self._clock.now()) in robots_file.IN_FORCE:
                self._robots[url.origin] = known
                return known
        limits = replace(limits, redirects=MAX_REDIRECTS)  # a page's lower limit would mean: no rules
        answer = await self._follow(parse(f"{url.origin}/robots.txt", self._policy), limits, obey_robots=False)
        if isinstance(answer, FetchFailed):
            if stored and answer.problem is FetchProblem.ADDRESS_FORBIDDEN:
                raise AddressForbidden(f"{url.fetch} may not be requested: {answer.message}")
            self.failures[url.origin] = answer
            read = robots_file.RobotsRead(origin=url.origin, failure=answer.problem)
        elif answer is None:
            read = robots_file.RobotsRead(origin=url.origin, status=310, too_many_redirects=True)
        else:
            read = read_of(url.origin, answer)
            answer.body.close()
        state = robots_file.read_answer(None, read, self._clock.now())
        self._robots[url.origin] = state
        delay_s = rules_of(state, AGENT).crawl_delay if state.answer is RobotsAnswer.RULES else None
        self._leases.crawl_delays[url.domain] = capped(delay_s or 0.0, self._max_delay_s)[0]
        return state


@asynccontextmanager
async def open_polite_client(
    settings: Settings,
    *,
    agent: str,
    networks: Sequence[str],
    delay_s: float,
    policy: Normalisation = DEFAULT,
    only_host: str | None = None,
) -> AsyncIterator[PoliteClient]:
    """Open a client for a few requests, which leases the domains it requests, and close it again.

    With `only_host`, `networks` are allowed for that host alone; others, as after a redirect, must be public.
    """
    clock = SystemClock()
    limiter = address_limiter(settings, networks, clock)

    own = ClientSettings(user_agent=agent, connect_timeout_s=settings.timings.crawl_connect_s)
    client = open_client(settings, own, networks, clock, limiter)
    public = open_client(settings, own, (), clock, limiter) if only_host and networks else client

    def client_of(host: str) -> Client:
        return client if only_host in (None, host) else public

    with open_leases(settings, delay_s=delay_s) as leases:
        try:
            max_delay_s = settings.politeness.max_delay_s
            yield PoliteClient(client_of, clock, leases, delay_s=delay_s, max_delay_s=max_delay_s, policy=policy)
        finally:
            await client.close()
            await public.close()


def read_robots(
    settings: Settings, urls: Sequence[Url], *, contact: str, networks: Sequence[str]
) -> list[RobotsRecord]:
    """Fetch the robots.txt of each URL's origin now, with the user agent of a crawl: sites may serve others another."""
    agent = CrawlPlan(seeds=(urls[0].fetch,), contact=contact).agent()

    async def read() -> list[RobotsRecord]:
        async with open_polite_client(settings, agent=agent, networks=networks, delay_s=1.0) as client:
            return [await client.robots(url) for url in urls]

    return asyncio.run(read())


def rules_of(state: RobotsRecord, agent: str) -> RobotsFile:
    return RobotsFile.parse(state.body, agent)
