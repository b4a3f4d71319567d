"""How many requests of a client the last minute holds: counted by `limits`, in this process or elsewhere."""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from importlib import import_module
from typing import NamedTuple, Protocol

from limits import RateLimitItemPerMinute
from limits.storage import MovingWindowSupport, Storage
from limits.strategies import MovingWindowRateLimiter

from holdfast.clock import Clock


class Tier(NamedTuple):
    """One kind of route, and how many of it a minute holds."""

    name: str
    per_minute: int
    is_personal: bool = False
    """Whether a signed-in user is counted, not their address."""


class CountedRequest(NamedTuple):
    """What counting a request found."""

    wait_s: int
    """0 if it may go on, else the whole seconds after which the next one may."""
    left: int
    """How many more the window takes now."""
    reset_s: int
    """After how many seconds the oldest request of the window is forgotten."""


class _Minute:
    """The requests of one address in the last minute, by the second."""

    __slots__ = ("seconds", "total")

    def __init__(self) -> None:
        self.seconds: deque[tuple[int, int]] = deque()
        self.total = 0

    def forget(self, now: float, window_s: float) -> None:
        """Drop the seconds that lie wholly more than a window back."""
        while self.seconds and self.seconds[0][0] + 1 + window_s <= now:
            self.total -= self.seconds.popleft()[1]

    def add(self, now: float, amount: int) -> None:
        """Count requests."""
        # By the second, not by the request: sixty pairs an address, however often it asks.
        second, count = self.seconds.pop() if self.seconds and self.seconds[-1][0] == int(now) else (int(now), 0)
        self.seconds.append((second, count + amount))
        self.total += amount


class AddressWindows(Storage, MovingWindowSupport):
    """Where `limits` keeps its windows in this process: bounded, and on our own clock.

    At most `addresses` are remembered, the least recent forgotten first, so that a flood of addresses costs no memory.
    The library's own memory keeps every request, goes by the wall clock, and looks through all addresses in a thread
    (decision 0023).
    """

    STORAGE_SCHEME = None

    def __init__(self, clock: Clock, *, addresses: int) -> None:
        super().__init__()
        self._clock, self._addresses = clock, addresses
        self._seen: OrderedDict[str, _Minute] = OrderedDict()

    @property
    def base_exceptions(self) -> type[Exception]:
        """What it fails with: nothing."""
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
        """Return when the window began, as the end of its first second, and how many requests it holds."""
        now, minute = self._clock.monotonic(), self._seen.get(key) or _Minute()
        minute.forget(now, expiry)
        return (minute.seconds[0][0] + 1.0 if minute.seconds else now), minute.total

    def clear(self, key: str) -> None:
        """Forget one address."""
        self._seen.pop(key, None)

    def reset(self) -> int | None:
        """Forget all of them; return how many there were."""
        forgotten = len(self._seen)
        self._seen.clear()
        return forgotten

    def check(self) -> bool:
        """Return that it is in order: it is memory."""
        return True

    def get(self, key: str) -> int:
        """Return how many requests a window holds."""
        found = self._seen.get(key)
        return found.total if found else 0

    def get_expiry(self, key: str) -> float:
        """Return when nothing of a window is left."""
        found = self._seen.get(key)
        return found.seconds[-1][0] + 1.0 if found and found.seconds else self._clock.monotonic()

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        """Refuse: fixed windows, which let twice the limit through at their border, are not counted here."""
        raise NotImplementedError


class Rates:
    """Counts per tier and client in this process: never more than the limit in any minute, wherever it begins."""

    def __init__(self, clock: Clock, *, addresses: int = 50_000) -> None:
        self._clock = clock
        self._windows = AddressWindows(clock, addresses=addresses)
        self._limiter = MovingWindowRateLimiter(self._windows)

    is_away = None
    """Whether what counts elsewhere does not answer; None where nothing is counted elsewhere."""

    async def close(self) -> None:
        """End nothing: it is memory."""

    def ask(self, tier: Tier, key: str) -> int:
        """Count a request; return 0 if it may go on, else the whole seconds after which the next one may."""
        return self.count(tier, key).wait_s

    def count(self, tier: Tier, key: str) -> CountedRequest:
        """Count a request if its window has room for it."""
        item = RateLimitItemPerMinute(tier.per_minute)
        has_room = self._limiter.hit(item, tier.name, key)
        reset, left = self._limiter.get_window_stats(item, tier.name, key)
        return counted_request(has_room, left, reset - self._clock.monotonic())


def counted_request(has_room: bool, left: int, reset_s: float) -> CountedRequest:
    """Return what was found, given the seconds until the oldest request is forgotten."""
    # Rounded up: a client that comes back a moment too early would be refused again.
    seconds = max(1, math.ceil(reset_s))
    return CountedRequest(0 if has_room else seconds, left if has_room else 0, seconds)


class CountedElsewhere(Protocol):
    """Counts outside this process."""

    @property
    def is_away(self) -> bool | None:
        """Whether it did not answer lately."""

    async def count(self, tier: Tier, key: str) -> CountedRequest:
        """Count a request if its window has room for it."""

    async def close(self) -> None:
        """Let go of connections."""


def rates_of(redis_url: str | None, clock: Clock) -> Rates | CountedElsewhere:
    """Return what counts requests: Redis if there is one, else this process."""
    if redis_url is None:
        return Rates(clock)
    # By name: its libraries take as long to load as the rest of the limits, and most servers have no Redis.
    shared: CountedElsewhere = import_module("holdfast.api.middleware.shared_rates").SharedRates(redis_url, clock)
    return shared
