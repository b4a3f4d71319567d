"""One leased domain at work: its pages in turn, each checked against robots.txt, paced, fetched and handed on.

A lane never parses and never touches the database; it knows what it may ask, when, and what an answer means for the
domain. It ends when its lease does, when it is told to, or when it has nothing left to ask.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

from holdfast import log
from holdfast.crawl import outcomes
from holdfast.crawl.context import CrawlContext, FetchedPage, MissingName
from holdfast.crawl.outcomes import MAX_REDIRECTS, follow
from holdfast.crawl.plan import Polled
from holdfast.crawl.politeness import DomainPoliteness, Pace
from holdfast.crawl.robots_gate import RobotsGate
from holdfast.errors import LeaseLost, NoSpace, UrlRefused
from holdfast.fetch.endings import BUSY, asked_rest
from holdfast.frontier import politeness
from holdfast.types import (
    Attempt,
    DomainLease,
    Fetched,
    FetchFailed,
    FetchProblem,
    FetchRequest,
    LeaseRefusal,
    Outcome,
    UrlKind,
)
from holdfast.urls import Url, parse
from holdfast.warc.payload import parse_head

_HTML = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
_HELD_S = 20.0
"""A domain that must be left alone for longer is given back meanwhile."""
_NO_SPACE = timedelta(seconds=2)
_MISSING_TIMES, _MISSING_S = 4, 60.0
"""So often, and for so long, a nameserver must say that a name does not exist before its domain is given up. A server
that is down comes back within the half hour that a crawl waits; a name that is misspelt or was given up does not, and a
resolver that is wrong for a moment (a network that is just being joined) is wrong for less than this."""
_log = log.get()


class PageUnderWay(NamedTuple):
    """One attempt on its way over its redirects."""

    attempt: Attempt
    started_at: datetime
    hops: list[Fetched]
    evidence: FetchFailed | None = None
    """The last answer, if it could not be read as one."""


class DomainWorker:
    """The work on one domain in this process."""

    def __init__(self, lease: DomainLease, crew: CrawlContext, *, lease_until: float) -> None:
        self.lease, self._crew = lease, crew
        self.manners = DomainPoliteness(lease, crew.settings.politeness, crew.clock, plan_delay_s=crew.plan.delay_s)
        self.gate = RobotsGate(crew, self.manners, lease.token, self._ask_elsewhere)
        self.gate.refresh()
        now, at = crew.clock.monotonic(), crew.clock.now()
        first = now + max(0.0, (lease.next_allowed_at - at).total_seconds())
        if lease.taken_over:  # the dead owner may have asked a moment ago
            first = max(first, now + self.manners.delay_s)
        self.pace = Pace(crew.clock, first_at=first, lease_until=lease_until, delay=lambda: self.manners.delay_s)
        self.queue: deque[Attempt] = deque(lease.attempts)
        self.holding: set[int] = {attempt.id for attempt in lease.attempts}
        """Attempts that this process has and has not settled."""
        self.has_more = bool(lease.attempts)
        """Whether the database may hold more due pages than we took."""
        self.put_off_until: datetime | None = None
        """Set when nothing may be asked for a while: the engine gives the domain back."""
        self.current: str | None = None
        self._met_at = ""
        self.unsettled = 0
        """Attempts that were handed on and are not in the database yet."""
        self.visitors = 0
        """Lanes of other domains that wait for a turn here, or have it."""
        self.fed = asyncio.Event()
        self.dry = False
        """Set when there is nothing more to be had: the lane ends."""
        self.made_way = False
        """Set when somebody else waits for the domain: the lane ends after the page under way."""
        self.lost = False
        self.leaving = False
        """Set while its domain is being given back: a visitor who comes now must ask for a lease of its own."""
        self.working = True
        self.hungry_since: float | None = None
        self.looked_at = now

    def wants_more(self, low: int) -> bool:
        """Return whether the lane is out of pages, or nearly and there are more."""
        return self.working and not self.dry and (not self.queue or (self.has_more and len(self.queue) < low))

    def should_look(self, now: float, *, new: bool) -> bool:
        """Return whether to ask the database for more: there is more, something new came, or it was long ago."""
        return new or self.has_more or now - self.looked_at > 1.0

    def is_done(self, now: float, linger_s: float) -> bool:
        """Return whether nothing more can come soon: no page here or under way, and we looked and waited."""
        if self.queue or self.has_more or self.unsettled > 0:
            self.hungry_since = None
            return False
        if self.hungry_since is None:
            self.hungry_since = now
        return now - self.hungry_since >= linger_s

    def make_way(self) -> None:
        """Ask for no more after the page under way; what was taken stays open, and is asked for later."""
        self.made_way = self.dry = True
        self.queue.clear()
        self.fed.set()

    def refill(self, attempts: Sequence[Attempt], *, limit: int) -> None:
        """Take more due pages; fewer than asked for means that there are no more."""
        self.queue.extend(attempts)
        self.holding.update(attempt.id for attempt in attempts)
        self.has_more = len(attempts) >= limit
        self.looked_at = self._crew.clock.monotonic()
        if attempts:
            self.hungry_since = None
            self.fed.set()

    async def work(self, attempt: Attempt) -> bool:
        """Bring one attempt to its ending and hand it on; False if the domain must wait and the attempt stays open."""
        try:
            url = parse(attempt.url, self._crew.policy)
        except UrlRefused as exc:
            self.end(self._trip(attempt), Outcome.EXCLUDED, "url_refused", message=str(exc))
            return True
        try:
            permission = await self.gate.may_ask(url)
            if permission.ask_again_at is not None:
                self._put_off(permission.ask_again_at, is_busy=permission.is_busy)
                return False
            if not permission.allowed:
                self.end(self._trip(attempt), permission.outcome, permission.reason, message=permission.message)
                return True
            ended = await self._visited(self._trip(attempt), url)
        except NoSpace as exc:  # the body of an answer could not be spooled: nobody's fault, so the attempt stays open
            _log.error("crawl.no_space", url=attempt.url, message=str(exc))
            self._crew.spool_full_at = self._crew.clock.monotonic()
            self.put_off_until = self._crew.clock.now() + _NO_SPACE
            return False
        if ended:
            self.put_off_until = self.manners.closed_until or self._rest_until()
        return ended

    @property
    def name_is_gone(self) -> bool:
        """Whether the domain's name does not exist, and did not for long enough to believe it."""
        missing = self._crew.missing_names.get(self.lease.domain)
        if missing is None or missing.times < _MISSING_TIMES:
            return False
        patience_s = min(_MISSING_S, self._crew.settings.politeness.unreachable_s)
        return self._crew.clock.monotonic() - missing.since >= patience_s

    def _put_off(self, until: datetime, *, is_busy: bool) -> None:
        """Give the domain back until robots.txt may be asked for again; for good if it stays unreachable."""
        if not is_busy:
            self.manners.unreachable()
        self.put_off_until = until

    def _rest_until(self) -> datetime | None:
        """Return when the domain may be asked again if that is too far away to hold it meanwhile."""
        wait = self.pace.next_at - self._crew.clock.monotonic()
        return self._crew.clock.now() + timedelta(seconds=wait) if wait > _HELD_S else None

    def _trip(self, attempt: Attempt) -> PageUnderWay:
        return PageUnderWay(attempt, self._crew.clock.now(), [])

    async def _visited(self, trip: PageUnderWay, url: Url) -> bool:
        try:
            return await self._visit(trip, url)
        except BaseException:  # interrupted between two hops: no later step stores the first
            for hop in trip.hops:
                hop.body.close()
            raise

    async def _visit(self, trip: PageUnderWay, url: Url) -> bool:
        """Fetch an attempt over its redirects inside this domain; a hop to another domain ends it.

        False if the robots.txt of a hop cannot be read now: what was fetched is kept, and the attempt stays open.
        """
        attempt, hops = trip.attempt, trip.hops
        for _ in range(MAX_REDIRECTS + 1):
            result = await self._ask(self._request(url, attempt if not hops else None))
            if isinstance(result, FetchFailed):
                return self._failed(trip, result)
            hops.append(result)
            target = self._target(url, result)
            if target is None or isinstance(target, str):
                self._answered(trip, refused=target)
                return True
            if target.domain != self.lease.domain:
                if attempt.hops >= MAX_REDIRECTS:
                    self.end(trip, Outcome.FAILED, "too_many_redirects", redirected_to=target.fetch)
                else:
                    self._answered(trip, redirected_to=target.fetch)
                return True
            url = target
            verdict = self._crew.scope.decide(url, attempt.depth, attempt.kind)
            if not verdict.allowed:
                self.end(trip, Outcome.EXCLUDED, f"redirect_out_of_scope:{verdict.rule}", redirected_to=url.fetch)
                return True
            permission = await self.gate.may_ask(url)
            if permission.ask_again_at is not None:
                self._keep(hops)
                self._put_off(permission.ask_again_at, is_busy=permission.is_busy)
                return False
            if not permission.allowed:
                self.end(trip, permission.outcome, f"redirect_{permission.reason}", redirected_to=url.fetch)
                return True
        self.end(trip, Outcome.FAILED, "too_many_redirects", redirected_to=url.fetch)
        return True

    def _keep(self, hops: Sequence[Fetched]) -> None:
        """Have answers stored that end no attempt."""
        for hop in hops:
            self._crew.hand_over(
                FetchedPage(
                    attempt=None,
                    token=self.lease.token,
                    started_at=hop.started_at,
                    hops=(hop,),
                    outcome=Outcome.SUCCESS,
                    reason="redirected",
                )
            )

    def _target(self, url: Url, result: Fetched) -> Url | str | None:
        """Return where an answer points: an address, a reason why it cannot be followed, or None if it stays."""
        if not outcomes.is_redirect(result.status):
            return None
        location = parse_head(result.response_head).get("location")
        if not location:
            return None
        try:
            return follow(url, location, self._crew.policy)
        except UrlRefused as exc:
            return exc.reason

    def _request(self, url: Url, attempt: Attempt | None) -> FetchRequest:
        """Return the request for an address, conditional if we hold a copy that a 304 could stand for."""
        headers: list[tuple[str, str]] = [
            ("Accept", _HTML if attempt is None or attempt.kind is UrlKind.PAGE else "*/*")
        ]
        known: Attempt | Polled | None = None
        if attempt is not None:
            known = self._crew.polled.get(attempt.url_hash) if self._polls(attempt) else attempt
            if known is attempt and not self._crew.originals.readable(attempt):
                known = None
        if known is not None and known.etag:
            headers.append(("If-None-Match", known.etag))
        if known is not None and known.last_modified:
            headers.append(("If-Modified-Since", known.last_modified))
        fetch, crew = self._crew.settings.fetch, self._crew
        return FetchRequest(
            url=url.fetch,
            headers=crew.credentials.join(tuple(headers), url, crew.clock.now()),
            deadline_s=fetch.deadline_s,
            max_body_bytes=self._body_bytes(),
        )

    def _body_bytes(self) -> int:
        """Return how much of a body is taken: where it is not kept, until it is too large to be read."""
        settings = self._crew.settings
        kept = settings.fetch.body_bytes
        return kept if self._crew.plan.keeps_bodies else min(kept, settings.parse.max_bytes + 1)

    async def _ask(self, request: FetchRequest) -> Fetched | FetchFailed:
        """Make one request in this domain's turn."""
        return await self._ask_in_turn(request, self.pace)

    async def _ask_in_turn(self, request: FetchRequest, pace: Pace) -> Fetched | FetchFailed:
        """Make one request in its turn; once more, in the next turn, if only a kept connection failed.

        A server may close an idle connection at the moment that a request leaves: the page should lose no try by it,
        and a robots.txt should not count as unreachable.
        """
        async with pace.turn():
            result = await self._send(request, pace)
        if isinstance(result, FetchFailed) and result.kept_connection:
            async with pace.turn():
                result = await self._send(replace(request, fresh_connection=True), pace)
        return result

    async def _ask_elsewhere(self, url: Url, deadline_s: float, max_bytes: int) -> Fetched | FetchFailed | LeaseRefusal:
        """Make one request for robots.txt, in the turn of whichever domain it is on, if that can be had."""
        crew = self._crew
        headers = crew.credentials.join((("Accept", "text/plain,*/*;q=0.8"),), url, crew.clock.now())
        request = FetchRequest(url=url.fetch, headers=headers, deadline_s=deadline_s, max_body_bytes=max_bytes)
        if url.domain == self.lease.domain:
            return await self._ask(request)
        async with crew.borrow(url.domain) as pace:
            if isinstance(pace, LeaseRefusal):
                return pace
            try:
                return await self._ask_in_turn(request, pace)
            except LeaseLost:  # that domain's, not ours
                return LeaseRefusal.HELD

    async def _send(self, request: FetchRequest, pace: Pace) -> Fetched | FetchFailed:
        """Send a request whose turn it is, and note when it was seen and what the answer asks of us."""
        crew = self._crew
        # However long it is: a wait for the turn of the server's address counts against it, not against the deadline.
        if (left_s := pace.lease_until - crew.clock.monotonic()) < math.inf:
            request = replace(request, send_within_s=left_s)
        self.current = request.url
        try:
            result = await crew.client.fetch(request)
        except BaseException:  # it may have left before we were interrupted
            pace.asked(sent_at=crew.clock.monotonic(), first_byte_at=None)
            raise
        finally:
            self.current = None
        if pace is self.pace:
            self._note_name(result)
        # Counted back from now: a pause of this process makes the request look later than it was, never earlier.
        began_at = crew.clock.monotonic() - result.took_s
        if isinstance(result, Fetched):
            if (head := crew.credentials.hidden(result.request_head)) is not result.request_head:
                result = replace(result, request_head=head)
            if pace is self.pace and result.ip != self._met_at:
                self._met_at = result.ip
                self.manners.met(is_private=crew.is_private(result.ip))
            crew.progress.asked(len(result.response_head) + result.body.size)
            first = None if result.first_byte_s is None else began_at + result.first_byte_s
            pace.asked(sent_at=began_at + result.sent_s, first_byte_at=first)
            self._heed(result, pace)
        elif result.sent_s is not None:
            crew.progress.asked(0)
            pace.asked(sent_at=began_at + result.sent_s, first_byte_at=None)
        elif crew.clock.monotonic() >= pace.lease_until:
            raise LeaseLost("the lease of this domain ran out before the request could leave")
        elif result.problem.transient:
            pace.tried(began_at)
        return result

    def _note_name(self, result: Fetched | FetchFailed) -> None:
        """Note whether the domain's name exists; kept beyond the lease, for it is tried again under the next one."""
        missing, domain = self._crew.missing_names, self.lease.domain
        if isinstance(result, Fetched) or result.problem is not FetchProblem.NO_SUCH_NAME:
            missing.pop(domain, None)
            return
        before = missing.get(domain) or MissingName(0, self._crew.clock.monotonic())
        missing[domain] = before._replace(times=before.times + 1)

    def _heed(self, answer: Fetched, pace: Pace) -> None:
        """Keep the cookies of an answer, and stay away for as long as it asks, whatever was asked for."""
        head = answer.response_head.lower()
        now = self._crew.clock.now()
        if b"set-cookie" in head:
            values = parse_head(answer.response_head).get_all("set-cookie")
            self._crew.credentials.keep(parse(answer.url, self._crew.policy), values, now)
        if answer.status < 300 or b"retry-after" not in head:
            return
        value, most_s = parse_head(answer.response_head).get("retry-after"), self._crew.settings.politeness.max_delay_s
        rest = asked_rest(answer.status, value, now, max_delay_s=most_s)
        if rest is None:
            return
        if rest.clamped:
            _log.warning("crawl.retry_after_clamped", domain=self.lease.domain, seconds=rest.seconds)
        pace.wait_until(self._crew.clock.monotonic() + rest.seconds)
        if pace is self.pace:
            self.manners.told_to_rest(is_busy=answer.status in BUSY)

    def _answered(self, trip: PageUnderWay, *, refused: str | None = None, redirected_to: str | None = None) -> None:
        """End an attempt that got an answer."""
        status = trip.hops[-1].status
        outcome, reason = outcomes.of_status(status)
        stays = refused is None and redirected_to is None
        if stays and outcome is Outcome.SUCCESS and outcomes.broke_off(trip.hops[-1]):
            self._broke_off(trip)
            return
        if refused is not None:
            outcome, reason = Outcome.EXCLUDED, "redirect_refused"
        elif status == 304 and not outcomes.is_conditional(trip.hops[-1].request_head):
            outcome, reason = Outcome.FAILED, "not_modified_unasked"
        elif status == 206 and outcomes.is_part(status, parse_head(trip.hops[-1].response_head).get("content-range")):
            outcome, reason = Outcome.FAILED, "partial_unasked"
        elif outcomes.is_redirect(status) and redirected_to is None:
            outcome, reason = Outcome.FAILED, "redirect_without_location"
        if outcomes.hurts_domain(status):
            self.manners.went_badly()
        else:
            self.manners.went_well()
        retry_at = self._retry_at(trip.attempt, trip.hops[-1]) if politeness.may_retry(status=status) else None
        self.end(trip, outcome, reason, message=refused, redirected_to=redirected_to, retry_at=retry_at)

    def _broke_off(self, trip: PageUnderWay) -> None:
        """End an attempt whose body did not come whole: tried again like a timeout, what came of it is stored.

        The domain's circuit hears nothing of it: a server that sent a whole head is there.
        """
        answer = trip.hops[-1]
        self.end(
            trip,
            Outcome.FAILED,
            outcomes.TRUNCATED,
            message=outcomes.how_it_broke_off(answer),
            retry_at=self._retry_at(trip.attempt, answer),
        )

    def _failed(self, trip: PageUnderWay, failure: FetchFailed) -> bool:
        """End an attempt that got no answer.

        False if the domain is away: that is not the page's fault, so it stays open until the domain is back, or given
        up. A page that is tried for the last time counts as enough to tell.
        """
        outcome, reason = outcomes.of_failure(failure)
        retry_at, limits = None, self._crew.settings.politeness
        if politeness.may_retry(problem=failure.problem):
            is_away = outcomes.means_away(failure) and not self._polls(trip.attempt)
            self.manners.went_badly(at_once=is_away and trip.attempt.number > limits.retries)
            if is_away and self.manners.closed_until is not None:
                self._keep(trip.hops)
                self.put_off_until = self.manners.closed_until
                return False
            retry_at = self._retry_at(trip.attempt, None)
        if not trip.hops:
            trip = trip._replace(started_at=failure.started_at)
        if failure.received:
            trip = trip._replace(evidence=failure)
        self.end(trip, outcome, reason, message=failure.message, retry_at=retry_at)
        return True

    def _retry_at(self, attempt: Attempt, answer: Fetched | None) -> datetime | None:
        """Return when to try again, not before the domain's next turn; a 429 or 503 also slows the domain."""
        crew = self._crew
        if answer is not None and answer.status in (429, 503):
            self.manners.slow_down()
        limits = crew.settings.politeness
        wait = politeness.next_try(
            attempt.number, random=crew.random, retries=limits.retries, base_s=limits.retry_base_s
        )
        if wait is None or self._polls(attempt):
            return None
        return crew.clock.now() + timedelta(seconds=max(wait, self.pace.next_at - crew.clock.monotonic()))

    def _polls(self, attempt: Attempt) -> bool:
        """Return whether an attempt is a poll: its next turn is its retry, and its own validators count."""
        return attempt.kind is UrlKind.SITEMAP and self._crew.plan.polls

    def give_up(self, attempt: Attempt, reason: str, message: str) -> None:
        """End an attempt that something unforeseen happened to."""
        self.end(self._trip(attempt), Outcome.FAILED, reason, message=message)

    def end(
        self,
        trip: PageUnderWay,
        outcome: Outcome,
        reason: str,
        *,
        message: str | None = None,
        redirected_to: str | None = None,
        retry_at: datetime | None = None,
    ) -> None:
        """Hand an ended attempt to the desk."""
        self.unsettled += 1
        self._crew.hand_over(
            FetchedPage(
                attempt=trip.attempt,
                token=self.lease.token,
                hops=tuple(trip.hops),
                evidence=trip.evidence,
                # When the request that ended it was made: waits for the domain's turn are not the page's.
                started_at=trip.hops[-1].started_at if trip.hops else trip.started_at,
                outcome=outcome,
                reason=reason,
                message=message,
                redirected_to=redirected_to,
                retry_at=retry_at,
            )
        )
