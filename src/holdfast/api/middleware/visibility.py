"""What a request may see: everything for members and those above them, what is public for everybody else."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.api.origins import is_own_origin
from holdfast.api.permissions import principal_of
from holdfast.auth.principal import Principal, SignInWay
from holdfast.auth.roles import Role
from holdfast.config import Settings
from holdfast.withdrawals.viewers import EVERYTHING, PUBLIC, seen_by

_VARY = (b"vary", b"authorization, cookie, x-admin-token")
_PRIVATE = (b"cache-control", b"private, no-store")


class Viewers:
    """Lets the application's host be read as the principal may see it; what only some may see is kept by no cache."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app, self._settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request for its viewer; threads that it asks for an answer look with the same eyes."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        principal = principal_of(scope)
        is_member = principal.role.is_at_least(Role.MEMBER) and not self._is_foreign_page(scope, principal)
        # A user of this machine shows nothing, and nothing stands between: what is kept for one is kept for all.
        is_signed_in = is_member and principal.way is not SignInWay.LOOPBACK

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message.setdefault("headers", [])
                if is_signed_in:
                    headers[:] = [pair for pair in headers if pair[0].lower() != b"cache-control"]
                    headers.append(_PRIVATE)
                headers.append(_VARY)
            await send(message)

        with seen_by(EVERYTHING if is_member else PUBLIC):
            await self._app(scope, receive, marked)

    def _is_foreign_page(self, scope: Scope, principal: Principal) -> bool:
        """Return whether a page of another origin asks with what a user of this machine may see."""
        # It shows nothing of its own, and `HOLDFAST_API_CORS_ORIGINS` may let it read what is public.
        if principal.way is not SignInWay.LOOPBACK:
            return False
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        return origin is not None and not is_own_origin(origin, headers, self._settings)
