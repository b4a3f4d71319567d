"""Counts what was asked for and answered, by path; who asked is not kept."""

from __future__ import annotations

import re

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.feedback.usage import UsageTally, Use

_COUNTED = (
    ("GET", re.compile(r"/api/search"), Use.SEARCH),
    ("GET", re.compile(r"/api/snapshot/[0-9]+"), Use.DETAIL),
    ("GET", re.compile(r"/api/snapshots/raw/[0-9]+"), Use.RAW),
)


def usage_of(method: str, path: str) -> Use | None:
    """Return what a request counts as, None if it is not counted."""
    return next((use for verb, shape, use in _COUNTED if verb == method and shape.fullmatch(path)), None)


class UsageCounts:
    """Counts the requests that were answered well."""

    def __init__(self, app: ASGIApp, tally: UsageTally) -> None:
        self._app, self._tally = app, tally

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and count it once its answer starts."""
        use = usage_of(scope["method"], scope["path"]) if scope["type"] == "http" else None
        if use is None:
            await self._app(scope, receive, send)
            return

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:
                self._tally.count(use)
            await send(message)

        await self._app(scope, receive, counted)
