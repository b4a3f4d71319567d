"""May this address be asked for? Answered by the origin's robots.txt: fetched, archived and remembered here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from holdfast import log
from holdfast.crawl.context import ROBOTS, CrawlContext, FetchedPage
from holdfast.crawl.outcomes import MAX_REDIRECTS, follow, is_redirect
from holdfast.crawl.politeness import DomainPoliteness
from holdfast.errors import UrlRefused
from holdfast.fetch import robots_state as policy
from holdfast.fetch.robots import RobotsFile, capped
from holdfast.types import (
    Fetched,
    FetchFailed,
    FetchProblem,
    LeaseRefusal,
    Outcome,
    RobotsAnswer,
    RobotsState,
    Truncated,
)
from holdfast.urls import Url, parse
from holdfast.values import dataclass
from holdfast.warc.payload import decode, parse_head, payload_chunks

AGENT = "holdfast"
ROBOTS_DEADLINE_S = 10.0
MAX_ROBOTS_BYTES = 512 * 1024
_log = log.get()

Ask = Callable[[Url, float, int], Awaitable[Fetched | FetchFailed | LeaseRefusal]]
"""Makes one paced request: address, deadline, size cap; or says why the domain that it leads to cannot be asked."""


_BUSY_S = 2.0
"""When to look again at a robots.txt that leads to a domain of another process: it may be free, or ours, by then."""
_LONGEST_BUSY_S = 60.0
"""The wait doubles up to this: each look asks the origin, and archives its answer, once more."""
_NEVER_ASKED = (FetchProblem.ADDRESS_FORBIDDEN, FetchProblem.URL_REFUSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """What robots.txt says about one address. `ask_again_at` is set when it could not be read."""

    allowed: bool
    reason: str = "robots:allowed"
    message: str | None = None
    ask_again_at: datetime | None = None
    is_busy: bool = False
    """Whether it could not be asked for because another process holds its domain: that is no outage."""
    outcome: Outcome = Outcome.BLOCKED_ROBOTS
    """How an attempt ends that is not allowed."""


_ALLOWED = Permission(allowed=True)


class RobotsGate:
    """The robots files of one domain's origins, for the lane that holds it."""

    def __init__(self, crew: CrawlContext, manners: DomainPoliteness, token: int, ask: Ask) -> None:
        self._crew, self._manners, self._token, self._ask = crew, manners, token, ask
        self.sitemaps: list[tuple[str, tuple[str, ...]]] = []
        """Origins whose robots.txt was read, with the sitemaps that it names; the engine takes them from here."""

    async def may_ask(self, url: Url) -> Permission:
        """Return whether this address may be asked for, after reading its robots.txt if that is due."""
        crew = self._crew
        state = self._manners.robots.get(url.origin)
        now = crew.clock.now()
        if state is None or policy.needs_fetch(state, now):
            read = await self._read(url, state)
            if isinstance(read, Permission):
                return read
            state, now = read, crew.clock.now()
        verdict = policy.verdict(state, now)
        if crew.plan.robots == "ignore" or verdict is policy.RobotsVerdict.ALLOW:
            return _ALLOWED
        if verdict is not policy.RobotsVerdict.RULES:
            return Permission(allowed=False, reason="robots_unreachable", ask_again_at=policy.next_try_at(state))
        return self._by_rules(url, state)

    def _by_rules(self, url: Url, state: RobotsState) -> Permission:
        decision = self._file(state).decide(url.fetch)
        if decision.allowed:
            return _ALLOWED
        reason = "robots:too_costly" if decision.line is None else f"robots:line {decision.line}"
        return Permission(allowed=False, reason=reason, message=decision.rule)

    def _file(self, state: RobotsState) -> RobotsFile:
        """Return the parsed rules of an origin, parsed once per process and answer."""
        key = state.origin, state.fetched_at
        file = self._crew.robots_files.get(key)
        if file is None:
            file = self._crew.robots_files[key] = RobotsFile.parse(state.body, AGENT)
        return file

    def refresh(self) -> None:
        """Take delays from rules that an earlier lease has read."""
        for state in self._manners.robots.values():
            self._note(state)

    async def _read(self, url: Url, previous: RobotsState | None) -> RobotsState | Permission:
        """Fetch an origin's robots.txt, archive it, and remember what it means; or say why nothing may be asked."""
        origin = url.origin
        result, hops = await self._fetch(parse(f"{origin}/robots.txt", self._crew.policy))
        for hop in hops:
            self._crew.hand_over(
                FetchedPage(
                    attempt=None,
                    token=self._token,
                    started_at=hop.started_at,
                    hops=(hop,),
                    outcome=Outcome.SUCCESS,
                    reason=ROBOTS,
                )
            )
        if result is None:
            return self._while_busy(origin, previous)
        self._crew.busy_robots.pop(origin, None)
        if isinstance(result, FetchFailed):
            return Permission(
                allowed=False, reason=result.problem.value, message=result.message, outcome=Outcome.EXCLUDED
            )
        state = policy.read_answer(previous, result, self._crew.clock.now())
        self._manners.learn(state)
        self._note(state)
        return state

    def _while_busy(self, origin: str, previous: RobotsState | None) -> RobotsState | Permission:
        """Return the last answer, good for a day, if the file leads to a domain that another process holds."""
        now = self._crew.clock.now()
        if previous is not None and policy.verdict(previous, now) in (
            policy.RobotsVerdict.RULES,
            policy.RobotsVerdict.ALLOW,
        ):
            return previous
        looks = self._crew.busy_robots.get(origin, 0)
        self._crew.busy_robots[origin] = looks + 1
        wait = timedelta(seconds=min(_BUSY_S * 2.0 ** min(looks, 10), _LONGEST_BUSY_S))
        return Permission(allowed=False, reason="robots_elsewhere", ask_again_at=now + wait, is_busy=True)

    def _note(self, state: RobotsState) -> None:
        """Take the delay that an answer asks for; its sitemaps and what is odd about it once per origin and process."""
        if state.answer is RobotsAnswer.UNREACHABLE:
            return
        file = self._file(state) if state.answer is RobotsAnswer.RULES else None
        asked_s = (file.crawl_delay if file is not None else None) or 0.0
        wish = capped(asked_s, self._crew.settings.politeness.max_delay_s)
        if self._crew.plan.robots == "obey":
            self._manners.crawl_delay(state.origin, wish.seconds)
        if state.origin in self._crew.met_origins:
            return
        self.sitemaps.append((state.origin, file.sitemaps if file is not None else ()))
        if file is not None and wish.cut:
            _log.warning("robots.delay_capped", origin=state.origin, asked_s=file.crawl_delay)
        if file is not None and file.notes:
            _log.info("robots.noted", origin=state.origin, notes=list(file.notes))

    async def _fetch(self, url: Url) -> tuple[policy.RobotsRead | FetchFailed | None, list[Fetched]]:
        """Follow a robots.txt over at most five redirects, each under its own domain's turn.

        A failure comes back as it is where the origin itself may never be asked; None where another process holds the
        domain that it leads to. One that is forbidden or rests is as good as a server that does not answer.
        """
        hops: list[Fetched] = []
        origin = url.origin
        for _ in range(MAX_REDIRECTS + 1):
            deadline_s = min(ROBOTS_DEADLINE_S, self._crew.settings.fetch.deadline_s)
            result = await self._ask(url, deadline_s, MAX_ROBOTS_BYTES + 1)
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
                url = follow(url, location, self._crew.policy)
            except UrlRefused:
                return policy.RobotsRead(origin=origin, failure=FetchProblem.URL_REFUSED), hops
        return policy.RobotsRead(origin=origin, status=hops[-1].status, too_many_redirects=True), hops

    async def _recall(self, origin: str, url: Url) -> policy.RobotsRead | None:
        """Return what the holder of another domain has read there, if this is where its robots.txt stands.

        An apex whose robots.txt leads to the www host, which another process crawls for days, has the same rules.
        """
        if url.fetch != f"{url.origin}/robots.txt" or url.origin == origin:
            return None
        state = await self._crew.recall_robots(url.origin)
        verdict = policy.verdict(state, self._crew.clock.now())
        if state is None or verdict not in (policy.RobotsVerdict.RULES, policy.RobotsVerdict.ALLOW):
            return None
        return policy.RobotsRead(origin=origin, status=state.status, body=state.body)


def read_of(origin: str, fetched: Fetched) -> policy.RobotsRead:
    """Return what an answer says. A body that broke off or cannot be decoded is a failure: half a file, or none that
    can be read, forbids nothing. One that our own limit cut is read as far as it goes.
    """
    broken = FetchProblem.DISCONNECTED if fetched.truncated in (Truncated.DISCONNECT, Truncated.TIME) else None
    head = parse_head(fetched.response_head)
    decoded = decode(head, b"".join(payload_chunks(head, fetched.body)))
    if decoded.problems and len(decoded.data) <= MAX_ROBOTS_BYTES and 200 <= fetched.status < 300:
        _log.warning("robots.unreadable", origin=origin, problems=[str(problem) for problem in decoded.problems])
        broken = FetchProblem.BAD_RESPONSE
    body = decoded.data[: MAX_ROBOTS_BYTES + 1]
    return policy.RobotsRead(origin=origin, status=fetched.status, body=body, failure=broken)
