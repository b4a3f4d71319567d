"""Decides from a request's Origin whether one of our own pages sent it."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Scope

from holdfast.api.errors import OriginRefused
from holdfast.config import Settings


def demand_own_origin(request: Request, *, is_required: bool = False) -> None:
    """Raise OriginRefused if a page of another origin sent the request, or, if required, none of our own did."""
    origin = request.headers.get("origin")
    if is_required if origin is None else not is_own_origin(origin, request.scope, request.app.state.archive.settings):
        raise OriginRefused


def is_own_origin(origin: str, scope: Scope, settings: Settings) -> bool:
    """Return whether a page of this host sent a request. `null` is rejected: sandboxed archived pages send it."""
    # Accept the configured one, too: a TLS proxy may forward neither the scheme nor the Host that a browser used.
    host = Headers(scope=scope).get("host")
    return origin in (f"{scope.get('scheme', 'http')}://{host}", settings.site_origin)
