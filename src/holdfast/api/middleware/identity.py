"""Authenticates each request once: routes, rate limits and the log read `request.state.principal`.

An invalid credential never makes an anonymous request: the response is 401.
"""

from __future__ import annotations

from typing import Any

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.api.errors import OriginRefused, failed_outside
from holdfast.api.middleware.host_routing import RefuseAll
from holdfast.api.routing import SAFE_METHODS, PathPermissions, is_own_origin, principal_of
from holdfast.api.session_cookie import SessionCookie
from holdfast.auth.credentials import TOKEN_PREFIX, csrf_token, digest_of, is_same
from holdfast.auth.errors import CredentialWrong
from holdfast.auth.principal import ANONYMOUS, Principal, SignInWay
from holdfast.auth.roles import Permission, Role
from holdfast.config import Settings
from holdfast.errors import HoldfastError
from holdfast.wiring.accounts import Accounts
from holdfast.withdrawals.viewers import EVERYTHING, PUBLIC, seen_by

SIGN_IN_PATHS = frozenset(
    {"/signin", "/setup", "/setup.js", "/signin/oidc", "/signin/oidc/callback", "/account.css", "/style.css"}
)
"""Paths that a browser needs to sign in again; an expired session does not block them."""
SIGN_IN_ROUTES = frozenset({("POST", "/api/session"), ("POST", "/api/auth/login")})
# Headers that may contain a credential: most requests have none, so test for all of them at once.
_SHOWN = frozenset((b"authorization", b"x-admin-token", b"cookie"))
# Threads that look up sessions and tokens; separate, so that slow routes do not delay the authentication of others.
_THREADS = 2


class Principals:
    """Stores the principal in the state of each request, or the error of its credential."""

    def __init__(self, app: ASGIApp, settings: Settings, accounts: Accounts, permissions: PathPermissions) -> None:
        self._app, self._settings, self._permissions = app, settings, permissions
        self._identities, self._jwt = accounts.identities, accounts.jwt
        self._cookie = SessionCookie(settings)
        self._admin = Principal(role=Role.ADMINISTRATOR, name="admin", way=SignInWay.ADMIN_TOKEN)
        self._limiter = CapacityLimiter(_THREADS)

    async def identify(self, scope: Scope) -> Principal:
        """Return the principal. Streams call this repeatedly; for them an expired session is anonymous."""
        try:
            return await self.find(scope, {})
        except CredentialWrong:
            return ANONYMOUS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        state = scope.setdefault("state", {})
        state["principal"] = ANONYMOUS
        try:
            state["principal"] = await self.find(scope, state)
        except CredentialWrong as exc:
            if "session_secret" in state:
                # The browser drops a session that has ended; the paths for signing in again stay open to it.
                send = self._clearing(scope, send)
                if scope["path"] in SIGN_IN_PATHS or (scope["method"], scope["path"]) in SIGN_IN_ROUTES:
                    await self._app(scope, receive, send)
                    return
            state["credential_error"] = exc
        except HoldfastError as exc:
            # Without the database, a session is neither valid nor invalid.
            await failed_outside(exc, scope)(scope, receive, send)
            return
        if self._is_foreign_change(scope, state["principal"]):
            # Check this before reading a byte of the body; the route's guard checks more.
            await RefuseAll(OriginRefused())(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _is_foreign_change(self, scope: Scope, principal: Principal) -> bool:
        """Return whether a page of another origin made the browser send a change with the reader's session."""
        if scope["method"] in SAFE_METHODS or principal.way is not SignInWay.SESSION:
            return False
        origin = Headers(scope=scope).get("origin")
        if origin is None or is_own_origin(origin, scope, self._settings):
            return False
        return self._permissions.asked(scope["method"], scope["path"]) is not Permission.READ

    async def find(self, scope: Scope, state: dict[str, Any]) -> Principal:
        """Return the principal; raise CredentialWrong if the credential is invalid.

        A credential in a header takes precedence over cookies, which the browser sends by itself.
        """
        headers = Headers(scope=scope)
        if _SHOWN.isdisjoint([name for name, _ in scope["headers"]]):
            return ANONYMOUS
        shown = headers.getlist("authorization")
        admin_token = headers.get("x-admin-token")
        if admin_token and not self._is_admin_token(admin_token):
            raise self._wrong("the admin token")
        if shown:
            return await self._bearer(shown)
        if admin_token:
            return self._admin
        secret = self._cookie.read(scope, headers)
        if secret is not None:
            state["session_secret"] = secret
            digest = digest_of(secret)
            found = None if digest is None else await self._looked_up(digest, is_session=True)
            if found is None:
                raise CredentialWrong("the session")
            state["csrf_token"] = csrf_token(secret)
            return found
        return ANONYMOUS

    def _is_admin_token(self, shown: str) -> bool:
        """Return whether this is the admin token; always false if none is set."""
        token = self._settings.api.admin_token
        return token is not None and is_same(shown, token.get_secret_value())

    async def _bearer(self, shown: list[str]) -> Principal:
        scheme, _, token = shown[0].partition(" ")
        token = token.strip()
        # With two of them, a proxy and this server could believe different ones.
        if len(shown) != 1 or scheme.lower() != "bearer" or not token:
            raise CredentialWrong("the Authorization header")
        if (digest := digest_of(token, TOKEN_PREFIX)) is not None:
            found = await self._looked_up(digest, is_session=False)
            if found is None:
                raise CredentialWrong("the token")
            return found
        if self._is_admin_token(token):
            return self._admin
        if self._jwt.looks_like(token):
            return self._jwt.principal(token)
        raise self._wrong("the token")

    def _wrong(self, what: str) -> CredentialWrong:
        if self._settings.api.admin_token is not None:
            return CredentialWrong(what)
        # It belongs to another server, or is outdated: accepting it would hide that mistake.
        step = "this server has no HOLDFAST_API_ADMIN_TOKEN: set one, or use an API token of an account"
        return CredentialWrong(what, step)

    async def _looked_up(self, digest: bytes, *, is_session: bool) -> Principal | None:
        is_known, found = self._identities.remembered(digest)
        if is_known:
            return found
        look = self._identities.by_session if is_session else self._identities.by_token
        return await run_sync(look, digest, limiter=self._limiter)

    def _clearing(self, scope: Scope, send: Send) -> Send:
        async def clearing(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message.setdefault("headers", []))
                # A response that starts a new session has set the cookie itself.
                if "set-cookie" not in headers:
                    headers.append("Set-Cookie", self._cookie.cleared(scope))
            await send(message)

        return clearing


_VARY = (b"vary", b"authorization, cookie, x-admin-token")
_PRIVATE = (b"cache-control", b"private, no-store")


class Viewers:
    """Serves the application's host with the principal's access; caches store only public responses."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request for its viewer; threads that work on the response have the same access."""
        is_member = principal_of(scope).role.is_at_least(Role.MEMBER)

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message.setdefault("headers", [])
                if is_member:
                    headers[:] = [pair for pair in headers if pair[0].lower() != b"cache-control"]
                    headers.append(_PRIVATE)
                headers.append(_VARY)
            await send(message)

        with seen_by(EVERYTHING if is_member else PUBLIC):
            await self._app(scope, receive, marked)
