"""Limits the rate of requests by kind of route and by role; a rejected request gets the time to wait."""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Callable, Container, Iterable
from typing import Final, NamedTuple, Protocol

from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.api.errors import TooManyRequests
from holdfast.api.middleware.host_routing import RefuseAll
from holdfast.api.routing import LazyRoute, PathPermissions, credential_error, principal_of
from holdfast.api.web_files import FILES, PAGES, first_word
from holdfast.auth.principal import Principal
from holdfast.auth.roles import Permission, Role
from holdfast.clock import Clock
from holdfast.config import Settings
from holdfast.errors import HoldfastError
from holdfast.replay.capabilities import without_capability
from holdfast.wiring.server import AddressCounts, TooManyConnections, client_key


def _word(path: str) -> str:
    first, _, rest = path.lstrip("/").partition("/")
    return rest.partition("/")[0] if first == "api" else first


def kinds_of(routes: Iterable[LazyRoute]) -> frozenset[str]:
    """Return the path segments by which metrics group routes, without file names and parameters."""
    return frozenset(word for word in (_word(route.path) for route in routes) if word.replace("-", "").isalnum())


def kind_of(path: str, kinds: Container[str]) -> str:
    """Return the kind of route that a path belongs to: one of `kinds`, or `other`."""
    # The pages of the application are one file: the duration of `/search` says nothing about `/api/search`.
    if first_word(path) in (FILES, *PAGES):
        return FILES
    word = _word(path)
    # A path is free text: as a label it would create a time series for every path of a scanner.
    return word if word in kinds else "other"


_WINDOW_S = 60
_HEALTH = ("/api/health", "/health", "/health/live", "/health/ready")
_MONITORS = (*_HEALTH, "/metrics")
_CDX = ("/cdx", "/cdx/search/cdx")
_FILES = (".csv", ".json", ".jsonl")
# On the replay host, these are the packages of `/api/snapshots/{id}/wacz`, one for each page that a reader opens.
_RENDERED = "/replay-web-page/captures/"


def _is_made_anew(path: str) -> bool:
    """Return whether a response is built or fetched for one reader only."""
    if path.startswith("/api/snapshots/"):
        # Packages of whole crawls are cached and read in many small parts; those of a page are not.
        return path.endswith(("/wacz", "/compare-live"))
    if path.startswith("/api/coverage/"):
        return path.endswith(_FILES)
    # Each page of search results counts as one search.
    is_table = path.startswith("/api/exports/") and path != "/api/exports/columns"
    return is_table or path == "/api/search/export"


def address_of(scope: Scope) -> str:
    """Return the client address that a request counts for: its peer, or what a trusted proxy names; see
    `client_key`.
    """
    peer = scope.get("client")
    return client_key(str(peer[0]) if peer else "")


def counted_as(scope: Scope, principal: Principal) -> str:
    """Return the counting key of a signed-in principal: the user, or the address that uses the token."""
    # A user has one count, even when moving between addresses or sharing one with colleagues.
    return address_of(scope) if principal.user_id is None else f"user {principal.user_id}"


RATE_FIELDS: Final = "holdfast_rate_fields"
"""Key in the request's scope: the headers that say how much of a limit is left."""


def rate_fields(tier: Tier, counted: CountedRequest) -> list[tuple[bytes, bytes]]:
    """Return the rate limit headers of a counted request: the common ones, and those of the current IETF draft."""
    limit, left, reset = tier.per_minute, counted.left, counted.reset_s
    return [
        (b"ratelimit-limit", b"%d" % limit),
        (b"ratelimit-remaining", b"%d" % left),
        (b"ratelimit-reset", b"%d" % reset),
        (b"ratelimit-policy", b'"%b";q=%d;w=60' % (tier.name.encode(), limit)),
        (b"ratelimit", b'"%b";r=%d;t=%d' % (tier.name.encode(), left, reset)),
    ]


class RateLimits:
    """Rejects requests beyond the limit, with Retry-After."""

    def __init__(
        self,
        app: ASGIApp,
        rates: Rates | CountedElsewhere,
        settings: Settings,
        *,
        permissions: PathPermissions | None = None,
    ) -> None:
        """Wrap `app`; without permissions, everything is public and counts as replay."""
        self._app, self._rates, self._settings, self._permissions = app, rates, settings, permissions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._settings.api.rate_limiting:
            await self._app(scope, receive, send)
            return
        principal = principal_of(scope)
        tier = self._tier(scope, principal)
        if tier is None:
            await self._app(scope, receive, send)
            return
        key = counted_as(scope, principal) if tier.is_personal else address_of(scope)
        if isinstance(self._rates, Rates):
            counted = self._rates.count(tier, key)
        else:
            counted = await self._rates.count(tier, key)
        # The layer that adds the other headers sends these: each additional layer around a response costs time.
        scope[RATE_FIELDS] = rate_fields(tier, counted)
        if counted.wait_s:
            await RefuseAll(TooManyRequests(tier.per_minute, counted.wait_s))(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _tier(self, scope: Scope, principal: Principal) -> Tier | None:
        """Return the tier of a request; None for monitoring paths, which are never limited."""
        settings, path = self._settings.api, scope["path"]
        # Check this first: no suffix of a path may make guessing tokens faster.
        permissions = self._permissions
        asked = None if permissions is None else permissions.asked(scope["method"], path)
        if credential_error(scope) is not None:
            return Tier("intruder", settings.per_minute("intruder"))
        if permissions is not None and asked not in (None, Permission.READ):
            if not principal.role.is_at_least(Role.MEMBER):
                return Tier("intruder", settings.per_minute("intruder"))
            if not principal.may(Permission.WATCH):
                return Tier("member", settings.per_minute("member"), is_personal=True)
            if path in _MONITORS:
                return None
            if permissions.is_seeding(scope["method"], path):
                return Tier("seeds", settings.per_minute("seeds"), is_personal=True)
            return Tier("admin", settings.per_minute("admin"), is_personal=True)
        # Apply it on both hosts, and behind a capability: a query of the index costs more than a page.
        if (without_capability(path) if permissions is None else path) in _CDX:
            return Tier("cdx", settings.per_minute("cdx"))
        if permissions is None and path.startswith(_RENDERED) and scope["method"] != "HEAD":
            return Tier("packages", settings.per_minute("packages"))
        if permissions is not None and _is_made_anew(path):
            return Tier("exports", settings.per_minute("exports"))
        is_package = path.endswith(("/wacz", ".wacz"))
        if permissions is None or is_package or path.startswith(("/web/", "/api/snapshots/raw/")):
            return Tier("replay", settings.per_minute("replay"))
        if path in _MONITORS:
            return None
        # The tools of assistants search, too: they must not bypass the limit of searches.
        if path in ("/api/search", "/api/terms", "/mcp"):
            return Tier("search", settings.per_minute("search"))
        if path == "/api/reports" or (path == "/report" and scope["method"] == "POST"):
            return Tier("reports", settings.per_minute("reports"))
        return Tier("general", settings.per_minute("general"))


class RequestsAtOnce:
    """Limits a client's concurrent requests; a request lasts until the client has read the response."""

    def __init__(self, app: ASGIApp, *, refuse: Callable[[HoldfastError], ASGIApp], per_address: int) -> None:
        self._app, self._refuse, self._counts = app, refuse, AddressCounts(per_address)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # All requests that a load balancer on this machine forwards have its address.
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
    """The requests of one client in the last minute, counted per second."""

    __slots__ = ("seconds", "total")

    def __init__(self) -> None:
        self.seconds: deque[tuple[int, int]] = deque()
        self.total = 0

    def forget(self, now: float) -> None:
        while self.seconds and self.seconds[0][0] + 1 + _WINDOW_S <= now:
            self.total -= self.seconds.popleft()[1]

    def add(self, now: float) -> None:
        # Count by second, not by request: a client has at most sixty pairs, however many requests it sends.
        second, count = self.seconds.pop() if self.seconds and self.seconds[-1][0] == int(now) else (int(now), 0)
        self.seconds.append((second, count + 1))
        self.total += 1


class Rates:
    """Counts per tier and client in this process: never more than the limit in any minute, wherever it begins.

    Stores at most `addresses` clients, evicting the least recent, so that a flood of addresses costs no memory.
    """

    is_away = None
    """Whether the external counter does not respond; None without one."""

    def __init__(self, clock: Clock, *, addresses: int = 50_000) -> None:
        self._clock, self._addresses = clock, addresses
        self._seen: OrderedDict[tuple[str, str], _Minute] = OrderedDict()

    async def close(self) -> None:
        """Do nothing: the counts are in memory."""

    def count(self, tier: Tier, key: str) -> CountedRequest:
        """Count a request if its window has room for it."""
        now, minute = self._clock.monotonic(), self._seen.pop((tier.name, key), None) or _Minute()
        # Move it to the end of the dict: the least recently active client is dropped first.
        self._seen[tier.name, key] = minute
        if len(self._seen) > self._addresses:
            self._seen.popitem(last=False)
        minute.forget(now)
        has_room = minute.total < tier.per_minute
        if has_room:
            minute.add(now)
        # The window starts at the end of its first second.
        began = minute.seconds[0][0] + 1.0 if minute.seconds else now
        return counted_request(has_room, tier.per_minute - minute.total, began + _WINDOW_S - now)

    def has_room(self, tier: Tier, key: str) -> bool:
        """Return whether a request would be allowed now, without counting it."""
        minute = self._seen.get((tier.name, key)) or _Minute()
        minute.forget(self._clock.monotonic())
        return minute.total < tier.per_minute


def counted_request(has_room: bool, left: int, reset_s: float) -> CountedRequest:
    # Round up: a client that returns a moment too early would be rejected again.
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
