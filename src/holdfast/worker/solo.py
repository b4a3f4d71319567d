"""A few polite requests outside any crawl: what `holdfast robots` and a dry run need. Same guard, same manners."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import ip_network

from holdfast.clock import Clock, SystemClock
from holdfast.config import Settings
from holdfast.crawl.outcomes import is_redirect
from holdfast.crawl.pace import Pace
from holdfast.crawl.redirects import MAX_REDIRECTS, follow
from holdfast.crawl.robots_gate import AGENT
from holdfast.errors import UrlRefused
from holdfast.fetch import robots_state
from holdfast.fetch.client import Client, ClientSettings
from holdfast.fetch.guard import Guard
from holdfast.fetch.robots import RobotsFile
from holdfast.types import Fetched, FetchFailed, FetchProblem, Request, RobotsAnswer, RobotsState
from holdfast.urls import Url, parse
from holdfast.warc.payload import decode, parse_head, payload_chunks

_MAX_BYTES = 10 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A body after its redirects, decoded."""

    url: Url
    fetched: Fetched
    body: bytes


class Solo:
    """Asks one thing at a time, each domain at its pace."""

    def __init__(self, client: Client, clock: Clock, *, delay_s: float, max_delay_s: float) -> None:
        self._client, self._clock, self._delay_s, self._max_delay_s = client, clock, delay_s, max_delay_s
        self._paces: dict[str, Pace] = {}
        self._robots: dict[str, RobotsState] = {}
        self._wishes: dict[str, float] = {}
        """The delays that robots files ask for, by domain."""

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
        pace = self._paces.get(url.domain)
        if pace is None:
            pace = self._paces[url.domain] = Pace(
                self._clock, first_at=0.0, lease_until=float("inf"),
                delay=lambda: max(self._delay_s, self._wishes.get(url.domain, 0.0)),
            )  # fmt: skip
        async with pace.turn():
            request = Request(url=url.fetch, deadline_s=deadline_s, max_body_bytes=_MAX_BYTES)
            result = await self._client.fetch(request)
            # Counted back from now: a pause of this process between two readings may only lengthen the delay.
            at = self._clock.monotonic() - result.took_s
            first = result.first_byte_s if isinstance(result, Fetched) else None
            sent_at = at + (result.sent_s or 0.0)
            pace.asked(sent_at=sent_at, first_byte_at=None if first is None else at + first)
        return result

    async def robots(self, url: Url) -> RobotsState:
        """Return what an origin's robots.txt says, read once."""
        known = self._robots.get(url.origin)
        if known is not None:
            return known
        answer = await self.get(parse(f"{url.origin}/robots.txt"), deadline_s=10.0)
        if isinstance(answer, FetchFailed):
            read = robots_state.RobotsRead(origin=url.origin, failure=answer.problem)
        elif answer is None:
            read = robots_state.RobotsRead(origin=url.origin, status=310, too_many_redirects=True)
        else:
            read = robots_state.RobotsRead(origin=url.origin, status=answer.fetched.status, body=answer.body)
        state = robots_state.read_answer(None, read, self._clock.now())
        self._robots[url.origin] = state
        wish = rules_of(state, AGENT).crawl_delay if state.answer is RobotsAnswer.RULES else None
        self._wishes[url.domain] = min(wish or 0.0, self._max_delay_s)
        return state


@asynccontextmanager
async def open_solo(settings: Settings, *, agent: str, networks: Sequence[str], delay_s: float) -> AsyncIterator[Solo]:
    """Open a client for a few requests and close it again."""
    clock = SystemClock()
    client = Client(
        ClientSettings(user_agent=agent, connect_timeout_s=settings.fetch.connect_s),
        Guard(tuple(map(ip_network, networks))), clock,
    )  # fmt: skip
    try:
        yield Solo(client, clock, delay_s=delay_s, max_delay_s=settings.politeness.max_delay_s)
    finally:
        await client.close()


def rules_of(state: RobotsState, agent: str) -> RobotsFile:
    """Return the rules for a product token in a robots.txt that was read."""
    return RobotsFile.parse(state.body, agent)
