"""Limits request bodies to small, complete, uncompressed JSON, and reads them before any route does."""

from __future__ import annotations

import asyncio
import re

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.api.errors import BodyRefused, BodyTooLarge, BodyTooSlow
from holdfast.api.middleware.host_routing import UNREAD, RefuseAll
from holdfast.api.routing import FORM_PATHS
from holdfast.errors import HoldfastError, Invalid

DEPTH = 32
"""Maximum nesting depth of JSON in a request."""
VALUES = 50_000
"""Maximum number of values in it: 50,000 numbers take about 20 ms to check, and a thousand sources have 20,000."""
_ARRIVAL_S = 30.0
# Routes that accept other types than JSON. A page of another origin cannot send files without a preflight; it could
# send a form, which the route rejects.
_FILES = {
    "/api/v1/sources/import": ("application/yaml", "application/x-yaml", "text/yaml", "application/toml", "text/toml"),
    **dict.fromkeys(
        ("/report", "/signin", "/setup", *FORM_PATHS),
        ("application/x-www-form-urlencoded",),
    ),
}
# Their routes read the body piece by piece: a file of gigabytes is never held here.
_STREAMED = re.compile(r"/api/admin/uploads/[0-9]{1,19}")
_NEXT = re.compile(rb'[]["{},]')
# The rest of a string up to its closing quote. Possessive, so that it never backtracks.
_INSIDE = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.S)


class JsonShape:
    """Measures JSON while it arrives, without parsing it: its nesting depth and approximate number of values.

    It reads each byte once, and stops counting at either limit.
    """

    # The event loop reads bodies: slow work here delays every other request.

    def __init__(self) -> None:
        self.deepest = self.values = 0
        self._depth, self._is_open, self._is_escaped = 0, False, False

    @property
    def refusal(self) -> str | None:
        """The reason for rejecting it, None as long as it is within the limits."""
        if self.deepest > DEPTH:
            return f"the JSON nests deeper than {DEPTH}; send it flatter"
        if self.values > VALUES:
            return f"the JSON holds more than {VALUES:,} values; send it in parts"
        return None

    def feed(self, piece: bytes) -> None:
        if not piece:
            return
        at = self._skip_string(piece, 0) if self._is_open else 0
        while self.refusal is None and (found := _NEXT.search(piece, at)):
            at, byte = found.end(), found[0]
            if byte == b'"':
                self.values += 1
                at = self._skip_string(piece, at)
            elif byte in b"[{":
                self._depth += 1
                self.values += 1
                self.deepest = max(self.deepest, self._depth)
            elif byte == b",":
                self.values += 1
            else:
                self._depth -= 1

    def _skip_string(self, piece: bytes, at: int) -> int:
        found = _INSIDE.match(piece, at + self._is_escaped)
        end = found.end() if found else at
        closed = piece[end : end + 1] == b'"'
        # A piece may end between a backslash and the character that it escapes.
        self._is_open, self._is_escaped = not closed, not closed and end < len(piece)
        return end + 1 if closed else len(piece)


class Bodies:
    """Reads a request's body up to a limit and passes it on in one piece."""

    def __init__(self, app: ASGIApp, *, limit: int, arrival_s: float = _ARRIVAL_S, any_type: bool = False) -> None:
        """Wrap `app`; `any_type` accepts any content type, for a host that only looks the bodies up."""
        self._app, self._limit, self._arrival_s, self._any_type = app, limit, arrival_s, any_type

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or reject its body with 408, 413, 415 or 422."""
        headers = Headers(scope=scope)
        # HTTP/1.1: a request with neither has no body.
        has_body = "content-length" in headers or "transfer-encoding" in headers
        if not has_body or (scope["method"] == "PATCH" and _STREAMED.fullmatch(scope["path"])):
            await self._app(scope, receive, send)
            return
        try:
            body = await self._read(scope, headers, receive)
        except ClientDisconnect:
            return
        except HoldfastError as exc:
            await RefuseAll(exc)(scope, receive, send)
            return
        await self._app(scope, _replayed(body, receive), send)

    async def _read(self, scope: Scope, headers: Headers, receive: Receive) -> bytes:
        declared = headers.get("content-length", "")
        # Reject it by its declared length before reading a byte; a false length is counted below.
        if declared.isdecimal() and int(declared[:20]) > self._limit:
            raise BodyTooLarge(self._limit)
        media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        shape = JsonShape() if media_type == "application/json" else None
        body = bytearray()
        try:
            # A client that sends a byte a minute would occupy its place for days.
            async with asyncio.timeout(self._arrival_s):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientDisconnect
                    body += message.get("body", b"")
                    more = scope[UNREAD] = message.get("more_body", False)
                    if len(body) > self._limit:
                        raise BodyTooLarge(self._limit)
                    if shape is not None:
                        shape.feed(message.get("body", b""))
        except TimeoutError:
            raise BodyTooSlow(self._arrival_s) from None
        if body and not self._any_type:
            _inspect(headers, media_type, shape, _FILES.get(scope["path"], ()))
        return bytes(body)


def _inspect(headers: Headers, media_type: str, shape: JsonShape | None, files: tuple[str, ...]) -> None:
    # A small body may decompress to gigabytes, and no route needs compressed bodies.
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise BodyRefused("a request's body is not decompressed here; send it plain")
    if media_type in files:
        return
    if shape is None:
        raise BodyRefused("send the body as application/json")
    if shape.refusal is not None:
        raise Invalid(shape.refusal)


def _replayed(body: bytes, receive: Receive) -> Receive:
    is_sent = False

    async def replayed() -> Message:
        nonlocal is_sent
        if is_sent:
            return await receive()
        is_sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed
