"""Politeness towards one domain: its delay, circuit breaker, robots.txt files, and turns.

Changed only by the worker that holds the domain's lease.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random

from holdfast.clock import Clock
from holdfast.config import Settings
from holdfast.errors import LeaseLost
from holdfast.fetch import robots
from holdfast.frontier import politeness as rules
from holdfast.types import CircuitState, DomainLease, DomainUpdate, RobotsRecord

CIRCUIT_FAILURES = 5
"""Consecutive failures that open a domain's circuit.

Failures that the page itself may cause (500, timeout) open it only if the page last served by the domain fails
too.
"""


class DomainPoliteness:
    """A lease holder's state of its domain. `delay_s` is the plan's, `random` spreads retries."""

    def __init__(
        self,
        lease: DomainLease,
        settings: Settings,
        clock: Clock,
        *,
        delay_s: float,
        lease_until: float,
        random: Random,
    ) -> None:
        self.lease, self.clock, self._random = lease, clock, random
        self._settings, self._timings = settings.politeness, settings.timings
        self._plan_s = delay_s
        self._own_s = max(delay_s, lease.delay_s)
        self._robots_s: dict[str, float] = {}
        self._is_private = False
        self.circuit: CircuitState = lease.circuit
        self.robots: dict[str, RobotsRecord] = {state.origin: state for state in lease.robots}
        self._learned: dict[str, RobotsRecord] = {}
        self._reported = _essence(lease.circuit)
        self._must_report = False
        wait_s = max(0.0, (lease.next_allowed_at - clock.now()).total_seconds())
        self.pace = Pace(
            clock, first_at=clock.monotonic() + wait_s, lease_until=lease_until, delay=lambda: self.delay_s
        )
        self.in_doubt = False
        """Whether enough requests failed to suspect the pages or the host; a check decides which."""
        self.server_ip = ""
        """The address that answered last: whether it is private is asked only when it changes."""

    @property
    def delay_s(self) -> float:
        """Seconds between two request starts: the largest of plan, robots.txt, and the slow-down after 429 and 503."""
        asked_s = max(self._own_s, self._asked_s)
        return rules.delay_between(asked_s, penalty=self.circuit.penalty, is_private=self._is_private)

    @property
    def why_slow(self) -> str | None:
        """Human-readable reason for a delay longer than the plan's."""
        if self.circuit.penalty > 1.0:
            return f"slowed {self.circuit.penalty:g}x after 429 or 503"
        return f"crawl-delay {self._asked_s:g} s" if self._asked_s > max(self._own_s, rules.MIN_DELAY_S) else None

    @property
    def _asked_s(self) -> float:
        return max(self._robots_s.values(), default=0.0)

    def note_address(self, ip: str, *, is_private: bool) -> None:
        self.server_ip, self._is_private = ip, is_private

    def hold_first_request(self) -> None:
        """Wait one full delay before the first request: the domain's dead owner may have sent one a moment ago."""
        self.pace.not_before(self.clock.monotonic() + self.delay_s)

    def take_delay(self, seconds: float) -> None:
        """Apply an operator's delay for the domain: never shorter than the plan's."""
        self._own_s = max(self._plan_s, seconds)

    def take_crawl_delay(self, origin: str, seconds: float) -> None:
        """Apply the already capped Crawl-delay of an origin's robots.txt."""
        self._robots_s[origin] = seconds

    def learn(self, state: RobotsRecord) -> None:
        """Store a new result for an origin's robots.txt; it is written with the next settle."""
        self.robots[state.origin] = self._learned[state.origin] = state

    def went_well(self) -> None:
        self.in_doubt = False
        self.circuit = rules.on_success(rules.relax(self.circuit))

    def went_badly(self, *, at_once: bool = False, can_check: bool = False) -> None:
        """Count a failure; enough in a row open the domain's circuit, or this one alone with `at_once`.

        With `can_check`, the page itself may be the cause and another request can tell: the host becomes `in_doubt`.
        """
        threshold = 1 if at_once else CIRCUIT_FAILURES
        circuit = rules.on_failure(self.circuit, now=self.clock.now(), threshold=threshold)
        self.in_doubt = can_check and circuit.state == rules.Circuit.OPEN
        self.circuit = replace(self.circuit, failures=circuit.failures) if self.in_doubt else circuit

    def slow_down(self) -> None:
        self.circuit = rules.penalise(self.circuit)

    @property
    def closed_until(self) -> datetime | None:
        """When the domain may be tried again if its circuit is open; otherwise None."""
        return rules.open_until(self.circuit, now=self.clock.now(), reset_s=self._timings.crawl_circuit_reset_s)

    def unreachable(self) -> None:
        """Record that the domain cannot be requested now because its robots.txt is unreachable."""
        self.circuit = rules.mark_unreachable(self.circuit, now=self.clock.now())

    def gives_up(self, *, next_try_at: datetime, since: datetime) -> bool:
        """Return whether the domain stays unreachable longer than an execution waits, counted from `since`."""
        return rules.gives_up(
            self.circuit,
            now=self.clock.now(),
            since=since,
            patience_s=self._timings.crawl_unreachable_s,
            next_try_at=next_try_at,
            longest_wait_s=max(self._timings.crawl_circuit_reset_s, robots.LONGEST_WAIT.total_seconds()),
        )

    def note_rest(self, *, is_busy: bool) -> None:
        """Record that the server set the time of the next request; written soon, so that it outlives this process."""
        self._must_report = True
        # The crawl gives up a server that is busy for longer than an execution waits, like one that is down
        # (`gives_up`).
        if is_busy:
            self.unreachable()

    def retry_at(self, number: int) -> datetime | None:
        """Return when attempt `number` is retried, not before the domain's next turn; None if it was the last."""
        wait_s = rules.next_try(
            number, random=self._random, retries=self.last_number - 1, base_s=self._timings.crawl_retry_base_s
        )
        if wait_s is None:
            return None
        return self.clock.now() + timedelta(seconds=max(wait_s, self.pace.next_at - self.clock.monotonic()))

    @property
    def last_number(self) -> int:
        return self._settings.retries + 1

    @property
    def unreachable_s(self) -> float:
        """How long an execution waits for an unreachable domain, in seconds."""
        return self._timings.crawl_unreachable_s

    @property
    def has_news(self) -> bool:
        return self._must_report or bool(self._learned) or _essence(self.circuit) != self._reported

    def update(self, *, put_off_until: datetime | None = None) -> DomainUpdate:
        """Return the changes since the last call, for the next settle or release."""
        next_allowed_at = self.clock.now() + timedelta(seconds=max(0.0, self.pace.next_at - self.clock.monotonic()))
        if put_off_until is not None:
            next_allowed_at = max(next_allowed_at, put_off_until)
        learned, self._learned = tuple(self._learned.values()), {}
        self._reported, self._must_report = _essence(self.circuit), False
        return DomainUpdate(
            domain_id=self.lease.domain_id,
            token=self.lease.token,
            next_allowed_at=next_allowed_at,
            circuit=self.circuit,
            robots=learned,
        )

    def take_back(self, update: DomainUpdate) -> None:
        """Restore an update that the database did not store, so that it is written again."""
        self._must_report = True
        for state in update.robots:
            # Skip this if the file was read again meanwhile: the newer result is reported by itself.
            if self.robots.get(state.origin) is state:
                self.learn(state)


def _essence(circuit: CircuitState) -> tuple[str, float, datetime | None, datetime | None]:
    """Return the circuit state that the next holder needs; single failures may be forgotten."""
    return circuit.state, circuit.penalty, circuit.opened_at, circuit.unreachable_since


# A server notices a request when it reads the first byte: between our sending and the first byte of the response. We
# count the delay from the response's first byte, but at most this much after sending.
_UNSEEN_S = 0.25
_MARGIN_S = 0.002


def _none() -> float:
    return 0.0


class Pace:
    def __init__(
        self, clock: Clock, *, first_at: float, lease_until: float, delay: Callable[[], float] = _none
    ) -> None:
        self._clock = clock
        # Use a callable instead of a number: robots.txt or a 429 may lengthen the delay after the request that it
        # counts from.
        self._delay = delay
        self._turn = asyncio.Lock()
        self._not_before = first_at
        self._rest_until = -math.inf
        """Until when the server asked us to stay away."""
        self._seen_at = -math.inf
        """When the server saw our last request, at the latest."""
        self.lease_until = lease_until
        """Monotonic; no request starts after, whatever the database says later."""
        self.is_released = False
        """Whether the domain is being released: no request starts after."""
        self.waiting_since: float | None = None
        """When the request of the present turn left (monotonic)."""
        self.requested_url: str | None = None
        """The URL requested in the present turn."""

    @property
    def next_at(self) -> float:
        """Monotonic time before which no request starts."""
        delay_s = self._delay()
        return max(self._not_before, self._seen_at + delay_s + _MARGIN_S) if delay_s else self._not_before

    @property
    def is_resting(self) -> bool:
        """Whether the server delayed the next slot (Retry-After)."""
        return self._rest_until >= self.next_at

    def turn(self) -> DomainTurn:
        """Return a context that waits for and holds the domain's next slot; raises `LeaseLost` like `check`."""
        return DomainTurn(self)

    async def take_turn(self) -> None:
        """Wait for the domain's next slot; the caller must end it with `end_turn`."""
        self.check()
        await self._turn.acquire()
        try:
            while (wait := self.next_at - self._clock.monotonic()) > 0:  # noqa: ASYNC110 - may be put off
                await asyncio.sleep(wait)
            self.check()
        except BaseException:
            self._turn.release()
            raise

    def check(self) -> None:
        """Raise `LeaseLost` if no more requests may be sent."""
        if self.is_released:
            raise LeaseLost("the domain is being released")
        # Use the monotonic clock: a process that was suspended wakes here, and another process may hold its domain by
        # now.
        if self._clock.monotonic() >= self.lease_until:
            raise LeaseLost("the lease of this domain was not renewed in time")

    def before_send(self) -> float:
        """Record that a request is being sent; return its time limit in seconds. Raise `LeaseLost` like `check`."""
        self.check()
        self.waiting_since = self._clock.monotonic()
        return self.lease_until - self.waiting_since

    def end_turn(self) -> None:
        self.waiting_since = None
        self._turn.release()

    def asked(self, *, sent_at: float, first_byte_at: float | None) -> None:
        """Record a sent request and when its response began, if it did; the delay starts from there."""
        seen_at = sent_at + _UNSEEN_S
        if first_byte_at is not None:
            seen_at = min(seen_at, first_byte_at)
        self._seen_at = max(self._seen_at, seen_at)

    def tried(self, at: float) -> None:
        """Record an attempt that never became a request: the next one waits just as long."""
        self._seen_at = max(self._seen_at, at)

    def not_before(self, moment: float) -> None:
        """Delay the next slot until this time (monotonic); never moves it earlier."""
        self._not_before = max(self._not_before, moment)

    def rest_until(self, moment: float) -> None:
        """Delay the next slot until this time (monotonic) because of Retry-After; never moves it earlier."""
        self._rest_until = max(self._rest_until, moment)
        self.not_before(moment)


# Use a class: a generator costs 5 us more per request.
class DomainTurn:
    __slots__ = ("_pace",)

    def __init__(self, pace: Pace) -> None:
        self._pace = pace

    async def __aenter__(self) -> None:
        await self._pace.take_turn()

    async def __aexit__(self, *_: object) -> None:
        self._pace.end_turn()
