"""How hard one server may be asked whatever it is called: a thousand subdomains can be one machine."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from ipaddress import IPv6Address, IPv6Network, ip_address

from holdfast.clock import Clock
from holdfast.values import dataclass

# Addresses that are remembered before those at rest are forgotten: a crawl may meet a million.
_SWEEP_AT = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressLimit:
    """What one address may be asked by this process; 0 is no limit."""

    rate: float = 0.0
    """Requests started in a second."""
    connections: int = 0
    """Requests under way at once."""

    def shared_by(self, processes: int) -> AddressLimit:
        """Return the part of one of several processes that ask together; at least one request at a time."""
        # Processes know nothing of each other's requests: each keeps to its part, though another may be idle.
        share = max(processes, 1)
        return AddressLimit(
            rate=self.rate / share, connections=max(1, self.connections // share) if self.connections else 0
        )


class _Turns:
    """The turns at one address."""

    __slots__ = ("next_at", "places", "users")

    def __init__(self, connections: int) -> None:
        self.next_at = 0.0
        self.places = asyncio.Semaphore(connections) if connections else None
        self.users = 0


class AddressLimiter:
    """Gives turns by address, in the order in which they were asked for."""

    def __init__(
        self,
        limit: AddressLimit,
        clock: Clock,
        *,
        is_exempt: Callable[[str], bool] = lambda _address: False,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._limit, self._clock, self._is_exempt, self._sleep = limit, clock, is_exempt, sleep
        self._turns: dict[str, _Turns] = {}

    @property
    def known(self) -> int:
        """How many addresses are remembered."""
        return len(self._turns)

    def turn(self, address: str) -> AddressTurn:
        """Return what waits until this address may be asked, and holds a place there."""
        return AddressTurn(self, address)

    def turns_at(self, address: str) -> _Turns | None:
        """Return the turns at an address; None where nothing is limited."""
        if not (self._limit.rate or self._limit.connections) or self._is_exempt(address):
            return None
        return self._of(_key(address))

    async def wait(self, turns: _Turns) -> None:
        """Take the next moment, and wait for it."""
        if not self._limit.rate:
            return
        now = self._clock.monotonic()
        # Taken before the wait, so that callers that come meanwhile queue behind this one.
        mine = max(now, turns.next_at)
        turns.next_at = mine + 1.0 / self._limit.rate
        if mine > now:
            await self._sleep(mine - now)

    def _of(self, key: str) -> _Turns:
        turns = self._turns.get(key)
        if turns is None:
            if len(self._turns) >= _SWEEP_AT:
                now = self._clock.monotonic()
                self._turns = {name: one for name, one in self._turns.items() if one.users or one.next_at > now}
            turns = self._turns[key] = _Turns(self._limit.connections)
        return turns


# A class: a generator in its place costs 5 us more a request.
class AddressTurn:
    """A turn at one address, as a context."""

    __slots__ = ("_address", "_limiter", "_turns")

    def __init__(self, limiter: AddressLimiter, address: str) -> None:
        self._limiter, self._address = limiter, address
        self._turns: _Turns | None = None

    async def __aenter__(self) -> None:
        turns = self._limiter.turns_at(self._address)
        if turns is None:
            return
        turns.users += 1
        try:
            if turns.places is not None:
                await turns.places.acquire()
            try:
                await self._limiter.wait(turns)
            except BaseException:
                if turns.places is not None:
                    turns.places.release()
                raise
        except BaseException:
            turns.users -= 1
            raise
        self._turns = turns

    async def __aexit__(self, *_: object) -> None:
        turns = self._turns
        if turns is not None:
            turns.users -= 1
            if turns.places is not None:
                turns.places.release()


def _key(address: str) -> str:
    found = ip_address(address)
    # An IPv6 address counts by its /64: a host that has one address there has all of them.
    if isinstance(found, IPv6Address):
        return str(IPv6Network((int(found) >> 64 << 64, 64)).network_address)
    return address
