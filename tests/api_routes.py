"""All routes of the API with what each of them needs, for tests of permissions."""

from __future__ import annotations

from holdfast.api.routes import REPLAY_ROUTERS, ROUTERS

ROUTES = [route for router in ROUTERS for route in router.routes]
REPLAY_ROUTES = [route for router in REPLAY_ROUTERS for route in router.routes]
PERMISSIONS = {
    f"{method} {route.path}": route.permission for route in (*ROUTES, *REPLAY_ROUTES) for method in route.methods
}
"""The permission of each route, by `METHOD /path`."""
SEEDING = {f"{method} {route.path}" for route in ROUTES for method in route.methods if route.is_seeding}
"""The routes that add URLs to a frontier."""
