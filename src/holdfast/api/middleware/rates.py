"""How often an address may ask, by kind of route. Counted in this process; a fleet's count can take the same place."""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from ipaddress import IPv6Address, ip_address
from typing import NamedTuple

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.api.middleware.areas import is_admin_path
from holdfast.api.middleware.entrance import Refusal
from holdfast.api.problems import TooManyRequests
from holdfast.api.roles import is_admin
from holdfast.clock import Clock
from holdfast.config import ApiSettings

_WINDOW_S = 60.0
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

    def forget(self, now: float) -> None:
        """Drop the seconds that lie wholly more than a minute back."""
        while self.seconds and self.seconds[0][0] + 1 + _WINDOW_S <= now:
            self.total -= self.seconds.popleft()[1]

    def add(self, now: float) -> None:
        """Count one request."""
        second, count = self.seconds.pop() if self.seconds and self.seconds[-1][0] == int(now) else (int(now), 0)
        self.seconds.append((second, count + 1))
        self.total += 1

    def wait_s(self, limit: int, now: float) -> int:
        """Return after how many seconds one more fits below a limit that is reached."""
        left = self.total
        for second, count in self.seconds:
            left -= count
            if left < limit:
                return max(1, math.ceil(second + 1 + _WINDOW_S - now))
        return 1


class Rates:
    """Counts per tier and address: never more than the limit in any minute, wherever it begins.

    At most `addresses` are remembered, the least recent forgotten first, so that a flood of addresses costs no memory.
    """

    def __init__(self, clock: Clock, *, addresses: int = 50_000) -> None:
        self._clock, self._addresses = clock, addresses
        self._seen: OrderedDict[tuple[str, str], _Minute] = OrderedDict()

    def ask(self, tier: Tier, address: str) -> int:
        """Count a request; return 0 if it may go on, else the whole seconds after which the next one may."""
        now, key = self._clock.monotonic(), (tier.name, address)
        minute = self._seen.pop(key, None) or _Minute()
        self._seen[key] = minute
        if len(self._seen) > self._addresses:
            self._seen.popitem(last=False)
        minute.forget(now)
        if minute.total >= tier.per_minute:
            return minute.wait_s(tier.per_minute, now)
        minute.add(now)
        return 0


def address_of(scope: Scope) -> str:
    """Return whom to count: the peer's address, a whole /64 for IPv6, where one household has them all."""
    peer = scope.get("client")
    try:
        address = ip_address(peer[0] if peer else "")
    except ValueError:
        return str(peer[0]) if peer else ""
    if isinstance(address, IPv6Address):
        return str(address.ipv4_mapped or int(address) >> 64)
    return str(address)


class RateLimits:
    """Refuses what comes too often, with Retry-After."""

    def __init__(self, app: ASGIApp, rates: Rates, settings: ApiSettings, *, replay: bool = False) -> None:
        self._app, self._rates, self._settings, self._is_replay = app, rates, settings, replay

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse it."""
        if scope["type"] == "http" and self._settings.rate_limiting:
            tier = self._tier(scope)
            wait_s = self._rates.ask(tier, address_of(scope))
            if wait_s:
                await Refusal(TooManyRequests(tier.per_minute, wait_s))(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _tier(self, scope: Scope) -> Tier:
        settings, path = self._settings, scope["path"]
        if not self._is_replay and is_admin_path(path):  # first: no ending of a path makes guessing tokens quicker
            if is_admin(settings, Headers(scope=scope)):
                return Tier("admin", settings.admin_per_minute)
            return Tier("intruder", settings.intruder_per_minute)
        if self._is_replay or path.startswith(("/web/", "/api/snapshots/raw/")) or path.endswith(("/wacz", ".wacz")):
            return Tier("replay", settings.replay_per_minute)
        if path == "/api/search":
            return Tier("search", settings.search_per_minute)
        if path.startswith("/api/exports/") or (path.startswith("/api/coverage/") and path.endswith(_FILES)):
            return Tier("exports", settings.exports_per_minute)
        if path == "/api/reports" or (path == "/report" and scope["method"] == "POST"):
            return Tier("reports", settings.reports_per_minute)
        return Tier("general", settings.general_per_minute)
