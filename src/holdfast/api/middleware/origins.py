"""CORS by exact match: public routes may be read from listed origins, never with credentials."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.api.middleware.areas import is_admin_path
from holdfast.api.middleware.entrance import Refusal
from holdfast.api.problems import OriginRefused

_READ = "GET, HEAD, OPTIONS"
_WRITE = {"/api/reports": "POST, OPTIONS"}
"""The one public route that takes something in."""
_SAFE = ("GET", "HEAD", "OPTIONS")
_SENT = "accept, content-type, x-request-id, range"
_SHOWN = (
    "X-Request-Id, X-API-Version, Retry-After, Accept-Ranges, Content-Disposition, Content-Length, Content-Range, "
    "ETag, Link, Memento-Datetime"
)


class Origins:
    """Answers preflights and marks what a page of another origin may read."""

    def __init__(self, app: ASGIApp, *, allowed: Sequence[str]) -> None:
        self._app, self._allowed = app, frozenset(allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; without an Origin nothing is added but Vary."""
        headers = Headers(scope=scope) if scope["type"] == "http" else Headers()
        origin = headers.get("origin")
        path = scope.get("path", "")
        readable = bool(origin) and origin in self._allowed and not is_admin_path(path)
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif origin and scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            answer = _preflight(scope["path"], origin, headers) if readable else None
            await (answer or Refusal(OriginRefused()))(scope, receive, send)
        elif origin and scope["method"] not in _SAFE and is_admin_path(path) and not is_own_origin(origin, headers):
            # Browsers send a bodiless POST without asking: without a token, any page could stop a job.
            await Refusal(OriginRefused())(scope, receive, send)
        else:
            await self._app(scope, receive, _marked(send, origin if readable else None))


def is_own_origin(origin: str, headers: Headers) -> bool:
    """Return whether a page of this host sent a request; `null` is nobody's."""
    return origin.partition("://")[2] == headers.get("host")


def _preflight(path: str, origin: str, headers: Headers) -> Response | None:
    methods = _WRITE.get(path, _READ)
    if headers["access-control-request-method"] not in methods.split(", "):
        return None
    return Response(
        status_code=204,
        headers={
            "Access-Control-Allow-Origin": origin, "Access-Control-Allow-Methods": methods,
            "Access-Control-Allow-Headers": _SENT, "Access-Control-Max-Age": "600", "Vary": "Origin",
        },
    )  # fmt: skip


def _marked(send: Send, origin: str | None) -> Send:
    async def marked(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=message.setdefault("headers", []))
            headers.add_vary_header("Origin")
            if origin is not None:
                headers["Access-Control-Allow-Origin"] = origin
                headers["Access-Control-Expose-Headers"] = _SHOWN
                # A page that may read the answer may also embed it.
                headers["Cross-Origin-Resource-Policy"] = "cross-origin"
        await send(message)

    return marked
