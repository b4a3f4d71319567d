"""How hard one server may be asked whatever it is called: a thousand subdomains can be one machine.

The limit holds for all processes of a machine that work on one data directory.
"""

from __future__ import annotations

import asyncio
import fcntl
import mmap
import os
import struct
from collections.abc import Awaitable, Callable
from functools import cache
from ipaddress import IPv6Address, IPv6Network, ip_address
from pathlib import Path
from zlib import crc32

from holdfast.clock import Clock, boot_id
from holdfast.values import dataclass

# Addresses that are remembered before those at rest are forgotten: a crawl may meet a million.
_SWEEP_AT = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressLimit:
    """What one address may be asked by the processes of a machine; 0 is no limit."""

    rate: float = 0.0
    """Requests started in a second."""
    connections: int = 0
    """Requests under way at once."""


# Addresses whose checksums agree share their turns, which is slower and never faster.
_SLOTS = 1 << 20
_MOMENT = struct.Struct("<d")
# Further ahead than any queue of requests: of another boot, where the system names none.
_STALE_S = 3600.0
# How often, and how soon, a moment is tried for again that another process is taking. One that was stopped in between
# is not waited for.
_TRIES, _TRY_S = 200, 0.001
_PLACE_S = 0.02


class MachineTurns:
    """The turns at all addresses, as the processes of a machine share them: moments in a file, and locks on its bytes.

    The kernel releases the locks of a process that dies. A request costs four system calls.
    """

    def __init__(self, path: Path | None = None) -> None:
        """Open the file, created if it is missing; without one, the turns are this process's own."""
        self._fd = -1 if path is None else os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if path is not None:
            os.ftruncate(self._fd, _SLOTS * _MOMENT.size)
        self._moments = mmap.mmap(self._fd, _SLOTS * _MOMENT.size)
        # A process does not lock itself out: its own places are remembered.
        self._own: set[int] = set()

    def _lock(self, byte: int) -> bool:
        if self._fd >= 0:
            try:
                fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
            except OSError:
                return False
        return True

    def _unlock(self, byte: int) -> None:
        if self._fd >= 0:
            fcntl.lockf(self._fd, fcntl.LOCK_UN, 1, byte)

    def take_moment(self, slot: int, now: float, interval_s: float) -> float | None:
        """Return when the next request to an address may start, and take that moment; None if another does so now."""
        at = slot * _MOMENT.size
        if not self._lock(at):
            return None
        try:
            (next_at,) = _MOMENT.unpack_from(self._moments, at)
            mine = float(next_at) if now < next_at < now + _STALE_S else now
            _MOMENT.pack_into(self._moments, at, mine + interval_s)
        finally:
            self._unlock(at)
        return mine

    def take_place(self, slot: int, most: int) -> int | None:
        """Return one of the places at an address, which is now ours; None if all are taken."""
        # Beyond the bytes of the file: a lock needs none.
        first = (slot + _SLOTS) << 24
        for place in range(first, first + most):
            if place not in self._own and self._lock(place):
                self._own.add(place)
                return place
        return None

    def release_place(self, place: int) -> None:
        """Let others have a place."""
        self._own.discard(place)
        self._unlock(place)


@cache
def machine_turns(home: Path) -> MachineTurns:
    """Return the turns of this machine for a data directory; this process's own where it has none that is writable."""
    # Moments count from the boot, and machines that share the directory have a file each.
    try:
        (home / "run").mkdir(exist_ok=True)
        return MachineTurns(home / "run" / f"addresses-{boot_id() or 'any'}")
    except OSError:
        return MachineTurns()


class _Turns:
    """The turns at one address."""

    __slots__ = ("places", "slot", "users")

    def __init__(self, slot: int, connections: int) -> None:
        self.slot = slot
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
        machine: MachineTurns | None = None,
    ) -> None:
        self._limit, self._clock, self._is_exempt, self._sleep = limit, clock, is_exempt, sleep
        self._machine = machine or MachineTurns()
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
        # Taken before the wait, so that callers that come meanwhile queue behind this one.
        for _ in range(_TRIES):
            now = self._clock.monotonic()
            mine = self._machine.take_moment(turns.slot, now, 1.0 / self._limit.rate)
            if mine is not None:
                break
            await self._sleep(_TRY_S)
        if mine is not None and mine > now:
            await self._sleep(mine - now)

    async def take_place(self, turns: _Turns) -> int:
        """Wait for one of the places that the machine has at an address, and take it."""
        while (place := self._machine.take_place(turns.slot, self._limit.connections)) is None:
            await self._sleep(_PLACE_S)
        return place

    def release_place(self, place: int) -> None:
        """Let others have a place."""
        self._machine.release_place(place)

    def _of(self, key: str) -> _Turns:
        turns = self._turns.get(key)
        if turns is None:
            if len(self._turns) >= _SWEEP_AT:
                self._turns = {name: one for name, one in self._turns.items() if one.users}
            turns = self._turns[key] = _Turns(crc32(key.encode()) % _SLOTS, self._limit.connections)
        return turns


# A class: a generator in its place costs 5 us more a request.
class AddressTurn:
    """A turn at one address, as a context."""

    __slots__ = ("_address", "_limiter", "_place", "_turns")

    def __init__(self, limiter: AddressLimiter, address: str) -> None:
        self._limiter, self._address = limiter, address
        self._turns: _Turns | None = None
        self._place: int | None = None

    async def __aenter__(self) -> None:
        turns = self._limiter.turns_at(self._address)
        if turns is None:
            return
        turns.users += 1
        try:
            if turns.places is not None:
                # First of this process, in the order of callers, then of the machine.
                await turns.places.acquire()
            self._turns = turns
            if turns.places is not None:
                self._place = await self._limiter.take_place(turns)
            await self._limiter.wait(turns)
        except BaseException:
            if self._turns is None:
                turns.users -= 1
            self._release()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._release()

    def _release(self) -> None:
        turns, self._turns = self._turns, None
        if turns is None:
            return
        turns.users -= 1
        if self._place is not None:
            self._limiter.release_place(self._place)
        if turns.places is not None:
            turns.places.release()


def _key(address: str) -> str:
    found = ip_address(address)
    # An IPv6 address counts by its /64: a host that has one address there has all of them.
    if isinstance(found, IPv6Address):
        return str(IPv6Network((int(found) >> 64 << 64, 64)).network_address)
    return address
