"""A few polite requests outside any crawl: what `holdfast robots`, a dry run and a probe need. Same guard, same leases,
same delays."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import ip_network

from holdfast.clock import Clock, SystemClock
from holdfast.config import Settings
from holdfast.crawl.outcomes import is_redirect
from holdfast.crawl.pace import Pace
from holdfast.crawl.redirects import MAX_REDIRECTS, follow
from holdfast.crawl.robots_gate import AGENT, read_of
from holdfast.errors import UrlRefused
from holdfast.fetch import robots_state
from holdfast.fetch.client import Client, ClientSettings
from holdfast.fetch.dns import Resolver, ResolverSettings
from holdfast.fetch.guard import Guard
from holdfast.fetch.retry_after import asked_rest
from holdfast.fetch.robots import RobotsFile, capped
from holdfast.types import Fetched, FetchFailed, FetchProblem, Request, RobotsAnswer, RobotsState
from holdfast.urls import Url, parse
from holdfast.warc.payload import decode, parse_head, payload_chunks
from holdfast.worker.domain_leases import PATIENCE_S, DomainLeases, busy, open_leases
from holdfast.worker.limiting import address_limiter

_MAX_BYTES = 10 * 1024 * 1024
_LOOK_S = 0.5
_IN_FORCE = (robots_state.Verdict.RULES, robots_state.Verdict.ALLOW)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A body after its redirects, decoded."""

    url: Url
    fetched: Fetched
    body: bytes


class Solo:
    """Asks one thing at a time, each domain at its pace."""

    def __init__(
        self, client: Client, clock: Clock, leases: DomainLeases, *, delay_s: float, max_delay_s: float
    ) -> None:
        self._client, self._clock, self._leases = client, clock, leases
        self._delay_s, self._max_delay_s = delay_s, max_delay_s
        self._paces: dict[str, Pace] = {}
        self._robots: dict[str, RobotsState] = {}

    async def get(self, url: Url, *, deadline_s: float) -> Document | FetchFailed | None:
        """Return what an address answers in the end; None after too many redirects."""
        for _ in range(MAX_REDIRECTS + 1):
            result = await self._ask(url, deadline_s)
            if isinstance(result, FetchFailed):
                return result
            head = parse_head(result.response_head)
            location = head.get("location") if is_redirect(result.status) else None
            if location is None:
                body = decode(head, b"".join(payload_chunks(head, result.body))).data
                return Document(url=url, fetched=result, body=body)
            try:
                url = follow(url, location)
            except UrlRefused as exc:
                return FetchFailed(url=url.fetch, problem=FetchProblem.URL_REFUSED, message=exc.reason,
                                   started_at=self._clock.now(), took_s=0.0)  # fmt: skip
        return None

    async def _ask(self, url: Url, deadline_s: float) -> Fetched | FetchFailed:
        """Make one request in its domain's turn."""
        pace = self._paces.get(url.domain) or await self._open(url.domain)
        if pace.next_at - self._clock.monotonic() > max(PATIENCE_S, self._delay_of(url.domain)):
            raise busy(url.domain)  # it told us to stay away for longer than a command waits
        result = await self._ask_in_turn(url, pace, deadline_s)
        if isinstance(result, FetchFailed) and result.kept_connection:  # as a crawl does: it says nothing of the page
            result = await self._ask_in_turn(url, pace, deadline_s, fresh=True)
        return result

    async def _ask_in_turn(
        self, url: Url, pace: Pace, deadline_s: float, *, fresh: bool = False
    ) -> Fetched | FetchFailed:
        async with pace.turn():
            if not self._leases.renew():  # the turn may have come long after the lease was over
                raise busy(url.domain)
            request = Request(url=url.fetch, deadline_s=deadline_s, max_body_bytes=_MAX_BYTES, fresh_connection=fresh)
            result = await self._client.fetch(request)
            # Counted back from now: a pause of this process between two readings may only lengthen the delay.
            at = self._clock.monotonic() - result.took_s
            first = result.first_byte_s if isinstance(result, Fetched) else None
            sent_at = at + (result.sent_s or 0.0)
            pace.asked(sent_at=sent_at, first_byte_at=None if first is None else at + first)
            if isinstance(result, Fetched):
                value = parse_head(result.response_head).get("retry-after")
                rest = asked_rest(result.status, value, self._clock.now(), max_delay_s=self._max_delay_s)
                pace.wait_until(self._clock.monotonic() + (rest.seconds if rest is not None else 0.0))
            self._leases.asked(url.domain, rests_s=pace.next_at - self._clock.monotonic())
        return result

    def _delay_of(self, domain: str) -> float:
        return max(self._delay_s, self._leases.wishes.get(domain, 0.0))

    async def _open(self, domain: str) -> Pace:
        """Take a domain, so that no crawl asks it meanwhile; Unavailable if that cannot be had in time."""
        looks = 0
        while (wait_s := self._leases.try_take(domain)) is None:
            looks += 1
            if looks * _LOOK_S > PATIENCE_S:
                raise busy(domain)
            await asyncio.sleep(_LOOK_S)
        pace = self._paces[domain] = Pace(
            self._clock,
            first_at=self._clock.monotonic() + wait_s,
            lease_until=float("inf"),
            delay=lambda: self._delay_of(domain),
        )
        return pace

    async def robots(self, url: Url) -> RobotsState:
        """Return what an origin's robots.txt says, read once; what a crawl has read, while that holds the domain."""
        known = self._robots.get(url.origin)
        if known is not None:
            return known
        if url.domain not in self._paces and self._leases.try_take(url.domain) is None:
            known = self._leases.robots(url.origin)
            if known is not None and robots_state.verdict(known, self._clock.now()) in _IN_FORCE:
                self._robots[url.origin] = known
                return known
        answer = await self.get(parse(f"{url.origin}/robots.txt"), deadline_s=10.0)
        if isinstance(answer, FetchFailed):
            read = robots_state.RobotsRead(origin=url.origin, failure=answer.problem)
        elif answer is None:
            read = robots_state.RobotsRead(origin=url.origin, status=310, too_many_redirects=True)
        else:
            read = read_of(url.origin, answer.fetched)
        state = robots_state.read_answer(None, read, self._clock.now())
        self._robots[url.origin] = state
        wish = rules_of(state, AGENT).crawl_delay if state.answer is RobotsAnswer.RULES else None
        self._leases.wishes[url.domain] = capped(wish or 0.0, self._max_delay_s).seconds
        return state


@asynccontextmanager
async def open_solo(settings: Settings, *, agent: str, networks: Sequence[str], delay_s: float) -> AsyncIterator[Solo]:
    """Open a client for a few requests, which holds the domains that it asks, and close it again."""
    clock, fetch = SystemClock(), settings.fetch
    guard = Guard(tuple(map(ip_network, networks)))
    names = Resolver(ResolverSettings(nameservers=tuple(fetch.nameservers)), guard, clock)
    client = Client(
        ClientSettings(user_agent=agent, connect_timeout_s=fetch.connect_s),
        guard,
        clock,
        names,
        address_limiter(settings, networks, clock),
    )
    with open_leases(settings, delay_s=delay_s) as leases:
        try:
            yield Solo(client, clock, leases, delay_s=delay_s, max_delay_s=settings.politeness.max_delay_s)
        finally:
            await client.close()


def rules_of(state: RobotsState, agent: str) -> RobotsFile:
    """Return the rules for a product token in a robots.txt that was read."""
    return RobotsFile.parse(state.body, agent)
