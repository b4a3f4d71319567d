"""HEAD wherever GET is: a route that does not answer HEAD itself is asked with GET, and its body stays here."""

from __future__ import annotations

from anyio import CancelScope
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
                await send(_without_zero(message))

        # A copy each time: routing leaves its findings in the scope.
        await self._app(dict(scope), receive, first)
        if refused:
            await self._get({**scope, "method": "GET"}, receive, send)

    async def _get(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Ask with GET until the headers are there: a body that streams is not made, for it would be thrown away."""
        with CancelScope() as asking:

            async def headers_only(message: Message) -> None:
                if message["type"] == "http.response.start":
                    await send(message)
                    await send({"type": "http.response.body", "body": b"", "more_body": False})
                    asking.cancel()

            await self._app(scope, receive, headers_only)


def _without_zero(message: Message) -> Message:
    """Return a message that does not say the body of a GET would be empty, for nobody has looked (RFC 9110, 8.6)."""
    if message["type"] != "http.response.start":
        return message
    told = [pair for pair in message.get("headers", []) if pair != (b"content-length", b"0")]
    return {**message, "headers": told}
