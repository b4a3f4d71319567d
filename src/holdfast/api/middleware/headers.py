"""The headers that guard a reader: strict on the application's host, sandboxed on the host of archived pages."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_COMMON = {
    "X-Content-Type-Options": "nosniff",
    "Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
}
_APP = {
    **_COMMON,
    "Referrer-Policy": "strict-origin-when-cross-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_REPLAY = {**_COMMON, "Referrer-Policy": "same-origin", "Cross-Origin-Resource-Policy": "cross-origin"}
_HSTS = "max-age=31536000; includeSubDomains"
DATA_POLICY = "default-src 'none'; frame-ancestors 'none'"
PAGE_POLICY = (
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "script-src 'self'; style-src 'self'"
)
CLOSED_POLICY = "sandbox; default-src 'none'"
"""For an answer of the replay host that chose no policy: it can do nothing."""


class AppHeaders:
    """Adds what 1.7 of the facts and S04 ask of the application's own answers.

    An answer with a policy of its own (the raw view, which is sandboxed) keeps it, and may be framed.
    """

    def __init__(self, app: ASGIApp, *, hsts: bool) -> None:
        self._app, self._hsts = app, hsts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and dress its answer."""

        async def dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message.setdefault("headers", []))
                _defaults(headers, _APP)
                if "content-security-policy" not in headers:
                    html = headers.get("content-type", "").startswith("text/html")
                    headers["Content-Security-Policy"] = PAGE_POLICY if html else DATA_POLICY
                    headers["X-Frame-Options"] = "SAMEORIGIN"
                    headers["Cross-Origin-Opener-Policy"] = "same-origin"
                if self._hsts:
                    headers["Strict-Transport-Security"] = _HSTS
            await send(message)

        await self._app(scope, receive, dressed)


class ReplayHeaders:
    """Keeps the replay host without authority: cookies and tokens never reach it, cookies never leave it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on without its credentials, and dress its answer."""
        refused = (b"cookie", b"authorization", b"x-admin-token")
        bare = {**scope, "headers": [(name, value) for name, value in scope["headers"] if name not in refused]}

        async def dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message.setdefault("headers", []))
                _defaults(headers, _REPLAY)
                headers.setdefault("Content-Security-Policy", CLOSED_POLICY)
                for name in ("set-cookie", "clear-site-data", "service-worker-allowed"):
                    if name in headers:
                        del headers[name]
            await send(message)

        await self._app(bare, receive, dressed)


def _defaults(headers: MutableHeaders, wanted: dict[str, str]) -> None:
    for name, value in wanted.items():
        headers.setdefault(name, value)
