"""Serves the browser application before authentication, since its bytes are the same for everyone.

An expired session must not block the page that says so, and a file needs neither a database read nor a share of
the address's rate limit.
"""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.api.middleware.headers import OWN_PAGE, web_policy
from holdfast.api.web_files import WebFile, WebFiles, first_word
from holdfast.config import Settings
from holdfast.replay.origins import origins_of

_FIXED = b"public, max-age=31536000, immutable"
# Browsers revalidate it each time, usually with 304: yesterday's page would request files that today's build does not
# have.
_CHANGING = b"no-cache"
_JSON = "application/json"


class WebPages:
    """Serves the application's pages and files, and passes everything else on."""

    def __init__(self, app: ASGIApp, files: WebFiles, settings: Settings) -> None:
        self._app, self._files, self._settings = app, files, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_read = scope["method"] in ("GET", "HEAD")
        found = self._files.find(scope["path"]) if is_read else None
        if found is None:
            is_page = is_read and _wants_a_page(scope)
            await self._app(scope, receive, self._with_a_page(scope, send) if is_page else send)
            return
        status, fields, body = self._answer(found, scope)
        if scope["method"] == "HEAD":
            body = b""
        await send({"type": "http.response.start", "status": status, "headers": fields})
        await send({"type": "http.response.body", "body": body})

    def _with_a_page(self, scope: Scope, send: Send) -> Send:
        """Return a `send` that shows the application instead of a plain 404, so that a person gets a helpful page."""
        is_missing = False

        async def shown(message: Message) -> None:
            nonlocal is_missing
            if message["type"] != "http.response.start":
                if not is_missing:
                    await send(message)
                return
            is_missing = message["status"] == 404 and Headers(raw=message["headers"]).get("content-type") == _JSON
            if not is_missing:
                await send(message)
                return
            # A missing page must get 404, not 304.
            asked = [(name, value) for name, value in scope["headers"] if name != b"if-none-match"]
            _, fields, body = self._answer(self._files.page, {**scope, "headers": asked})
            await send({"type": "http.response.start", "status": 404, "headers": fields})
            await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

        return shown

    def _policy(self, scope: Scope, asked: Headers) -> tuple[bytes, bytes]:
        # Use the requested host, like `frameUrl`: no setting has a port that a container or a proxy maps.
        origins = origins_of(
            scope["scheme"],
            asked.get("host", ""),
            replay_origin=self._settings.replay.origin,
            site_url=self._settings.api.site_url,
        )
        return b"content-security-policy", web_policy(origins.origin).encode()

    def _answer(self, found: WebFile, scope: Scope) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        asked = Headers(scope=scope)
        fields = [
            (b"cache-control", _FIXED if found.is_fixed else _CHANGING),
            (b"etag", found.etag.encode()),
            (b"vary", b"accept-encoding"),
        ]
        if found.is_page:
            fields += [self._policy(scope, asked), *OWN_PAGE]
        if found.etag in (one.strip() for one in asked.get("if-none-match", "").split(",")):
            return 304, fields, b""
        coding, body = found.choose(asked.get("accept-encoding", ""))
        if coding != "identity":
            fields.append((b"content-encoding", coding.encode()))
        fields += [(b"content-type", found.media_type.encode()), (b"content-length", b"%d" % len(body))]
        return 200, fields, body


def _wants_a_page(scope: Scope) -> bool:
    """Return whether a person opened the URL in a browser; never below /api, which has only data."""
    return first_word(scope["path"]) != "api" and "text/html" in Headers(scope=scope).get("accept", "")
