"""Counts the requests of each client in the last minute with `limits`, in this process or in Redis."""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from typing import NamedTuple, Protocol

from limits import RateLimitItemPerMinute
from limits.storage import MovingWindowSupport, Storage
from limits.strategies import MovingWindowRateLimiter

from holdfast.clock import Clock


class Tier(NamedTuple):
    """A kind of route, and its limit per minute."""

    name: str
    per_minute: int
    is_personal: bool = False
    """Whether signed-in users are counted by user instead of by address."""


class CountedRequest(NamedTuple):
    wait_s: int
    """Whole seconds until the next request is allowed; 0 if this one is."""
    left: int
    """Number of further requests that are allowed now."""
    reset_s: int
    """Seconds until the oldest request leaves the window."""


class _Minute:
    """The requests of one address in the last minute, counted per second."""

    __slots__ = ("seconds", "total")

    def __init__(self) -> None:
        self.seconds: deque[tuple[int, int]] = deque()
        self.total = 0

    def forget(self, now: float, window_s: float) -> None:
        while self.seconds and self.seconds[0][0] + 1 + window_s <= now:
            self.total -= self.seconds.popleft()[1]

    def add(self, now: float, amount: int) -> None:
        # By the second, not by the request: sixty pairs an address, however often it asks.
        second, count = self.seconds.pop() if self.seconds and self.seconds[-1][0] == int(now) else (int(now), 0)
        self.seconds.append((second, count + amount))
        self.total += amount


class AddressWindows(Storage, MovingWindowSupport):
    """In-process storage for `limits`: bounded, and with our own clock.

    Stores at most `addresses` addresses, evicting the least recent, so that a flood of addresses costs no memory.
    The library's own memory storage stores every request, uses the wall clock, and scans all addresses in a thread
    (decision 0023).
    """

    STORAGE_SCHEME = None

    def __init__(self, clock: Clock, *, addresses: int) -> None:
        super().__init__()
        self._clock, self._addresses = clock, addresses
        self._seen: OrderedDict[str, _Minute] = OrderedDict()

    @property
    def base_exceptions(self) -> type[Exception]:
        return ValueError

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Count requests if the window has room for them; return whether it had."""
        now = self._clock.monotonic()
        minute = self._seen.pop(key, None) or _Minute()
        # Last in the dict: the one that asked least recently is the first to be forgotten.
        self._seen[key] = minute
        if len(self._seen) > self._addresses:
            self._seen.popitem(last=False)
        minute.forget(now, expiry)
        if minute.total + amount > limit:
            return False
        minute.add(now, amount)
        return True

    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        """Return when the window began, as the end of its first second, and its number of requests."""
        now, minute = self._clock.monotonic(), self._seen.get(key) or _Minute()
        minute.forget(now, expiry)
        return (minute.seconds[0][0] + 1.0 if minute.seconds else now), minute.total

    def clear(self, key: str) -> None:
        self._seen.pop(key, None)

    def reset(self) -> int | None:
        forgotten = len(self._seen)
        self._seen.clear()
        return forgotten

    def check(self) -> bool:
        return True

    def get(self, key: str) -> int:
        found = self._seen.get(key)
        return found.total if found else 0

    def get_expiry(self, key: str) -> float:
        found = self._seen.get(key)
        return found.seconds[-1][0] + 1.0 if found and found.seconds else self._clock.monotonic()

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        """Raise: fixed windows let twice the limit through at their border, so they are not supported."""
        raise NotImplementedError


class Rates:
    """Counts per tier and client in this process: never more than the limit in any minute, wherever it begins."""

    def __init__(self, clock: Clock, *, addresses: int = 50_000) -> None:
        self._clock = clock
        self._windows = AddressWindows(clock, addresses=addresses)
        self._limiter = MovingWindowRateLimiter(self._windows)

    is_away = None
    """Whether the external counter does not respond; None without one."""

    async def close(self) -> None:
        """Do nothing: the counts are in memory."""

    def ask(self, tier: Tier, key: str) -> int:
        """Count a request; return 0 if it is allowed, else the whole seconds until the next one is."""
        return self.count(tier, key).wait_s

    def count(self, tier: Tier, key: str) -> CountedRequest:
        item = RateLimitItemPerMinute(tier.per_minute)
        has_room = self._limiter.hit(item, tier.name, key)
        reset, left = self._limiter.get_window_stats(item, tier.name, key)
        return counted_request(has_room, left, reset - self._clock.monotonic())


def counted_request(has_room: bool, left: int, reset_s: float) -> CountedRequest:
    # Rounded up: a client that comes back a moment too early would be refused again.
    seconds = max(1, math.ceil(reset_s))
    return CountedRequest(0 if has_room else seconds, left if has_room else 0, seconds)


class CountedElsewhere(Protocol):
    @property
    def is_away(self) -> bool | None:
        """Whether it failed to respond recently."""

    async def count(self, tier: Tier, key: str) -> CountedRequest:
        """Count a request if its window has room for it."""

    async def close(self) -> None:
        """Close the connections."""
