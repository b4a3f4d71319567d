"""The outermost layer: an id for every request, a line in the log, and the last resort when something breaks."""

from __future__ import annotations

import re
from os import urandom

from starlette.datastructures import State
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast import log
from holdfast.api.errors import broken
from holdfast.api.middleware.rate_limits import kind_of
from holdfast.api.permissions import principal_of
from holdfast.clock import Clock
from holdfast.feedback import UsageTally, Use
from holdfast.replay.capabilities import without_capability

_log = log.get()
IS_STREAM = "is_stream"
"""Where a live stream says in the state of its request that it is one."""
FOR_MEMBERS = "is_for_members"
"""Where a route says in the state of its request that it shows what not everybody may see."""
CAPABILITY = "holdfast_capability"
"""Where a request's scope has what its paths begin with: `/!` and the capability that was taken off."""
_SAFE_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
_VERSION = (b"x-api-version", b"1")
_NAMED = frozenset((b"x-request-id", b"x-api-version"))


def _new_id() -> str:
    """Return a random UUID in words."""
    # As `uuid4` would, without the object.
    digits = urandom(16).hex()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


def name_request(scope: Scope) -> str:
    """Return the id of a request: the one that it has here, the caller's, or a new one."""
    known = scope.get("holdfast_request_id")
    if known is not None:
        return str(known)
    given = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"x-request-id"), "")
    # It goes into headers and logs: one with a line break or an escape would forge lines.
    request_id = given if _SAFE_ID.fullmatch(given) else _new_id()
    scope["holdfast_request_id"] = request_id
    return request_id


class RequestIds:
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
        request_id = name_request(scope)
        began, status = self._clock.monotonic(), 0

        async def named(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                # One list for both: setting them one after the other looks through all headers twice.
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
        # A stream lasts for as long as its client likes: an hour of it says nothing about how quick answers are.
        if not scope.get("state", {}).get(IS_STREAM):
            self.state.metrics.answered(kind_of(path), status, seconds)
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
    """Return what a request counts as, None if it is not counted."""
    return next((use for verb, shape, use in _COUNTED if verb == method and shape.fullmatch(path)), None)


class UsageCounts:
    """Counts the requests that were answered well; not those for members' captures, for everybody reads the counts."""

    def __init__(self, app: ASGIApp, tally: UsageTally) -> None:
        self._app, self._tally = app, tally

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and count it once its answer starts."""
        use = usage_of(scope["method"], scope["path"]) if scope["type"] == "http" else None
        if use is None:
            await self._app(scope, receive, send)
            return

        async def counted(message: Message) -> None:
            is_good = message["type"] == "http.response.start" and message["status"] < 400
            if is_good and not scope.get("state", {}).get(FOR_MEMBERS):
                self._tally.count(use)
            await send(message)

        await self._app(scope, receive, counted)
