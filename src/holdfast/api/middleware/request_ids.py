"""The outermost layer: assigns an id to every request, logs it, and handles errors that nothing else caught."""

from __future__ import annotations

import re
from os import urandom

from starlette.datastructures import State
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast import log
from holdfast.api.errors import broken
from holdfast.api.middleware.rate_limits import kind_of
from holdfast.api.routing import principal_of
from holdfast.clock import Clock
from holdfast.feedback import UsageTally, Use
from holdfast.replay.capabilities import without_capability

_log = log.get()
IS_STREAM = "is_stream"
"""Key in a request's state: set by live streams."""
FOR_MEMBERS = "is_for_members"
"""Key in a request's state: set by a route whose response is not public."""
CAPABILITY = "holdfast_capability"
"""Key in a request's scope: the prefix removed from its path, `/!` and the capability."""
_SAFE_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
_VERSION = (b"x-api-version", b"1")
_NAMED = frozenset((b"x-request-id", b"x-api-version"))


def _new_id() -> str:
    # The same as `uuid4`, without the object.
    digits = urandom(16).hex()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


def name_request(scope: Scope) -> str:
    """Return a request's id: the one already assigned, the caller's, or a new one."""
    known = scope.get("holdfast_request_id")
    if known is not None:
        return str(known)
    given = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"x-request-id"), "")
    # It is written into headers and logs, where a line break or an escape would forge lines.
    request_id = given if _SAFE_ID.fullmatch(given) else _new_id()
    scope["holdfast_request_id"] = request_id
    return request_id


class RequestIds:
    """Assigns an id to each request (the caller's if it is safe), logs it, and responds 500 to uncaught errors."""

    def __init__(self, app: ASGIApp, clock: Clock, state: State, kinds: frozenset[str] = frozenset()) -> None:
        """Wrap `app`; `kinds` are the kinds of routes by which metrics are grouped."""
        self._app, self._clock, self._kinds = app, clock, kinds
        self.state = state
        """What the application holds: metrics, totals, usage counts."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; an exception below is logged here and nowhere else."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = name_request(scope)
        began, status = self._clock.monotonic(), 0

        async def named(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                # Set both with one list: setting each separately would scan all headers twice.
                kept = [pair for pair in message.get("headers", ()) if pair[0] not in _NAMED]
                message["headers"] = [*kept, (b"x-request-id", request_id.encode()), _VERSION]
            await send(message)

        try:
            await self._app(scope, receive, named)
        except Exception:
            _log.exception("api.broke", path=without_capability(scope["path"]), request_id=request_id)
            # Once headers are out, the connection is cut: the client sees that the body is not whole.
            if not status:
                await broken(scope["path"], request_id)(scope, receive, named)
        seconds = self._clock.monotonic() - began
        path = without_capability(scope["path"])
        # A stream lasts as long as its client wants: its duration says nothing about response times.
        if not scope.get("state", {}).get(IS_STREAM):
            self.state.metrics.answered(kind_of(path, self._kinds), status, seconds)
        if status == 429:
            self.state.metrics.refused(principal_of(scope).role.value)
        _log.info(
            "api.request",
            method=scope["method"],
            path=path,
            status=status,
            ms=round(seconds * 1000, 1),
            request_id=request_id,
        )


_COUNTED = (
    ("GET", re.compile(r"/api/search"), Use.SEARCH),
    ("GET", re.compile(r"/api/snapshot/[0-9]+"), Use.DETAIL),
    ("GET", re.compile(r"/api/snapshots/[0-9]+/view"), Use.DETAIL),
    ("GET", re.compile(r"/api/snapshots/raw/[0-9]+"), Use.RAW),
)


def usage_of(method: str, path: str) -> Use | None:
    """Return the usage category of a request, None if it is not counted."""
    return next((use for verb, shape, use in _COUNTED if verb == method and shape.fullmatch(path)), None)


class UsageCounts:
    """Counts successful requests, except for members-only captures, because the counts are public."""

    def __init__(self, app: ASGIApp, tally: UsageTally) -> None:
        self._app, self._tally = app, tally

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        use = usage_of(scope["method"], scope["path"])
        if use is None:
            await self._app(scope, receive, send)
            return

        async def counted(message: Message) -> None:
            is_good = message["type"] == "http.response.start" and message["status"] < 400
            if is_good and not scope.get("state", {}).get(FOR_MEMBERS):
                self._tally.count(use)
            await send(message)

        await self._app(scope, receive, counted)
