"""What lies where: every route is guarded by what its path says, and counted under a word of its own."""

from __future__ import annotations

import pytest
from fastapi.routing import APIRoute

from holdfast.api.middleware.rate_limits import ADMIN_PREFIXES, is_admin_path, kind_of
from holdfast.api.permissions import permission_of
from holdfast.api.routes import REPLAY_ROUTERS, ROUTERS
from holdfast.auth.roles import Permission

_ROUTES = [route for router in (*ROUTERS, *REPLAY_ROUTERS) for route in router.routes if isinstance(route, APIRoute)]
_FOR_PEOPLE = {"/", "/docs", "/openapi.json", "/api/openapi.json", "/style.css", "/{target:path}"}
"""Pages, and what archived scripts ask for from the root of the replay host."""


def test_a_path_is_guarded_if_and_only_if_its_route_wants_the_token() -> None:
    assert len(_ROUTES) > 60
    for route in _ROUTES:
        for method in route.methods or ():
            asks = permission_of(method, route.path)
            assert is_admin_path(route.path) == (asks is not Permission.READ), route.path
    for prefix in ADMIN_PREFIXES:
        assert any(is_admin_path(route.path) and route.path.startswith(prefix) for route in _ROUTES), prefix


def test_every_route_is_counted_under_a_word_of_its_own() -> None:
    assert {route.path for route in _ROUTES if kind_of(route.path) == "other"} == _FOR_PEOPLE


@pytest.mark.parametrize("path", ["/api/pagesets", "/api/v10/jobs", "/metricsfoo", "/api", "/api/administrators"])
def test_a_name_that_only_begins_alike_is_another(path: str) -> None:
    assert not is_admin_path(path)
