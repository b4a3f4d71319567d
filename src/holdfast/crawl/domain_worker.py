"""One leased domain at work: its pages in turn, each checked against robots.txt, paced, fetched and handed on.

A worker never parses and never touches the database; it knows what it may ask, when, and what an answer means for the
domain. It ends when its lease does, when it is told to, or when it has nothing left to ask.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from ipaddress import ip_address, ip_network
from typing import NamedTuple, Protocol

from cachetools import LRUCache

from holdfast import log
from holdfast.clock import Clock
from holdfast.config import Settings
from holdfast.crawl import outcomes
from holdfast.crawl.credentials import Credentials
from holdfast.crawl.outcomes import MAX_REDIRECTS, PageUnderWay, follow
from holdfast.crawl.plan import CrawlPlan, CrawlScope, Polled, validators_of
from holdfast.crawl.politeness import DomainPoliteness, Pace
from holdfast.crawl.progress import CrawlProgress
from holdfast.crawl.robots_gate import EnginePort, RobotsFiles, RobotsGate
from holdfast.errors import LeaseLost, NoSpace, UrlRefused
from holdfast.fetch.endings import BUSY, asked_rest
from holdfast.frontier.politeness import may_retry
from holdfast.types import (
    Attempt,
    DomainChange,
    DomainUpdate,
    Fetched,
    FetchFailed,
    FetchProblem,
    FetchRequest,
    LeaseRefusal,
    Original,
    Outcome,
    UrlKind,
)
from holdfast.urls import Url, parse
from holdfast.warc.payload import HttpHead, parse_head

_HTML = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
# A domain that must be left alone for longer is given back meanwhile.
_HELD_S = 20.0
_NO_SPACE = timedelta(seconds=2)
# So often, and for so long, a nameserver must say that a name does not exist before its domain is given up. A server
# that is down comes back within the half hour that a crawl waits; a name that is misspelt or was given up does not, and
# a resolver that is wrong for a moment (a network that is just being joined) is wrong for less than this.
_MISSING_TIMES, _MISSING_S = 4, 60.0
_MISSING_NAMES = 10_000
_log = log.get()


class Fetcher(Protocol):
    """What a crawl needs of the HTTP client; tests pass a scripted one."""

    async def fetch(self, request: FetchRequest) -> Fetched | FetchFailed:
        """Make one GET."""
        ...


class CaptureHistory(Protocol):
    """What is known of pages that were captured before: their WARC records, or their signals where those are kept."""

    def learn(self, attempts: Iterable[Attempt]) -> None:
        """Look up what these attempts need; called on the database's thread."""
        ...

    def readable(self, attempt: Attempt) -> bool:
        """Return whether a 304 would tell us all that we need."""
        ...

    def load(self, original: Original) -> tuple[HttpHead, bytes] | None:
        """Return an original's head and body; None if it cannot be read."""
        ...


class PageRequests:
    """Makes the requests of a crawl: with the user's headers and cookies, conditional where we hold a copy."""

    def __init__(
        self, plan: CrawlPlan, settings: Settings, credentials: Credentials, originals: CaptureHistory, clock: Clock
    ) -> None:
        self._polls, self._credentials, self._originals, self._clock = plan.polls, credentials, originals, clock
        self._polled = validators_of(plan)
        """What the last answers of polled feeds were marked with, by the hash of their address."""
        self._deadline_s = settings.fetch.deadline_s
        # Where bodies are not kept, one is taken until it is too large to be read.
        most = settings.fetch.body_bytes
        self._body_bytes = most if plan.keeps_bodies else min(most, settings.parse.max_bytes + 1)

    def polls(self, attempt: Attempt) -> bool:
        """Return whether an attempt is a poll: its next turn is its retry, and its own validators count."""
        return attempt.kind is UrlKind.SITEMAP and self._polls

    def for_page(self, url: Url, attempt: Attempt | None) -> FetchRequest:
        """Return the request for an address, conditional if it is an attempt's own and a 304 could stand for a copy."""
        headers: list[tuple[str, str]] = [
            ("Accept", _HTML if attempt is None or attempt.kind is UrlKind.PAGE else "*/*")
        ]
        known: Attempt | Polled | None = None
        if attempt is not None:
            known = self._polled.get(attempt.url_hash) if self.polls(attempt) else attempt
            # A 304 whose original cannot be read any more would leave us with nothing.
            if known is attempt and not self._originals.readable(attempt):
                known = None
        if known is not None and known.etag:
            headers.append(("If-None-Match", known.etag))
        if known is not None and known.last_modified:
            headers.append(("If-Modified-Since", known.last_modified))
        return self._request(url, tuple(headers), self._deadline_s, self._body_bytes)

    def for_robots(self, url: Url, deadline_s: float, max_bytes: int) -> FetchRequest:
        """Return the request for a robots.txt, or for what it redirects to."""
        return self._request(url, (("Accept", "text/plain,*/*;q=0.8"),), deadline_s, max_bytes)

    def _request(
        self, url: Url, headers: tuple[tuple[str, str], ...], deadline_s: float, max_bytes: int
    ) -> FetchRequest:
        return FetchRequest(
            url=url.fetch,
            headers=self._credentials.join(headers, url, self._clock.now()),
            deadline_s=deadline_s,
            max_body_bytes=max_bytes,
        )


class MissingName(NamedTuple):
    """How often in a row nameservers have said that a name does not exist, and since when (monotonic)."""

    times: int
    since: float


class PacedClient:
    """Sends the requests of a process, each in its domain's turn, and notes when a server saw it and what it asks."""

    def __init__(
        self,
        client: Fetcher,
        plan: CrawlPlan,
        settings: Settings,
        credentials: Credentials,
        progress: CrawlProgress,
        clock: Clock,
    ) -> None:
        self._client, self._credentials, self.progress, self._clock = client, credentials, progress, clock
        self._normalisation = plan.normalisation()
        self._private = tuple(map(ip_network, plan.allow_networks))
        """Networks that were allowed explicitly: only there the delay may go below 1 s."""
        self._limits = settings.politeness
        # Beyond a lease: a domain whose name is missing is given back, and tried again under the next one.
        self._missing: LRUCache[str, MissingName] = LRUCache(_MISSING_NAMES)

    def name_is_gone(self, domain: str) -> bool:
        """Return whether a domain's name does not exist, and did not for long enough to believe it."""
        missing = self._missing.get(domain)
        if missing is None or missing.times < _MISSING_TIMES:
            return False
        return self._clock.monotonic() - missing.since >= min(_MISSING_S, self._limits.unreachable_s)

    async def ask(self, request: FetchRequest, pace: Pace, own: DomainPoliteness | None) -> Fetched | FetchFailed:
        """Make one request in its turn; `own` learns from the answer, unless the turn is borrowed of another domain."""
        async with pace.turn():
            result = await self._send(request, pace, own)
        # A server may close an idle connection at the moment that a request leaves: the page should lose no try by it,
        # and a robots.txt should not count as unreachable. In a turn of its own, for the first may have been seen.
        if isinstance(result, FetchFailed) and result.kept_connection:
            async with pace.turn():
                result = await self._send(replace(request, fresh_connection=True), pace, own)
        return result

    async def _send(self, request: FetchRequest, pace: Pace, own: DomainPoliteness | None) -> Fetched | FetchFailed:
        # However long it is: a wait for the turn of the server's address counts against it, not against the deadline.
        if (left_s := pace.lease_until - self._clock.monotonic()) < math.inf:
            request = replace(request, send_within_s=left_s)
        pace.requested_url = request.url
        try:
            result = await self._client.fetch(request)
        except BaseException:  # it may have left before we were interrupted
            pace.asked(sent_at=self._clock.monotonic(), first_byte_at=None)
            raise
        finally:
            pace.requested_url = None
        if own is not None:
            self._note_name(own.lease.domain, result)
        # Counted back from now: a pause of this process makes the request look later than it was, never earlier.
        began_at = self._clock.monotonic() - result.took_s
        if isinstance(result, Fetched):
            # Before anything keeps it: what is handed on is archived, and no secret may be.
            if (head := self._credentials.hidden(result.request_head)) is not result.request_head:
                result = replace(result, request_head=head)
            if own is not None and result.ip != own.server_ip:
                own.note_address(result.ip, is_private=self._is_private(result.ip))
            self.progress.asked(len(result.response_head) + result.body.size)
            first = None if result.first_byte_s is None else began_at + result.first_byte_s
            pace.asked(sent_at=began_at + result.sent_s, first_byte_at=first)
            self._heed(result, pace, own)
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
        """Note whether a domain's name exists."""
        if isinstance(result, Fetched) or result.problem is not FetchProblem.NO_SUCH_NAME:
            self._missing.pop(domain, None)
            return
        before = self._missing.get(domain) or MissingName(0, self._clock.monotonic())
        self._missing[domain] = before._replace(times=before.times + 1)

    def _heed(self, answer: Fetched, pace: Pace, own: DomainPoliteness | None) -> None:
        """Keep the cookies of an answer, and stay away for as long as it asks, whatever was asked for."""
        # Most answers have neither header: to look for their names in the bytes is cheaper than to parse every head.
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
        if rest.clamped:
            domain = own.lease.domain if own is not None else parse(answer.url, self._normalisation).domain
            _log.warning("crawl.retry_after_clamped", domain=domain, seconds=rest.seconds)
        pace.rest_until(self._clock.monotonic() + rest.seconds)
        if own is not None:
            own.note_rest(is_busy=answer.status in BUSY)


class _GivesBack(Exception):
    """The domain is being given back: the next request of a page is not made."""


class DomainWorker:
    """The work on one domain in this process."""

    def __init__(
        self,
        politeness: DomainPoliteness,
        client: PacedClient,
        requests: PageRequests,
        robots: RobotsFiles,
        scope: CrawlScope,
        engine: EnginePort,
    ) -> None:
        self.lease, self.politeness, self.pace = politeness.lease, politeness, politeness.pace
        self._client, self._requests, self._scope, self._engine = client, requests, scope, engine
        self._clock, self._normalisation = politeness.clock, scope.normalisation
        self.gate = RobotsGate(robots, politeness, self._ask_for_robots, engine)
        self.gate.refresh()
        if self.lease.taken_over:  # after the rules were read: the delay may be theirs
            politeness.hold_first_request()
        self.queue: deque[Attempt] = deque(self.lease.attempts)
        self.current: Attempt | None = None
        """The attempt that is being fetched, or waits for room to be."""
        self.unsettled: set[int] = set()
        """Attempts that were handed on and are not in the database yet."""
        self.has_more = bool(self.lease.attempts)
        """Whether the database may hold more due pages than we took."""
        self.put_off_until: datetime | None = None
        """Set when nothing may be asked for a while: the engine gives the domain back."""
        self.visitors = 0
        """Workers of other domains that wait for a turn here, or have it."""
        self.refilled = asyncio.Event()
        """Set when there are more pages, or none will come."""
        self.dry = False
        """Set when there is nothing more to be had: the worker ends."""
        self.made_way = False
        """Set when another process waits for the domain: the worker ends after the page under way."""
        self.gives_back = False
        """Set when nothing more may be asked: the worker ends after the request under way, not after its page."""
        self.told_at = self.lease.changed_at
        """The last change of an operator that this worker knows of."""
        self.lost = False
        self.leaving = False
        """Set while its domain is being given back: a visitor who comes now must ask for a lease of its own."""
        self.working = True
        self.idle_since: float | None = None
        self.looked_at = self._clock.monotonic()

    @property
    def holding(self) -> set[int]:
        """The attempts that this worker has and has not settled: the database must not hand them out to it again."""
        held = {attempt.id for attempt in self.queue} | self.unsettled
        return held if self.current is None else held | {self.current.id}

    def wants_more(self, low: int) -> bool:
        """Return whether the worker is out of pages, or nearly and there are more."""
        return self.working and not self.dry and (not self.queue or (self.has_more and len(self.queue) < low))

    def should_look(self, now: float, *, new: bool) -> bool:
        """Return whether to ask the database for more: there is more, something new came, or it was long ago."""
        return new or self.has_more or now - self.looked_at > 1.0

    def is_done(self, now: float, linger_s: float) -> bool:
        """Return whether nothing more can come soon: no page here or under way, and we looked and waited."""
        if self.queue or self.has_more or self.unsettled:
            self.idle_since = None
            return False
        if self.idle_since is None:
            self.idle_since = now
        return now - self.idle_since >= linger_s

    def make_way(self) -> None:
        """Ask for no more after the page under way; what was taken stays open, and is asked for later."""
        self.made_way = self.dry = True
        self.queue.clear()
        self.refilled.set()

    def hear(self, change: DomainChange) -> bool:
        """Take an operator's change: give the domain back after the request under way; False if it is known."""
        if self.told_at is not None and change.changed_at <= self.told_at:
            return False
        self.told_at = change.changed_at
        # At once, so that the next holder waits for the new delay already.
        self.politeness.take_delay(change.delay_s)
        self.give_back()
        return True

    def give_back(self) -> None:
        """Ask for no more after the request under way; what was taken stays open, and may be leased at once."""
        self.gives_back = self.dry = True
        self.queue.clear()
        self.refilled.set()

    def refill(self, attempts: Sequence[Attempt], *, limit: int) -> None:
        """Take more due pages; fewer than asked for means that there are no more."""
        if self.dry:  # since the database was asked: they stay open
            return
        self.take(attempts)
        self.has_more = len(attempts) >= limit
        self.looked_at = self._clock.monotonic()
        if attempts:
            self.idle_since = None
            self.refilled.set()

    def take(self, attempts: Iterable[Attempt]) -> None:
        """Queue pages; one whose result waits to be settled, from this lease or the one before it, is left out."""
        self.queue.extend(attempt for attempt in attempts if attempt.id not in self.unsettled)

    async def work(self, attempt: Attempt) -> bool:
        """Bring one attempt to its ending and hand it on; False if the domain must wait and the attempt stays open."""
        try:
            url = parse(attempt.url, self._normalisation)
        except UrlRefused as exc:
            self.end(self._begin(attempt), Outcome.EXCLUDED, "url_refused", message=str(exc))
            return True
        if (rule := self._scope.left_out(url)) is not None:
            self.end(self._begin(attempt), Outcome.EXCLUDED, f"exclude:{rule}")
            return True
        try:
            permission = await self.gate.may_ask(url)
            if permission.ask_again_at is not None:
                self._put_off(permission.ask_again_at, is_busy=permission.is_busy)
                return False
            if not permission.allowed:
                self.end(self._begin(attempt), permission.outcome, permission.reason, message=permission.message)
                return True
            ended = await self._fetch_page(self._begin(attempt), attempt, url)
        except _GivesBack:
            return False
        except NoSpace as exc:  # the body of an answer could not be spooled: no fault of the page, so it stays open
            _log.error("crawl.no_space", url=attempt.url, message=str(exc))
            self._client.progress.storage_refused_at = self._clock.monotonic()
            self.put_off_until = self._clock.now() + _NO_SPACE
            return False
        if ended:
            self.put_off_until = self.politeness.closed_until or self._rest_until()
        return ended

    @property
    def name_is_gone(self) -> bool:
        """Whether the domain's name does not exist, and did not for long enough to believe it."""
        return self._client.name_is_gone(self.lease.domain)

    def update(self) -> DomainUpdate:
        """Return what was learned of the domain, for the next settle, or for when it is given back."""
        return self.politeness.update(put_off_until=self.put_off_until)

    def _put_off(self, until: datetime, *, is_busy: bool) -> None:
        """Give the domain back until robots.txt may be asked for again; for good if it stays unreachable."""
        if not is_busy:
            self.politeness.unreachable()
        self.put_off_until = until

    def _rest_until(self) -> datetime | None:
        """Return when the domain may be asked again if that is too far away to hold it meanwhile."""
        wait = self.pace.next_at - self._clock.monotonic()
        return self._clock.now() + timedelta(seconds=wait) if wait > _HELD_S else None

    def _begin(self, attempt: Attempt) -> PageUnderWay:
        return PageUnderWay(attempt=attempt, token=self.lease.token, started_at=self._clock.now())

    async def _fetch_page(self, page: PageUnderWay, attempt: Attempt, url: Url) -> bool:
        try:
            return await self._follow(page, attempt, url)
        except BaseException:  # interrupted between two hops: no later step stores the first
            for hop in page.hops:
                hop.body.close()
            raise

    async def _follow(self, page: PageUnderWay, attempt: Attempt, url: Url) -> bool:
        """Fetch an attempt over its redirects inside this domain; a hop to another domain ends it.

        False if the robots.txt of a hop cannot be read now: what was fetched is kept, and the attempt stays open.
        """
        hops = page.hops
        for _ in range(MAX_REDIRECTS + 1):
            result = await self._ask(self._requests.for_page(url, attempt if not hops else None))
            if isinstance(result, FetchFailed):
                return self._failed(page, attempt, result)
            hops.append(result)
            target = self._target(url, result)
            if target is None or isinstance(target, str):
                self._answered(page, attempt, refused=target)
                return True
            if target.domain != self.lease.domain:
                if attempt.hops >= MAX_REDIRECTS:
                    self.end(page, Outcome.FAILED, "too_many_redirects", redirected_to=target.fetch)
                else:
                    self._answered(page, attempt, redirected_to=target.fetch)
                return True
            url = target
            verdict = self._scope.rules.decide(url, attempt.depth, attempt.kind)
            if not verdict.allowed:
                self.end(page, Outcome.EXCLUDED, f"redirect_out_of_scope:{verdict.rule}", redirected_to=url.fetch)
                return True
            permission = await self.gate.may_ask(url)
            if permission.ask_again_at is not None:
                self._keep(hops)
                self._put_off(permission.ask_again_at, is_busy=permission.is_busy)
                return False
            if not permission.allowed:
                self.end(page, permission.outcome, f"redirect_{permission.reason}", redirected_to=url.fetch)
                return True
        self.end(page, Outcome.FAILED, "too_many_redirects", redirected_to=url.fetch)
        return True

    def _keep(self, hops: Sequence[Fetched]) -> None:
        """Have answers stored that end no attempt."""
        for hop in hops:
            token = self.lease.token
            self._engine.hand_over(
                PageUnderWay(attempt=None, token=token, started_at=hop.started_at, hops=[hop], reason="redirected")
            )

    def _target(self, url: Url, result: Fetched) -> Url | str | None:
        """Return where an answer points: an address, a reason why it cannot be followed, or None if it stays."""
        if not outcomes.is_redirect(result.status):
            return None
        location = parse_head(result.response_head).get("location")
        if not location:
            return None
        try:
            return follow(url, location, self._normalisation)
        except UrlRefused as exc:
            return exc.reason

    async def _ask(self, request: FetchRequest) -> Fetched | FetchFailed:
        """Make one request in this domain's turn."""
        self._check_stays()
        return await self._client.ask(request, self.pace, self.politeness)

    def _check_stays(self) -> None:
        # Said during the request before this one, a robots.txt or a redirect: what is asked next may be asked later.
        if self.gives_back:
            raise _GivesBack

    async def _ask_for_robots(
        self, url: Url, deadline_s: float, max_bytes: int
    ) -> Fetched | FetchFailed | LeaseRefusal:
        """Make one request for robots.txt, in the turn of whichever domain it is on, if that can be had."""
        request = self._requests.for_robots(url, deadline_s, max_bytes)
        if url.domain == self.lease.domain:
            return await self._ask(request)
        self._check_stays()
        async with self._engine.borrow(url.domain) as pace:
            if isinstance(pace, LeaseRefusal):
                return pace
            try:
                # What it answers says nothing of our own domain: neither that it is private, nor that it is busy.
                return await self._client.ask(request, pace, None)
            except LeaseLost:  # that domain's, not ours
                return LeaseRefusal.HELD

    def _answered(
        self, page: PageUnderWay, attempt: Attempt, *, refused: str | None = None, redirected_to: str | None = None
    ) -> None:
        """End an attempt that got an answer."""
        status = page.hops[-1].status
        outcome, reason = outcomes.of_status(status)
        stays = refused is None and redirected_to is None
        if stays and outcome is Outcome.SUCCESS and outcomes.broke_off(page.hops[-1]):
            self._broke_off(page, attempt)
            return
        if refused is not None:
            outcome, reason = Outcome.EXCLUDED, "redirect_refused"
        elif status == 304 and not outcomes.is_conditional(page.hops[-1].request_head):
            outcome, reason = Outcome.FAILED, "not_modified_unasked"
        elif status == 206 and outcomes.is_part(status, parse_head(page.hops[-1].response_head).get("content-range")):
            outcome, reason = Outcome.FAILED, "partial_unasked"
        elif outcomes.is_redirect(status) and redirected_to is None:
            outcome, reason = Outcome.FAILED, "redirect_without_location"
        # A 429 is the domain's answer, not the page's: it counts against the whole of it, as a 5xx does.
        if outcomes.hurts_domain(status):
            self.politeness.went_badly()
        else:
            self.politeness.went_well()
        retry_at = self._retry_at(attempt, page.hops[-1]) if may_retry(status=status) else None
        self.end(page, outcome, reason, message=refused, redirected_to=redirected_to, retry_at=retry_at)

    def _broke_off(self, page: PageUnderWay, attempt: Attempt) -> None:
        """End an attempt whose body did not come whole: tried again like a timeout, what came of it is stored."""
        # The domain's circuit does not count it: a server that sent a whole head is there.
        answer = page.hops[-1]
        self.end(
            page,
            Outcome.FAILED,
            outcomes.TRUNCATED,
            message=outcomes.how_it_broke_off(answer),
            retry_at=self._retry_at(attempt, answer),
        )

    def _failed(self, page: PageUnderWay, attempt: Attempt, failure: FetchFailed) -> bool:
        """End an attempt that got no answer.

        False if the domain is away and the attempt stays open until it is back, or given up.
        """
        outcome, reason = outcomes.of_failure(failure)
        retry_at = None
        if may_retry(problem=failure.problem):
            # A domain that is away is no fault of the page: its last try opens the circuit, and is not used up.
            is_away = outcomes.means_away(failure) and not self._requests.polls(attempt)
            self.politeness.went_badly(at_once=is_away and attempt.number >= self.politeness.last_number)
            if is_away and self.politeness.closed_until is not None:
                self._keep(page.hops)
                self.put_off_until = self.politeness.closed_until
                return False
            retry_at = self._retry_at(attempt, None)
        if not page.hops:
            page.started_at = failure.started_at
        if failure.received:
            page.evidence = failure
        self.end(page, outcome, reason, message=failure.message, retry_at=retry_at)
        return True

    def _retry_at(self, attempt: Attempt, answer: Fetched | None) -> datetime | None:
        """Return when to try again; a 429 or 503 also slows the domain."""
        if answer is not None and answer.status in BUSY:
            self.politeness.slow_down()
        return None if self._requests.polls(attempt) else self.politeness.retry_at(attempt.number)

    def give_up(self, attempt: Attempt, reason: str, message: str) -> None:
        """End an attempt that something unforeseen happened to."""
        self.end(self._begin(attempt), Outcome.FAILED, reason, message=message)

    def end(
        self,
        page: PageUnderWay,
        outcome: Outcome,
        reason: str,
        *,
        message: str | None = None,
        redirected_to: str | None = None,
        retry_at: datetime | None = None,
    ) -> None:
        """Hand an ended attempt to the writer thread."""
        page.outcome, page.reason, page.message = outcome, reason, message
        page.redirected_to, page.retry_at = redirected_to, retry_at
        # When the request that ended it was made: waits for the domain's turn are not the page's.
        if page.hops:
            page.started_at = page.hops[-1].started_at
        if page.attempt is not None:
            self.unsettled.add(page.attempt.id)
        self._engine.hand_over(page)
