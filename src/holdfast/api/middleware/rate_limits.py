"""How often a client may ask, by kind of route and by role; what is too often is refused with the time to wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.api.errors import TooManyRequests
from holdfast.api.middleware.host_routing import RefuseAll
from holdfast.api.middleware.rate_counts import CountedElsewhere, CountedRequest, Rates, Tier
from holdfast.api.permissions import PERMISSIONS, PathPermissions, credential_error, principal_of
from holdfast.api.web_files import FILES, PAGES, first_word
from holdfast.auth.principal import Principal
from holdfast.auth.roles import Permission, Role
from holdfast.config import Settings
from holdfast.errors import HoldfastError
from holdfast.replay.capabilities import without_capability
from holdfast.wiring.server import AddressCounts, TooManyConnections, client_key


def _word(path: str) -> str:
    first, _, rest = path.lstrip("/").partition("/")
    return rest.partition("/")[0] if first == "api" else first


# Of the one table of routes; files and parameters are no words.
_WORDS: Final = (_word(row.partition(" ")[2]) for row in PERMISSIONS)
_KINDS: Final = frozenset(word for word in _WORDS if word.replace("-", "").isalnum())


def kind_of(path: str) -> str:
    """Return the kind of route that a path belongs to: a bounded word for metrics."""
    # The pages of the application are one file: `/search` says nothing about how quick `/api/search` is.
    if first_word(path) in (FILES, *PAGES):
        return FILES
    word = _word(path)
    # A path is free text: as a label it would give every scanner a series of its own.
    return word if word in _KINDS else "other"


_HEALTH = ("/api/health", "/health", "/health/live", "/health/ready")
_MONITORS = (*_HEALTH, "/metrics")
_CDX = ("/cdx", "/cdx/search/cdx")
_FILES = (".csv", ".json", ".jsonl")
# On the replay host the same packages as `/api/snapshots/{id}/wacz`, one for each page that a reader opens.
_RENDERED = "/replay-web-page/captures/"


def _is_made_anew(path: str) -> bool:
    """Return whether a response is built or fetched for one reader only."""
    if path.startswith("/api/snapshots/"):
        # Packages of whole crawls are kept, and read in many small parts; those of a page are not.
        return path.endswith(("/wacz", "/compare-live"))
    if path.startswith("/api/coverage/"):
        return path.endswith(_FILES)
    # The results of a search are as many searches as they have pages.
    is_table = path.startswith("/api/exports/") and path != "/api/exports/columns"
    return is_table or path == "/api/search/export"


def address_of(scope: Scope) -> str:
    """Return the address to count a request for: its peer, or what a trusted proxy names; see `client_key`."""
    peer = scope.get("client")
    return client_key(str(peer[0]) if peer else "")


def counted_as(scope: Scope, principal: Principal) -> str:
    """Return whom a request of a signed-in principal is counted for: the user, or the address that has the token."""
    # A user who moves between addresses, or shares one with colleagues, has one count of their own.
    return address_of(scope) if principal.user_id is None else f"user {principal.user_id}"


RATE_FIELDS: Final = "holdfast_rate_fields"
"""Where a request's scope holds the headers that say how much of a limit is left."""


def rate_fields(tier: Tier, counted: CountedRequest) -> list[tuple[bytes, bytes]]:
    """Return the headers of a counted request: those that clients know, and those of the current draft (IETF)."""
    limit, left, reset = tier.per_minute, counted.left, counted.reset_s
    return [
        (b"ratelimit-limit", b"%d" % limit),
        (b"ratelimit-remaining", b"%d" % left),
        (b"ratelimit-reset", b"%d" % reset),
        (b"ratelimit-policy", b'"%b";q=%d;w=60' % (tier.name.encode(), limit)),
        (b"ratelimit", b'"%b";r=%d;t=%d' % (tier.name.encode(), left, reset)),
    ]


class RateLimits:
    """Refuses what comes too often, with Retry-After."""

    def __init__(
        self,
        app: ASGIApp,
        rates: Rates | CountedElsewhere,
        settings: Settings,
        *,
        permissions: PathPermissions | None = None,
    ) -> None:
        """Take what comes behind; without permissions, everything is public and counts as replay."""
        self._app, self._rates, self._settings, self._permissions = app, rates, settings, permissions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse it."""
        if scope["type"] != "http" or not self._settings.api.rate_limiting:
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
        # Sent by the layer that adds the other headers: each layer of its own around an answer has its price.
        scope[RATE_FIELDS] = rate_fields(tier, counted)
        if counted.wait_s:
            await RefuseAll(TooManyRequests(tier.per_minute, counted.wait_s))(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _tier(self, scope: Scope, principal: Principal) -> Tier | None:
        """Return what a request counts as; None for what monitors ask, which is never limited."""
        settings, path = self._settings.api, scope["path"]
        # First: no ending of a path makes guessing tokens quicker.
        permissions = self._permissions
        asked = None if permissions is None else permissions.asked(scope["method"], path)
        if credential_error(scope) is not None:
            return Tier("intruder", settings.intruder_per_minute)
        if permissions is not None and asked not in (None, Permission.READ):
            if not principal.role.is_at_least(Role.MEMBER):
                return Tier("intruder", settings.intruder_per_minute)
            if not principal.may(Permission.WATCH):
                return Tier("member", settings.member_per_minute, is_personal=True)
            if path in _MONITORS:
                return None
            if permissions.is_seeding(scope["method"], path):
                return Tier("seeds", settings.seeds_per_minute, is_personal=True)
            return Tier("admin", settings.admin_per_minute, is_personal=True)
        # On both hosts, and behind a capability: a walk through the index costs more than a page.
        if (without_capability(path) if permissions is None else path) in _CDX:
            return Tier("cdx", settings.cdx_per_minute)
        if permissions is None and path.startswith(_RENDERED) and scope["method"] != "HEAD":
            return Tier("packages", settings.packages_per_minute)
        if permissions is not None and _is_made_anew(path):
            return Tier("exports", settings.exports_per_minute)
        is_package = path.endswith(("/wacz", ".wacz"))
        if permissions is None or is_package or path.startswith(("/web/", "/api/snapshots/raw/")):
            return Tier("replay", settings.replay_per_minute)
        if path in _MONITORS:
            return None
        # The tools of assistants search, too: they are no second way past the limit of searches.
        if path in ("/api/search", "/api/terms", "/mcp"):
            return Tier("search", settings.search_per_minute)
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
