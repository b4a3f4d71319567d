"""When a domain may be asked again: one request at a time, start to start, as late as the server can see it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

from holdfast.clock import Clock
from holdfast.errors import LeaseLost

_UNSEEN_S = 0.25
"""A request is on the server's clock when its first byte is read there: somewhere between our sending it and the
first byte of the answer. We count the delay from the answer's first byte, but at most this much after sending."""
_MARGIN_S = 0.002


def _none() -> float:
    return 0.0


class Pace:
    """The turns of one domain in this process."""

    def __init__(self, clock: Clock, *, first_at: float, lease_until: float,
                 delay: Callable[[], float] = _none) -> None:  # fmt: skip
        self._clock = clock
        self._delay = delay
        """The delay of the moment: robots.txt or a 429 may lengthen it after the request that it counts from."""
        self._turn = asyncio.Lock()
        self._not_before = first_at
        self._seen_at = -math.inf
        """When the server saw our last request, at the latest."""
        self.lease_until = lease_until
        """Monotonic; no request starts after, whatever the database says later."""
        self.waiting_since: float | None = None

    @property
    def next_at(self) -> float:
        """Monotonic; no request starts before."""
        delay_s = self._delay()
        return max(self._not_before, self._seen_at + delay_s + _MARGIN_S) if delay_s else self._not_before

    def turn(self) -> Turn:
        """Return what waits for the domain's next slot and holds it; LeaseLost if the lease runs out first."""
        return Turn(self)

    async def take_turn(self) -> None:
        """Wait for the domain's next slot; who has it ends it with `end_turn`."""
        await self._turn.acquire()
        try:
            while (wait := self.next_at - (now := self._clock.monotonic())) > 0:  # noqa: ASYNC110 - may be put off
                await asyncio.sleep(wait)
            if now >= self.lease_until:
                raise LeaseLost("the lease of this domain was not renewed in time")
        except BaseException:
            self._turn.release()
            raise
        self.waiting_since = now

    def end_turn(self) -> None:
        """Let the next one have a slot."""
        self.waiting_since = None
        self._turn.release()

    def asked(self, *, sent_at: float, first_byte_at: float | None) -> None:
        """Note a request that was sent, and when its answer began, if it did; the delay counts from there."""
        seen_at = sent_at + _UNSEEN_S
        if first_byte_at is not None:
            seen_at = min(seen_at, first_byte_at)
        self._seen_at = max(self._seen_at, seen_at)

    def tried(self, at: float) -> None:
        """Note a try that never became a request: the next one waits as long."""
        self._seen_at = max(self._seen_at, at)

    def wait_until(self, moment: float) -> None:
        """Put the next slot off to this moment (monotonic); never brings it nearer."""
        self._not_before = max(self._not_before, moment)


class Turn:
    """A slot of a domain, as a context. A class: a generator in its place costs 5 us more a request."""

    __slots__ = ("_pace",)

    def __init__(self, pace: Pace) -> None:
        self._pace = pace

    async def __aenter__(self) -> None:
        await self._pace.take_turn()

    async def __aexit__(self, *_: object) -> None:
        self._pace.end_turn()
