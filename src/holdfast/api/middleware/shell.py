"""The outermost layer: an id for every request, a line in the log, and the last resort when something breaks."""

from __future__ import annotations

import re
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders, State
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast import log
from holdfast.api.errors import broken
from holdfast.api.middleware.areas import kind_of
from holdfast.clock import Clock

_log = log.get()
_SAFE_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
API_VERSION = "1"


class Shell:
    """Gives each request its id (a safe one of the caller's is kept), logs it, and answers 500 for what was missed."""

    def __init__(self, app: ASGIApp, clock: Clock, state: State) -> None:
        self._app, self._clock = app, clock
        self.state = state
        """What the application holds: metrics, totals, usage counts."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; an exception below is logged here and nowhere else."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if _SAFE_ID.fullmatch(given) else str(uuid4())
        scope["holdfast_request_id"] = request_id
        began, status = self._clock.monotonic(), 0

        async def named(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(raw=message.setdefault("headers", []))
                headers["X-Request-Id"], headers["X-API-Version"] = request_id, API_VERSION
            await send(message)

        try:
            await self._app(scope, receive, named)
        except Exception:
            _log.exception("api.broke", path=scope["path"], request_id=request_id)
            if not status:
                await broken(scope["path"], request_id)(scope, receive, named)
        seconds = self._clock.monotonic() - began
        self.state.metrics.answered(kind_of(scope["path"]), status, seconds)
        _log.info("api.request", method=scope["method"], path=scope["path"], status=status,
                  ms=round(seconds * 1000, 1), request_id=request_id)  # fmt: skip
