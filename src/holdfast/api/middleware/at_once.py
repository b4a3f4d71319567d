"""How many requests of one client are under way, both hosts together: behind a proxy, connections tell nothing.

A client of its own connection can never have more requests than connections, which the server counts itself
(`wiring.connections`); this is the same limit for clients that a trusted proxy names.
"""

from __future__ import annotations

from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.api.middleware.rates import address_of
from holdfast.errors import HoldfastError
from holdfast.wiring.connections import AddressCounts, TooManyConnections


class RequestsAtOnce:
    """Refuses a request of a client that has as many under way as it may; a slow reader's lasts until it has read."""

    def __init__(self, app: ASGIApp, *, refuse: Callable[[HoldfastError], ASGIApp], per_address: int) -> None:
        self._app, self._refuse, self._counts = app, refuse, AddressCounts(per_address)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse it."""
        if scope["type"] != "http":
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
