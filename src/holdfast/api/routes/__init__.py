"""One table of all routers: what the application's host answers, and what the replay host answers.

A file of routes holds `router = LateRouter(tags=[…])` and plain `def` functions with a row each in
`api/permissions.py`; they take `SessionDep` and `ArchiveDep`, raise our errors, and say which:
`@router.get(…, responses=answers(404, 422))`. It is loaded by the first request to one of them.
"""

from __future__ import annotations

from typing import Final

from holdfast.api.listed_routes import ListedRouter
from holdfast.api.permissions import ROUTES

_LISTED: Final = {where: ListedRouter(__name__, where, rows) for where, rows in ROUTES.items()}
_RENDERER, _ASTRAY = "renderer.router", "replay.stray_router"

ROUTERS: tuple[ListedRouter, ...] = tuple(
    router for where, router in _LISTED.items() if where not in (_RENDERER, _ASTRAY)
)
"""The application's host."""

REPLAY_ROUTERS: tuple[ListedRouter, ...] = tuple(
    _LISTED[where] for where in ("replay.raw_router", "replay.cdx_router", "replay.router", _RENDERER, _ASTRAY)
)
"""The replay host: only what is public, archived pages included."""
