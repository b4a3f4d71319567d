"""When a domain may be asked again: one request at a time, start to start, as late as the server can see it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from holdfast.clock import Clock
from holdfast.errors import LeaseLost

_UNSEEN_S = 0.05
"""A request is on the server's clock when its first byte is read there: somewhere between our sending it and the
first byte of the answer. We count the delay from the answer's first byte, but at most this much after sending."""
_MARGIN_S = 0.002


class Pace:
    """The turns of one domain in this process."""

    def __init__(self, clock: Clock, *, first_at: float, lease_until: float) -> None:
        self._clock = clock
        self._turn = asyncio.Lock()
        self.next_at = first_at
        """Monotonic; no request starts before."""
        self.lease_until = lease_until
        """Monotonic; no request starts after, whatever the database says later."""
        self.waiting_since: float | None = None

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for the domain's next slot and hold it; LeaseLost if the lease runs out first."""
        async with self._turn:
            while (wait := self.next_at - self._clock.monotonic()) > 0:  # noqa: ASYNC110 - time passes, and it may be put off
                await asyncio.sleep(wait)
            if self._clock.monotonic() >= self.lease_until:
                raise LeaseLost("the lease of this domain was not renewed in time")
            self.waiting_since = self._clock.monotonic()
            try:
                yield
            finally:
                self.waiting_since = None

    def asked(self, *, sent_at: float, first_byte_at: float | None, delay_s: float) -> None:
        """Note a request that was sent, and when its answer began, if it did."""
        seen_at = sent_at + _UNSEEN_S
        if first_byte_at is not None:
            seen_at = min(seen_at, first_byte_at)
        self.wait_until(seen_at + delay_s + (_MARGIN_S if delay_s else 0.0))

    def wait_until(self, moment: float) -> None:
        """Put the next slot off to this moment (monotonic); never brings it nearer."""
        self.next_at = max(self.next_at, moment)
