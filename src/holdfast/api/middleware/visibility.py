"""Sets what a request may see: everything for members and higher roles, public content for everyone else."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.api.routing import principal_of
from holdfast.auth.roles import Role
from holdfast.withdrawals.viewers import EVERYTHING, PUBLIC, seen_by

_VARY = (b"vary", b"authorization, cookie, x-admin-token")
_PRIVATE = (b"cache-control", b"private, no-store")


class Viewers:
    """Serves the application's host with the principal's access; caches do not store what is not public."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request for its viewer; threads that work on the response have the same access."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
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
