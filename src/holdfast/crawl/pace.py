"""When a domain may be asked again: one request at a time, start to start, as late as the server can see it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

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
        self._told_until = -math.inf
        """Until when the server asked us to stay away."""
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

    @property
    def is_told(self) -> bool:
        """Whether the next slot is as late as it is because the server asked for it (Retry-After)."""
        return self._told_until >= self.next_at

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for the domain's next slot and hold it; LeaseLost if the lease runs out first."""
        async with self._turn:
            while (wait := self.next_at - self._clock.monotonic()) > 0:  # noqa: ASYNC110 - it may be put off meanwhile
                await asyncio.sleep(wait)
            if self._clock.monotonic() >= self.lease_until:
                raise LeaseLost("the lease of this domain was not renewed in time")
            self.waiting_since = self._clock.monotonic()
            try:
                yield
            finally:
                self.waiting_since = None

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
        """Put the next slot off to this moment (monotonic), as the server asks; never brings it nearer."""
        self._told_until = max(self._told_until, moment)
        self._not_before = max(self._not_before, moment)
