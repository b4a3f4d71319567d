"""Serves the replay host as the public sees it; a path that begins with a capability also shows one source.

The replay host has no sessions and no cookies: the path alone grants access. Pages of other sites cannot read a
response that a capability opened, and caches do not store it.
"""

from __future__ import annotations

from anyio.to_thread import run_sync
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.api.errors import failed_outside
from holdfast.api.middleware.request_ids import CAPABILITY
from holdfast.api.routes.replay import refuse_expired
from holdfast.config import Settings
from holdfast.errors import HoldfastError
from holdfast.replay.capabilities import ReplayKeys, split_root
from holdfast.withdrawals.viewers import PUBLIC, Viewer, seen_by


class Capabilities:
    """Removes the capability from a path and serves the rest with the access that it grants."""

    def __init__(self, app: ASGIApp, keys: ReplayKeys, settings: Settings) -> None:
        self._app, self._keys, self._settings = app, keys, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; reject invalid or expired capabilities, whatever the path."""
        text, rest = split_root(scope["path"])
        if not text:
            with seen_by(PUBLIC):
                await self._app(scope, receive, send)
            return
        # Read a key that another process created only once, on a thread, because the database may be slow.
        try:
            found = self._keys.read(text) if self._keys.knows(text) else await run_sync(self._keys.read, text)
        except HoldfastError as exc:
            # Without the database, a capability is neither valid nor invalid.
            await failed_outside(exc, scope)(scope, receive, send)
            return
        if found is None:
            await refuse_expired(scope, self._settings, rest)(scope, receive, send)
            return
        raw = scope.get("raw_path")
        inner = {**scope, "path": rest, CAPABILITY: f"/!{text}"}
        if raw is not None:
            inner["raw_path"] = split_root(raw.decode("latin-1"))[1].encode("latin-1")
        is_opaque = Headers(scope=scope).get("origin") == "null"

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": _confined(message.get("headers", []), is_opaque=is_opaque)}
            await send(message)

        with seen_by(Viewer(granted=found[0])):
            await self._app(inner, receive, marked)


_OPEN, _CACHE = b"access-control-allow-origin", b"cache-control"


def _confined(headers: list[tuple[bytes, bytes]], *, is_opaque: bool) -> list[tuple[bytes, bytes]]:
    kept = [pair for pair in headers if pair[0].lower() not in (_OPEN, _CACHE)]
    # A sandboxed archived page may read what scripts of its site may: it has no origin, and sends `null`.
    if is_opaque and any(name.lower() == _OPEN for name, _ in headers):
        kept.append((_OPEN, b"null"))
    return [*kept, (_CACHE, b"private, no-store"), (b"x-robots-tag", b"noindex")]
