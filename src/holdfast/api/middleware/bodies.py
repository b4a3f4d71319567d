"""What may come in: small, whole, uncompressed and JSON, read before any route sees it; the rest is refused."""

from __future__ import annotations

import asyncio
import re

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.api.middleware.entrance import Refusal
from holdfast.api.problems import BodyRefused, BodyTooLarge, BodyTooSlow
from holdfast.errors import HoldfastError, Invalid

_DEPTH = 32
_ARRIVAL_S = 30.0
_FILES = {
    "/api/v1/sources/import": ("application/yaml", "application/x-yaml", "text/yaml", "application/toml", "text/toml"),
    "/report": ("application/x-www-form-urlencoded",),
}
"""Where something else than JSON may come in. A page of another origin cannot send files without asking first; it could
send a form, which its route refuses."""
_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"', re.S)
_NOT_BRACKETS = re.compile(rb"[^][{}]+")


def depth_of(text: bytes) -> int:
    """Return how deep JSON nests, in one pass and without parsing it; past the limit it stops counting."""
    deepest = depth = 0
    for byte in _NOT_BRACKETS.sub(b"", _STRINGS.sub(b"", text)):
        depth += 1 if byte in b"[{" else -1
        if depth > deepest:
            deepest = depth
            if deepest > _DEPTH:
                break
    return deepest


class Bodies:
    """Reads a request's body up to a limit and hands it on in one piece."""

    def __init__(self, app: ASGIApp, *, limit: int, arrival_s: float = _ARRIVAL_S, any_type: bool = False) -> None:
        """Take what comes behind; `any_type` lets bodies of any type in, for a host that only looks them up."""
        self._app, self._limit, self._arrival_s, self._any_type = app, limit, arrival_s, any_type

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse its body with 408, 413, 415 or 422."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if "content-length" not in headers and "transfer-encoding" not in headers:
            await self._app(scope, receive, send)
            return
        try:
            body = await self._read(headers, receive)
            if not self._any_type:
                _inspect(headers, body, _FILES.get(scope["path"], ()))
        except ClientDisconnect:
            return
        except HoldfastError as exc:
            await Refusal(exc)(scope, receive, send)
            return
        await self._app(scope, _replayed(body, receive), send)

    async def _read(self, headers: Headers, receive: Receive) -> bytes:
        declared = headers.get("content-length", "")
        if declared.isdecimal() and int(declared[:20]) > self._limit:
            raise BodyTooLarge(self._limit)
        body = bytearray()
        try:
            async with asyncio.timeout(self._arrival_s):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientDisconnect
                    body += message.get("body", b"")
                    more = message.get("more_body", False)
                    if len(body) > self._limit:
                        raise BodyTooLarge(self._limit)
        except TimeoutError:
            raise BodyTooSlow(self._arrival_s) from None
        return bytes(body)


def _inspect(headers: Headers, body: bytes, files: tuple[str, ...]) -> None:
    if not body:
        return
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise BodyRefused("a request's body is not decompressed here; send it plain")
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type in files:
        return
    if media_type != "application/json":
        raise BodyRefused("send the body as application/json")
    if depth_of(body) > _DEPTH:
        raise Invalid(f"the JSON nests deeper than {_DEPTH}; send it flatter")


def _replayed(body: bytes, receive: Receive) -> Receive:
    told = False

    async def replayed() -> Message:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed
