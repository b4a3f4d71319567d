"""Which pages are ours: what a browser says in Origin about the page that sent a request."""

from __future__ import annotations

from starlette.datastructures import Headers

from holdfast.config import Settings


def is_own_origin(origin: str, headers: Headers, settings: Settings) -> bool:
    """Return whether a page of this host sent a request; `null` never is: an archived page in its sandbox sends it."""
    # The configured one, too: a proxy may forward another Host than the browser asked for.
    return origin.partition("://")[2] == headers.get("host") or origin == settings.site_origin
