"""Finds out who asks, once a request: `request.state.principal`. Routes, rate limits and the log read it there."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.api.admin_token import is_admin
from holdfast.auth.principal import ANONYMOUS, Principal, SignInWay
from holdfast.auth.roles import Role
from holdfast.config import Settings


class Principals:
    """Puts the principal into the state of each request."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app, self._settings = app, settings
        way = SignInWay.LOOPBACK if settings.api.admin_token is None else SignInWay.ADMIN_TOKEN
        self._admin = Principal(role=Role.ADMINISTRATOR, name="admin", way=way)

    async def identify(self, scope: Scope) -> Principal:
        """Return who asks; streams ask again while they last."""
        return self._admin if is_admin(self._settings, scope) else ANONYMOUS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request in the name of who asks."""
        if scope["type"] == "http":
            scope.setdefault("state", {})["principal"] = await self.identify(scope)
        await self._app(scope, receive, send)
