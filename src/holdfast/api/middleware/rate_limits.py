"""How often an address may ask, by kind of route. Counted by `limits` in this process; its Redis can take the place."""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final, NamedTuple

from limits import RateLimitItemPerMinute
from limits.storage import MovingWindowSupport, Storage
from limits.strategies import MovingWindowRateLimiter
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.api.errors import TooManyRequests
from holdfast.api.middleware.host_routing import RefuseAll
from holdfast.api.permissions import principal_of
from holdfast.auth.roles import Permission
from holdfast.clock import Clock
from holdfast.config import Settings
from holdfast.errors import HoldfastError
from holdfast.wiring.server import AddressCounts, TooManyConnections, client_key

ADMIN_PREFIXES: Final = ("/api/admin", "/api/v1", "/api/v2", "/api/pages", "/metrics")
"""What lies at or below these wants the admin token; a test holds this against the roles of all routes."""
_KINDS: Final = frozenset(
    {
        "health",
        "stats",
        "sources",
        "coverage",
        "search",
        "terms",
        "snapshot",
        "snapshots",
        "replay",
        "changes",
        "exports",
        "executions",
        "usage",
        "reports",
        "report",
        "admin",
        "pages",
        "metrics",
        "web",
        "cdx",
        "v1",
        "v2",
    }
)


def is_admin_path(path: str) -> bool:
    """Return whether a path needs the admin token."""
    return any(path == prefix or path.startswith(f"{prefix}/") for prefix in ADMIN_PREFIXES)


def kind_of(path: str) -> str:
    """Return the kind of route that a path belongs to: a bounded word for metrics."""
    first, _, rest = path.lstrip("/").partition("/")
    word = rest.partition("/")[0] if first == "api" else first
    # A path is free text: as a label it would give every scanner a series of its own.
    return word if word in _KINDS else "other"


_HEALTH = ("/api/health", "/health", "/health/live", "/health/ready")
_MONITORS = (*_HEALTH, "/metrics")
_CDX = ("/cdx", "/cdx/search/cdx")
_FILES = (".csv", ".json", ".jsonl")


class Tier(NamedTuple):
    """One kind of route, and how many of it a minute holds."""

    name: str
    per_minute: int


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
    """Counts per tier and address: never more than the limit in any minute, wherever it begins."""

    def __init__(self, clock: Clock, *, addresses: int = 50_000) -> None:
        self._clock = clock
        self._limiter = MovingWindowRateLimiter(AddressWindows(clock, addresses=addresses))

    def ask(self, tier: Tier, address: str) -> int:
        """Count a request; return 0 if it may go on, else the whole seconds after which the next one may."""
        item = RateLimitItemPerMinute(tier.per_minute)
        if self._limiter.hit(item, tier.name, address):
            return 0
        reset = self._limiter.get_window_stats(item, tier.name, address).reset_time
        # Rounded up: a client that comes back a moment too early would be refused again.
        return max(1, math.ceil(reset - self._clock.monotonic()))


def address_of(scope: Scope) -> str:
    """Return the address to count a request for: its peer, or what a trusted proxy names; see `client_key`."""
    peer = scope.get("client")
    return client_key(str(peer[0]) if peer else "")


class RateLimits:
    """Refuses what comes too often, with Retry-After."""

    def __init__(self, app: ASGIApp, rates: Rates, settings: Settings, *, replay: bool = False) -> None:
        self._app, self._rates, self._settings, self._is_replay = app, rates, settings, replay

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse it."""
        if scope["type"] == "http" and self._settings.api.rate_limiting:
            tier = self._tier(scope)
            wait_s = self._rates.ask(tier, address_of(scope)) if tier else 0
            if tier and wait_s:
                await RefuseAll(TooManyRequests(tier.per_minute, wait_s))(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _tier(self, scope: Scope) -> Tier | None:
        """Return what a request counts as; None for what monitors ask, which is never limited."""
        settings, path = self._settings.api, scope["path"]
        # First: no ending of a path makes guessing tokens quicker.
        if not self._is_replay and is_admin_path(path):
            if not principal_of(scope).may(Permission.OPERATE):
                return Tier("intruder", settings.intruder_per_minute)
            return None if path in _MONITORS else Tier("admin", settings.admin_per_minute)
        # On both hosts: a walk through the index costs more than a page.
        if path in _CDX:
            return Tier("cdx", settings.cdx_per_minute)
        if self._is_replay or path.startswith(("/web/", "/api/snapshots/raw/")) or path.endswith(("/wacz", ".wacz")):
            return Tier("replay", settings.replay_per_minute)
        if path in _MONITORS:
            return None
        if path in ("/api/search", "/api/terms"):
            return Tier("search", settings.search_per_minute)
        if (path.startswith("/api/exports/") and path != "/api/exports/columns") or (
            path.startswith("/api/coverage/") and path.endswith(_FILES)
        ):
            return Tier("exports", settings.exports_per_minute)
        if path == "/api/reports" or (path == "/report" and scope["method"] == "POST"):
            return Tier("reports", settings.reports_per_minute)
        return Tier("general", settings.general_per_minute)


class RequestsAtOnce:
    """Refuses a request of a client that has as many under way as it may; a slow reader's lasts until it has read."""

    def __init__(self, app: ASGIApp, *, refuse: Callable[[HoldfastError], ASGIApp], per_address: int) -> None:
        self._app, self._refuse, self._counts = app, refuse, AddressCounts(per_address)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse it."""
        # A balancer on this machine has the address of all whose requests it passes on.
        if scope["type"] != "http" or scope["path"] in _HEALTH:
            await self._app(scope, receive, send)
            return
        key = address_of(scope)
        if not self._counts.take(key):
            await self._refuse(TooManyConnections(self._counts.limit))(scope, receive, send)
            return
        try:
            await self._app(scope, receive, send)
        finally:
            self._counts.give_back(key)
