"""Chooses the application for a request by its Host alone; rejects unknown hosts and malformed headers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.api.errors import HostRefused, QueryTooLong, response_to
from holdfast.config import REPLAY_HOST, Settings
from holdfast.errors import HoldfastError

_HOST = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9_]([a-z0-9._-]{0,251}[a-z0-9_])?)(:[0-9]{1,5})?", re.I)
_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


def host_of(scope: Scope) -> str:
    """Return the request's host, in lower case and without port; raise HostRefused if it is not one plain name."""
    # With two of them, requests can be smuggled past a proxy that reads the other one.
    given = [value for name, value in scope["headers"] if name == b"host"]
    found = _HOST.fullmatch(given[0].decode("latin-1")) if len(given) == 1 else None
    if found is None:
        raise HostRefused
    return found.group(1).lower()


class Hosts:
    def __init__(self, settings: Settings) -> None:
        configured = urlsplit(settings.replay.origin or "").hostname
        self.replay = frozenset({configured.lower()} if configured else {REPLAY_HOST})
        bound = f"[{settings.api.host}]" if ":" in settings.api.host else settings.api.host
        names = [*_LOOPBACK, bound, *settings.api.allowed_hosts, urlsplit(settings.api.site_url or "").hostname]
        # Never serve both: a host that shows archived pages must not have the API.
        self.app = frozenset(name.lower() for name in names if name) - self.replay


class HostRouting:
    """Routes a request to the application or to the replay host, by path and Host only."""

    def __init__(
        self,
        hosts: Hosts,
        *,
        app: ASGIApp,
        replay: ASGIApp,
        lifespan: ASGIApp,
        refuse: Callable[[HoldfastError], ASGIApp],
        query_chars: int,
    ) -> None:
        """Route HTTP requests to `app` or `replay`, so that their layers never see anything else."""
        self._hosts, self._app, self._replay, self._lifespan = hosts, app, replay, lifespan
        self._refuse, self._query_chars = refuse, query_chars

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(scope, receive, send)
        # No route supports it, and a handshake would bypass the other layers.
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            try:
                target = self._choose(scope)
            except HoldfastError as exc:
                target = self._refuse(exc)
            await target(scope, receive, send)

    def _choose(self, scope: Scope) -> ASGIApp:
        host = host_of(scope)
        # An absolute-form target (`GET http://elsewhere/`) reaches us as a path without its slash.
        if not (host in self._hosts.app or host in self._hosts.replay) or not scope["path"].startswith("/"):
            raise HostRefused
        if len(scope["query_string"]) > self._query_chars:
            raise QueryTooLong(self._query_chars)
        return self._replay if host in self._hosts.replay else self._app


UNREAD = "holdfast_body_unread"
"""Key in the request's scope: whether part of its body has not arrived yet; absent before the body is read."""
_DROPPED_BYTES = 32 * 1024**2
_DROPPED_S = 10.0


class RefuseAll:
    def __init__(self, error: HoldfastError) -> None:
        self._error = error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read and drop the rest of the request's body, then send the error as plain data."""
        request_id = str(scope.get("holdfast_request_id", ""))
        response = response_to(self._error, path=scope["path"], request_id=request_id)
        if await _drop_body(scope, receive):
            response.headers["Connection"] = "close"
        await response(scope, receive, send)


async def _drop_body(scope: Scope, receive: Receive) -> bool:
    # A client that is still sending does not read the response, and closing the connection resets it: most clients
    # would never see the reason.
    headers = Headers(scope=scope)
    has_body = "transfer-encoding" in headers or headers.get("content-length", "0").strip("0") != ""
    if not scope.get(UNREAD, has_body):
        return False
    # A client that sent `Expect` waits for the response and sends nothing.
    if "expect" in headers and UNREAD not in scope:
        return True
    dropped, more = 0, True
    try:
        async with asyncio.timeout(_DROPPED_S):
            # Limit bytes and time: close the connection of a client that never stops.
            while more and dropped < _DROPPED_BYTES:
                message = await receive()
                dropped += len(message.get("body", b""))
                # `http.disconnect` has neither a body nor a continuation.
                more = message.get("more_body", False)
    except TimeoutError:
        return True
    return more
