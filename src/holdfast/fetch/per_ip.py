"""Request limits per server address, whatever its names: a thousand subdomains can be one machine.

The limit is shared by all processes of one user on a machine that use one data directory.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import cache
from ipaddress import IPv6Address, IPv6Network, ip_address
from pathlib import Path
from threading import Lock
from zlib import crc32

from cachetools import LRUCache

from holdfast import log
from holdfast.clock import Clock, SystemClock, boot_id
from holdfast.values import dataclass

# Limit of remembered addresses, above the number of connections: a crawl may use a million.
_KNOWN = 10_000
# Addresses with equal checksums share their slots, which is slower and never faster.
_SLOTS = 1 << 20
_MOMENT = struct.Struct("<d")
# Further ahead than any queue of requests: written in another boot, on a system without boot ids.
_STALE_S = 3600.0
# Another boot's file is deleted after this time without a write: another machine that shares the directory writes to
# its own with every request.
_OLD_S = 7 * 86_400.0
# How often, and after which delay, to retry a reservation while another process makes one. A process that was suspended
# meanwhile is not waited for.
_TRIES, _TRY_S = 200, 0.001
_PLACE_S = 0.02
_log = log.get()


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressLimit:
    """Limits for one address, shared by the processes of a machine; 0 means no limit."""

    rate: float = 0.0
    """Requests started per second."""
    connections: int = 0
    """Parallel requests."""


class MachineTurns:
    """The turns at all addresses, shared by the processes of a machine: times in a file, and locks on its bytes.

    The kernel releases the locks of a process that dies. If the file cannot be used, a warning is logged once, and
    the limits apply to this process alone.
    """

    def __init__(self, path: Path | None = None) -> None:
        """Open the file, created if missing; without a path, the turns belong to this process alone."""
        # A dry run creates no data directory: no other process shares it.
        path = path if path is not None and path.parent.parent.is_dir() else None
        self._path, self._fd, self._warned = path, -1, path is None
        # File locks do not exclude threads of one process: they use this lock, and our own slots are remembered.
        self._threads = Lock()
        self._own: set[int] = set()
        if path is not None:
            try:
                path.parent.mkdir(exist_ok=True)
                self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except OSError as exc:
                self._warn(exc)

    def take_moment(self, slot: int, at: float, interval_s: float) -> float | None:
        """Reserve and return the first free time at an address from `at` on; None if another process does so now."""
        byte = slot * _MOMENT.size
        with self._threads:
            if not self._lock(fcntl.LOCK_EX | fcntl.LOCK_NB, byte):
                return None
            try:
                # Do not map the file: writing to a mapped page kills the process if the disk is full.
                (next_at,) = _MOMENT.unpack(os.pread(self._fd, _MOMENT.size, byte).ljust(_MOMENT.size, b"\0"))
                at = float(next_at) if at < next_at < at + _STALE_S else at
                os.pwrite(self._fd, _MOMENT.pack(at + interval_s), byte)
            except OSError as exc:
                self._warn(exc)
            finally:
                self._lock(fcntl.LOCK_UN, byte)
        return at

    def take_place(self, slot: int, most: int) -> int | None:
        """Reserve and return a connection slot at an address; None if all are in use."""
        # Lock beyond the end of the file: a lock needs no bytes.
        first = (slot + _SLOTS) << 24
        with self._threads:
            for place in range(first, first + most):
                if place not in self._own and self._lock(fcntl.LOCK_EX | fcntl.LOCK_NB, place):
                    self._own.add(place)
                    return place
        return None

    def release_place(self, place: int) -> None:
        with self._threads:
            self._own.discard(place)
            self._lock(fcntl.LOCK_UN, place)

    def _lock(self, operation: int, byte: int) -> bool:
        """Lock or unlock a byte of the file; return False if another process has locked it."""
        if self._fd >= 0:
            try:
                fcntl.lockf(self._fd, operation, 1, byte)
            except OSError as exc:
                if exc.errno in (errno.EACCES, errno.EAGAIN):
                    return False
                self._warn(exc)
        return True

    def _warn(self, exc: OSError) -> None:
        if not self._warned:
            self._warned = True
            _log.warning("fetch.address_limit_not_shared", path=str(self._path), message=str(exc))


@cache
def machine_turns(home: Path) -> MachineTurns:
    # Times count from the boot, and machines that share the directory have a file each.
    path = home / "run" / f"addresses-{boot_id() or 'any'}"
    with suppress(OSError):
        for other in path.parent.glob("addresses-*"):
            if other != path and other.stat().st_mtime < SystemClock().now().timestamp() - _OLD_S:
                other.unlink()
    return MachineTurns(path)


class _Turns:
    __slots__ = ("next_at", "places", "slot")

    def __init__(self, slot: int, connections: int) -> None:
        self.slot, self.next_at = slot, 0.0
        self.places = asyncio.Semaphore(connections) if connections else None


class AddressLimiter:
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
        self._turns: LRUCache[str, _Turns] = LRUCache(_KNOWN)

    @property
    def known(self) -> int:
        return len(self._turns)

    def turn(self, address: str) -> AddressTurn:
        """Return a context that waits until this address may be requested, and holds a slot there."""
        if not (self._limit.rate or self._limit.connections) or self._is_exempt(address):
            return AddressTurn(self, None)
        key = _key(address)
        turns = self._turns.get(key)
        if turns is None:
            turns = self._turns[key] = _Turns(crc32(key.encode()) % _SLOTS, self._limit.connections)
        return AddressTurn(self, turns)

    async def enter(self, turns: _Turns) -> int | None:
        """Wait for a turn; return its slot if slots are limited."""
        if turns.places is None:
            await self._wait(turns)
            return None
        # Wait for a slot of this process first, in the order of callers, then for one of the machine.
        await turns.places.acquire()
        place = None
        try:
            while (place := self._machine.take_place(turns.slot, self._limit.connections)) is None:
                await self._sleep(_PLACE_S)
            await self._wait(turns)
        except BaseException:
            self.leave(turns, place)
            raise
        return place

    def leave(self, turns: _Turns, place: int | None) -> None:
        if place is not None:
            self._machine.release_place(place)
        if turns.places is not None:
            turns.places.release()

    async def _wait(self, turns: _Turns) -> None:
        if not self._limit.rate:
            return
        # Reserve the slot before the wait, so that later callers queue after this one.
        interval_s = 1.0 / self._limit.rate
        for _ in range(_TRIES):
            at = max(self._clock.monotonic(), turns.next_at)
            if (mine := self._machine.take_moment(turns.slot, at, interval_s)) is not None:
                break
            await self._sleep(_TRY_S)
        else:
            mine = at
        turns.next_at = mine + interval_s
        if (wait_s := mine - self._clock.monotonic()) > 0:
            await self._sleep(wait_s)


# A class: a generator in its place costs 5 us more a request.
class AddressTurn:
    __slots__ = ("_limiter", "_place", "_turns")

    def __init__(self, limiter: AddressLimiter, turns: _Turns | None) -> None:
        self._limiter, self._turns = limiter, turns
        self._place: int | None = None

    async def __aenter__(self) -> None:
        if self._turns is not None:
            self._place = await self._limiter.enter(self._turns)

    async def __aexit__(self, *_: object) -> None:
        if self._turns is not None:
            self._limiter.leave(self._turns, self._place)


def _key(address: str) -> str:
    found = ip_address(address)
    # An IPv6 address counts by its /64: a host that has one address there has all of them.
    if isinstance(found, IPv6Address):
        return str(IPv6Network((int(found) >> 64 << 64, 64)).network_address)
    return address
