"""HEAD wherever GET is: a route that does not answer HEAD itself is asked with GET, and its body stays here."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Heads:
    """Answers HEAD like GET without the body; a route with a cheaper way of its own is asked first."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        refused = False

        async def first(message: Message) -> None:
            nonlocal refused
            refused = refused or (message["type"] == "http.response.start" and message["status"] == 405)
            if not refused:
                await send(message)

        async def headers_only(message: Message) -> None:
            if message["type"] == "http.response.start":
                await send(message)
                await send({"type": "http.response.body", "body": b"", "more_body": False})

        # A copy each time: routing leaves its findings in the scope.
        await self._app(dict(scope), receive, first)
        if refused:
            await self._app({**scope, "method": "GET"}, receive, headers_only)
