"""`holdfast mcp --http`: the application with only `/mcp`, for requests with a token; wrong tokens are counted."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.api.app import application as whole_application
from holdfast.api.errors import TooManyRequests, response_to
from holdfast.api.middleware.host_routing import RefuseAll
from holdfast.api.middleware.rate_limits import Rates, Tier, address_of
from holdfast.api.middleware.request_ids import name_request
from holdfast.auth.errors import Unauthenticated
from holdfast.clock import Clock, SystemClock
from holdfast.errors import NotFound

GUESSES_PER_MINUTE = 10
_OPEN = frozenset({"/api/health", "/health"})
_TOOLS = "/mcp"
_MISSING = "show an API token, or the admin token, as Authorization: Bearer; this server answers nobody else"


class TokenGate:
    """Admits requests to `/mcp` that have a token, and rejects an address that sent too many wrong tokens."""

    def __init__(self, app: ASGIApp, clock: Clock, *, per_minute: int = GUESSES_PER_MINUTE) -> None:
        self._app, self._rates, self._tier = app, Rates(clock), Tier("guesses", per_minute)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in _OPEN:
            await self._app(scope, receive, send)
            return
        request_id = name_request(scope)
        if scope["path"] != _TOOLS:
            refusal = NotFound("only /mcp is served here; the whole API is: holdfast api")
            await RefuseAll(refusal)(scope, receive, send)
            return
        address = address_of(scope)
        # Check this before the token: a client that guesses must not learn anything, not even that a token was valid.
        if not self._rates.has_room(self._tier, address):
            await RefuseAll(TooManyRequests(self._tier.per_minute, 60))(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if "authorization" not in headers and "x-admin-token" not in headers:
            answer = response_to(Unauthenticated(_MISSING), path=_TOOLS, request_id=request_id)
            answer.status_code, answer.headers["WWW-Authenticate"] = 401, "Bearer"
            await answer(scope, receive, send)
            return

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] in (401, 403):
                self._rates.count(self._tier, address)
            await send(message)

        await self._app(scope, receive, counted)


def application() -> ASGIApp:
    return TokenGate(whole_application(tools_only=True), SystemClock())
