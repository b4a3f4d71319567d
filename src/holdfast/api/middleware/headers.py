"""Adds security headers: strict ones on the application's host, a sandbox on the host of archived pages."""

from __future__ import annotations

from collections.abc import Sequence

from anyio import CancelScope
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.api.errors import OriginRefused, WorkerRefused
from holdfast.api.middleware.host_routing import RefuseAll
from holdfast.api.middleware.rate_limits import RATE_FIELDS
from holdfast.api.routing import PathPermissions
from holdfast.auth.roles import Permission

# Encoded once, not again for each response.
_COMMON = [
    (b"x-content-type-options", b"nosniff"),
    (b"permissions-policy", b"camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()"),
    # Shared caches revalidate each time, so that takedowns and members-only sources apply immediately.
    (b"cache-control", b"no-cache"),
]
_APP = [
    *_COMMON,
    (b"referrer-policy", b"strict-origin-when-cross-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
_REPLAY = [
    *_COMMON,
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"cross-origin"),
]
_HSTS = (b"strict-transport-security", b"max-age=31536000; includeSubDomains")
DATA_POLICY = "default-src 'none'; frame-ancestors 'none'"
PAGE_POLICY = (
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "script-src 'self'; style-src 'self'"
)
_WEB_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; manifest-src 'self'; frame-src {replay}; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
CLOSED_POLICY = "sandbox; default-src 'none'"
"""For responses of the replay host without a policy of their own: they can do nothing."""


# X-Frame-Options for browsers that do not know `frame-ancestors`.
OWN_PAGE = [(b"x-frame-options", b"SAMEORIGIN"), (b"cross-origin-opener-policy", b"same-origin")]
_PAGE = [(b"content-security-policy", PAGE_POLICY.encode()), *OWN_PAGE]
_DATA = [(b"content-security-policy", DATA_POLICY.encode()), *OWN_PAGE]
_CLOSED = (b"content-security-policy", CLOSED_POLICY.encode())


def web_policy(replay_origin: str) -> str:
    return _WEB_POLICY.format(replay=replay_origin)


# None of our responses has these: this catches a rewriter that let an archived one through.
_NEVER = frozenset((b"set-cookie", b"clear-site-data", b"service-worker-allowed"))


def _is_html(headers: list[tuple[bytes, bytes]]) -> bool:
    return any(name == b"content-type" and value.startswith(b"text/html") for name, value in headers)


class AppHeaders:
    """Adds security headers to the application's own responses."""

    def __init__(self, app: ASGIApp, *, hsts: bool) -> None:
        self._app, self._hsts = app, hsts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message["headers"] = [*message.get("headers", ()), *scope.get(RATE_FIELDS, ())]
                names = {name.lower() for name, _ in headers}
                headers.extend(pair for pair in _APP if pair[0] not in names)
                # A response with its own policy (the sandboxed raw view) keeps it, and may be framed.
                if b"content-security-policy" not in names:
                    headers.extend(_PAGE if _is_html(headers) else _DATA)
                # Send it only if configured: a browser that received it refuses plain http for a year.
                if self._hsts:
                    headers.append(_HSTS)
            await send(message)

        await self._app(scope, receive, with_headers)


_RENDERER_WORKER = ("/replay-web-page/sw.js", b"serveIndex=1")
"""The only script of the replay host that may become a service worker, with the query that ReplayWeb.page uses."""


def _installs_worker(scope: Scope) -> bool:
    """Return whether a browser requests a script as a service worker, other than the renderer's own.

    An archived script that became one would intercept requests between readers and the archive.
    """
    asks = any(name == b"service-worker" for name, _ in scope["headers"])
    return asks and (scope["path"], scope["query_string"]) != _RENDERER_WORKER


class ReplayHeaders:
    """Keeps credentials off the replay host: removes cookies and tokens from requests and cookies from responses."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # A sibling domain may have set a cookie for this one: an archived page must never see its content.
        refused = (b"cookie", b"authorization", b"x-admin-token")
        without_credentials = {
            **scope,
            "headers": [(name, value) for name, value in scope["headers"] if name not in refused],
        }

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [pair for pair in message.get("headers", ()) if pair[0].lower() not in _NEVER]
                names = {name.lower() for name, _ in headers}
                headers.extend(pair for pair in (*_REPLAY, _CLOSED) if pair[0] not in names)
                headers.extend(without_credentials.get(RATE_FIELDS, ()))
                message["headers"] = headers
            await send(message)

        target = RefuseAll(WorkerRefused()) if _installs_worker(scope) else self._app
        await target(without_credentials, receive, with_headers)


_READ = "GET, HEAD, OPTIONS"
# The only public route that accepts data.
_WRITE = {"/api/reports": "POST, OPTIONS"}
# They are public because users sign in with them; another origin's page could only misuse them.
_OWN_PAGES = ("/api/session", "/api/auth/", "/signin", "/setup")
_SENT = "accept, content-type, x-request-id, range"
_SHOWN = (
    "X-Request-Id, X-API-Version, Retry-After, Accept-Ranges, Content-Disposition, Content-Length, Content-Range, "
    "ETag, Link, Memento-Datetime, RateLimit, RateLimit-Policy, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset"
)


class CorsOrigins:
    """Responds to CORS preflights and marks responses that pages of another origin may read."""

    def __init__(self, app: ASGIApp, *, allowed: Sequence[str], permissions: PathPermissions) -> None:
        self._app, self._allowed, self._permissions = app, frozenset(allowed), permissions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; without an Origin, add only Vary."""
        if not any(name == b"origin" for name, _ in scope["headers"]):
            await self._app(scope, receive, _marked(send, None))
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        # Only public routes: a page that may read them is neither an administrator nor signed in.
        readable = bool(origin) and origin in self._allowed and self._is_public(scope)
        if origin and scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            answer = _preflight(scope["path"], origin, headers) if readable else None
            await (answer or RefuseAll(OriginRefused()))(scope, receive, send)
        else:
            await self._app(scope, receive, _marked(send, origin if readable else None))

    def _is_public(self, scope: Scope) -> bool:
        path = scope["path"]
        return self._permissions.asked("GET", path) is Permission.READ and not path.startswith(_OWN_PAGES)


def _preflight(path: str, origin: str, headers: Headers) -> Response | None:
    methods = _WRITE.get(path, _READ)
    if headers["access-control-request-method"] not in methods.split(", "):
        return None
    return Response(
        status_code=204,
        headers={
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Allow-Methods": methods,
            "Access-Control-Allow-Headers": _SENT,
            "Access-Control-Max-Age": "600",
            "Vary": "Origin",
        },
    )


_VARY = (b"vary", b"Origin")


def _marked(send: Send, origin: str | None) -> Send:
    async def marked(message: Message) -> None:
        if message["type"] == "http.response.start":
            raw = message.setdefault("headers", [])
            # Set it also without an Origin: a cache must not give a response without the header to a page that may read
            # it.
            raw.append(_VARY)
            if origin is not None:
                headers = MutableHeaders(raw=raw)
                headers["Access-Control-Allow-Origin"] = origin
                headers["Access-Control-Expose-Headers"] = _SHOWN
                # A page that may read the response may also embed it.
                headers["Cross-Origin-Resource-Policy"] = "cross-origin"
        await send(message)

    return marked


class HeadRequests:
    """Responds to HEAD like GET without the body; tries a route's own, cheaper HEAD first."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        refused = False

        async def first(message: Message) -> None:
            nonlocal refused
            refused = refused or (message["type"] == "http.response.start" and message["status"] == 405)
            if not refused:
                await send(_without_zero(message))

        # Copy it each time: routing stores its results in the scope.
        await self._app(dict(scope), receive, first)
        if refused:
            await self._get({**scope, "method": "GET"}, receive, send)

    async def _get(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the request as GET until the headers are there."""
        # Cancel the work: otherwise an export would be generated for minutes and discarded.
        with CancelScope() as asking:

            async def headers_only(message: Message) -> None:
                if message["type"] == "http.response.start":
                    await send(message)
                    await send({"type": "http.response.body", "body": b"", "more_body": False})
                    asking.cancel()

            await self._app(scope, receive, headers_only)


def _without_zero(message: Message) -> Message:
    """Return the message without a Content-Length of 0, which would claim that the body of a GET is empty."""
    # The route did not generate the body: its length is unknown, and 0 would be wrong (RFC 9110, section 8.6).
    if message["type"] != "http.response.start":
        return message
    kept = [pair for pair in message.get("headers", []) if pair != (b"content-length", b"0")]
    return {**message, "headers": kept}
