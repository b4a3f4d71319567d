"""Processes one leased domain: each page is checked against robots.txt, paced, fetched and handed on.

A worker never parses and never accesses the database; it decides what to request and when, and what a response
means for the domain. It ends when its lease ends, when it is stopped, or when no pages are left.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from holdfast import log
from holdfast.crawl import outcomes
from holdfast.crawl.outcomes import MAX_REDIRECTS, PageUnderWay, follow
from holdfast.crawl.paced_client import PacedClient
from holdfast.crawl.politeness import DomainPoliteness
from holdfast.crawl.robots_gate import EnginePort, RobotsFiles, RobotsGate
from holdfast.errors import NoSpace, UrlRefused
from holdfast.fetch.endings import BUSY, is_ambiguous
from holdfast.frontier.politeness import may_retry
from holdfast.types import (
    NO_SITEMAP,
    REDIRECTED,
    Attempt,
    DomainChange,
    DomainUpdate,
    Fetched,
    FetchFailed,
    FetchRequest,
    Outcome,
)
from holdfast.urls import Url, parse
from holdfast.warc.payload import parse_head

# Release a domain that has to rest for longer than this.
_HELD_S = 20.0
_NO_SPACE = timedelta(seconds=2)
# Most bytes to read of a page that shows whether a host is up.
_CHECK_BYTES = 64 * 1024
_log = log.get()


class DomainWorker:
    def __init__(
        self, politeness: DomainPoliteness, client: PacedClient, robots: RobotsFiles, engine: EnginePort
    ) -> None:
        self.lease, self.politeness, self.pace = politeness.lease, politeness, politeness.pace
        self._client, self._requests, self._scope, self._engine = client, client.requests, robots.scope, engine
        self._clock, self._normalisation = politeness.clock, robots.scope.normalisation
        self.gate = RobotsGate(robots, politeness, client, engine)
        if self.lease.taken_over:  # read this after the rules, which may set the delay
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
        self.applied_at = self.lease.changed_at
        """The last change of an operator that this worker knows of."""
        self.lost = False
        self.leaving = False
        """Set while its domain is being given back: a visitor who comes now must ask for a lease of its own."""
        self.working = True
        self.idle_since: float | None = None
        self.looked_at = self._clock.monotonic()

    @property
    def holding(self) -> set[int]:
        """Attempts this worker holds unsettled: the database must not assign them to it again."""
        held = {attempt.id for attempt in self.queue} | self.unsettled
        return held if self.current is None else held | {self.current.id}

    def wants_more(self, low: int) -> bool:
        """Return whether the worker has no pages, or few while the database has more."""
        return self.working and not self.dry and (not self.queue or (self.has_more and len(self.queue) < low))

    def should_look(self, now: float, *, new: bool) -> bool:
        """Return whether to query the database for more pages: there are more, new ones arrived, or the last poll
        is old.
        """
        return new or self.has_more or now - self.looked_at > 1.0

    def is_done(self, now: float, linger_s: float) -> bool:
        """Return whether the worker may end: for `linger_s`, nothing was queued, unsettled or left in the database."""
        if self.queue or self.has_more or self.unsettled:
            self.idle_since = None
            return False
        if self.idle_since is None:
            self.idle_since = now
        return now - self.idle_since >= linger_s

    def make_way(self) -> None:
        """Request no more pages after the current one; the remaining attempts stay open for later."""
        self.made_way = self.dry = True
        self.queue.clear()
        self.refilled.set()

    def hear(self, change: DomainChange) -> bool:
        """Apply an operator's change: release the domain after the current request; return False if already
        applied.
        """
        if self.applied_at is not None and change.changed_at <= self.applied_at:
            return False
        self.applied_at = change.changed_at
        # Apply it at once, so that the next holder already waits for the new delay.
        self.politeness.take_delay(change.delay_s)
        self.give_back()
        return True

    def give_back(self) -> None:
        """Request no more after the current request; remaining attempts stay open and can be leased immediately."""
        self.pace.is_released = self.dry = True
        self.queue.clear()
        self.refilled.set()

    def refill(self, attempts: Sequence[Attempt], *, limit: int) -> None:
        """Add due pages; fewer than `limit` means that there are no more."""
        if self.dry:  # the worker ended since the query: they stay open
            return
        self.take(attempts)
        self.has_more = len(attempts) >= limit
        self.looked_at = self._clock.monotonic()
        if attempts:
            self.idle_since = None
            self.refilled.set()

    def take(self, attempts: Iterable[Attempt]) -> None:
        """Queue pages, except those whose results from this lease or the previous one are not settled yet."""
        self.queue.extend(attempt for attempt in attempts if attempt.id not in self.unsettled)

    async def work(self, attempt: Attempt) -> bool:
        """Complete one attempt and hand it on; return False if the domain must wait and the attempt stays open."""
        try:
            url = parse(attempt.url, self._normalisation)
        except UrlRefused as exc:
            self.end(self._begin(attempt), Outcome.EXCLUDED, "url_refused", message=str(exc))
            return True
        if (rule := self._scope.left_out(url)) is not None:
            self.end(self._begin(attempt), Outcome.EXCLUDED, f"exclude:{rule}")
            return True
        try:
            if self.politeness.in_doubt and not await self._is_up():
                self.put_off_until = self.politeness.closed_until
                return False
            permission = await self.gate.may_ask(url)
            if permission.ask_again_at is not None:
                self._put_off(permission.ask_again_at, is_busy=permission.is_busy)
                return False
            if not permission.allowed:
                self.end(self._begin(attempt), permission.outcome, permission.reason, message=permission.message)
                return True
            ended = await self._fetch_page(self._begin(attempt), attempt, url)
        except NoSpace as exc:  # spooling the body failed, not the page: it stays open
            _log.error("crawl.no_space", url=attempt.url, message=str(exc))
            self._client.progress.storage_refused_at = self._clock.monotonic()
            self.put_off_until = self._clock.now() + _NO_SPACE
            return False
        if ended:
            self.put_off_until = self.politeness.closed_until or self._rest_until()
        return ended

    async def _is_up(self) -> bool:
        """Return whether the host still serves the page it last served; opens the circuit if not."""
        answered, domain = self._client.answered, self.lease.domain
        url = parse(answered[domain], self._normalisation) if domain in answered else None
        if url is None or self._scope.left_out(url) is not None or not (await self.gate.may_ask(url)).allowed:
            # The page was forgotten, or our own rules forbid it now: the next page shows whether the host is up.
            answered.pop(domain, None)
            self.politeness.in_doubt = False
            return True
        result = await self._ask(replace(self._requests.for_page(url, None), max_body_bytes=_CHECK_BYTES))
        is_up = isinstance(result, Fetched) and not outcomes.is_failure(result.status)
        if isinstance(result, Fetched):
            result.body.close()
            if result.status in BUSY:
                self.politeness.slow_down()
        if is_up:
            self.politeness.went_well()
        else:
            self.politeness.went_badly(at_once=True)
        _log.info("crawl.host_checked", domain=domain, url=url.fetch, is_up=is_up)
        return is_up

    @property
    def name_is_gone(self) -> bool:
        """Whether the domain's DNS name has been missing often and long enough to treat the domain as gone."""
        return self._client.name_is_gone(self.lease.domain)

    def update(self) -> DomainUpdate:
        return self.politeness.update(put_off_until=self.put_off_until)

    def _put_off(self, until: datetime, *, is_busy: bool) -> None:
        """Release the domain until robots.txt may be requested again; count it as unreachable unless it is only
        busy.
        """
        if not is_busy:
            self.politeness.unreachable()
        self.put_off_until = until

    def _rest_until(self) -> datetime | None:
        """Return when the domain may be requested again, if that is too far away to hold it until then."""
        wait = self.pace.next_at - self._clock.monotonic()
        return self._clock.now() + timedelta(seconds=wait) if wait > _HELD_S else None

    def _begin(self, attempt: Attempt) -> PageUnderWay:
        return PageUnderWay(attempt=attempt, token=self.lease.token, started_at=self._clock.now())

    async def _fetch_page(self, page: PageUnderWay, attempt: Attempt, url: Url) -> bool:
        try:
            return await self._follow(page, attempt, url)
        except BaseException:  # if interrupted between two hops, no later step stores the first
            for hop in page.hops:
                hop.body.close()
            raise

    async def _follow(self, page: PageUnderWay, attempt: Attempt, url: Url) -> bool:
        """Fetch an attempt along its redirects within this domain; a redirect to another domain ends it.

        Return False if the robots.txt of a hop is unavailable: fetched responses are stored, and the attempt stays
        open.
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
            # A redirect is not a step: the page's own depth is allowed.
            verdict = self._scope.rules.decide(url, 0, attempt.kind)
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
        for hop in hops:
            token = self.lease.token
            self._engine.hand_over(
                PageUnderWay(attempt=None, token=token, started_at=hop.started_at, hops=[hop], reason=REDIRECTED)
            )

    def _target(self, url: Url, result: Fetched) -> Url | str | None:
        """Return a response's redirect target: a URL, a reason why it cannot be followed, or None without redirect."""
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
        return await self._client.ask(request, self.pace, self.politeness)

    def _answered(
        self, page: PageUnderWay, attempt: Attempt, *, refused: str | None = None, redirected_to: str | None = None
    ) -> None:
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
        elif status in (404, 410) and self.gate.is_unnamed_sitemap(attempt):
            outcome, reason = Outcome.EXCLUDED, NO_SITEMAP
        elif reason == "ok" and is_ambiguous(page.hops[-1].response_head):
            reason = outcomes.AMBIGUOUS
        # A 429 or 503 concerns the domain, not the page. Another 5xx may concern either.
        if outcomes.is_failure(status):
            self._went_badly(may_be_page=status not in BUSY)
        else:
            self.politeness.went_well()
            self._client.answered[self.lease.domain] = page.hops[-1].url
        retry_at = self._retry_at(attempt, page.hops[-1]) if may_retry(status=status) else None
        self.end(page, outcome, reason, message=refused, redirected_to=redirected_to, retry_at=retry_at)

    def _broke_off(self, page: PageUnderWay, attempt: Attempt) -> None:
        """End an attempt with an incomplete body: retried like a timeout, the partial response is stored."""
        # The domain's circuit does not count it: a server that sent a whole head is up.
        answer = page.hops[-1]
        self.end(
            page,
            Outcome.FAILED,
            outcomes.TRUNCATED,
            message=outcomes.how_it_broke_off(answer),
            retry_at=self._retry_at(attempt, answer),
        )

    def _failed(self, page: PageUnderWay, attempt: Attempt, failure: FetchFailed) -> bool:
        """End an attempt that got no response.

        Return False if the domain is unreachable and the attempt stays open until the domain is back or given up.
        """
        outcome, reason = outcomes.of_failure(failure)
        retry_at = None
        if may_retry(problem=failure.problem):
            # An unreachable domain is not the page's fault: its last attempt opens the circuit, and is not used up.
            is_away = outcomes.means_away(failure) and not self._requests.polls(attempt)
            is_last = is_away and attempt.number >= self.politeness.last_number
            self._went_badly(at_once=is_last, may_be_page=failure.sent_s is not None)
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

    def _went_badly(self, *, may_be_page: bool, at_once: bool = False) -> None:
        can_check = may_be_page and self.lease.domain in self._client.answered
        self.politeness.went_badly(at_once=at_once, can_check=can_check)

    def _retry_at(self, attempt: Attempt, answer: Fetched | None) -> datetime | None:
        """Return the retry time; a 429 or 503 also slows the domain."""
        if answer is not None and answer.status in BUSY:
            self.politeness.slow_down()
        return None if self._requests.polls(attempt) else self.politeness.retry_at(attempt.number)

    def give_up(self, attempt: Attempt, reason: str, message: str) -> None:
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
        page.outcome, page.reason, page.message = outcome, reason, message
        page.redirected_to, page.retry_at = redirected_to, retry_at
        # Use the time of the request that ended it: waits for the domain's turn do not count for the page.
        if page.hops:
            page.started_at = page.hops[-1].started_at
        if page.attempt is not None:
            self.unsettled.add(page.attempt.id)
        self._engine.hand_over(page)
