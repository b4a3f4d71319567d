"""What lies where: every route is guarded by what its path says, and counted under a word of its own."""

from __future__ import annotations

import re

import pytest

from holdfast.api.middleware.rate_limits import kind_of, kinds_of
from holdfast.api.routes import REPLAY_ROUTERS, ROUTERS
from holdfast.api.routing import PathPermissions, RouteTable
from holdfast.auth.roles import Permission
from holdfast.config import ApiSettings, Settings

_ROUTES = [route for router in (*ROUTERS, *REPLAY_ROUTERS) for route in router.routes]
_FOR_PEOPLE = {"/", "/openapi.json", "/api/openapi.json", "/style.css", "/account.css", "/setup.js", "/{target:path}"}
"""Pages, and what archived scripts ask for from the root of the replay host."""


_OWN = RouteTable(route for router in ROUTERS for route in router.routes)
_PERMISSIONS = PathPermissions(_OWN, Settings())


@pytest.mark.parametrize("compare_live", [False, True])
def test_path_permission_equals_that_of_its_route(compare_live: bool) -> None:
    settings = Settings(api=ApiSettings(compare_live=compare_live))
    permissions = PathPermissions(_OWN, settings)
    assert len(_OWN.routes) > 60
    for route in _OWN.routes:
        path = re.sub(r"\{[^}]*\}", "1", route.path)
        # The route that would serve it, which for overlapping paths is an earlier one.
        for method in route.methods or ():
            serving = next(one for one in _OWN.routes if one.path_regex.match(path) and method in (one.methods or ()))
            assert permissions.asked(method, path) is serving.permission_here(settings), (method, path)


def test_a_method_that_no_route_takes_asks_for_what_the_path_does() -> None:
    assert _PERMISSIONS.asked("DELETE", "/api/admin/audit") is Permission.ADMINISTER
    assert _PERMISSIONS.asked("HEAD", "/metrics") is Permission.WATCH


def test_every_route_is_counted_under_a_word_of_its_own() -> None:
    assert {route.path for route in _ROUTES if kind_of(route.path, kinds_of(_ROUTES)) == "other"} == _FOR_PEOPLE


@pytest.mark.parametrize("path", ["/api/pagesets", "/api/v10/jobs", "/metricsfoo", "/api", "/api/administrators"])
def test_a_name_that_only_begins_alike_is_another(path: str) -> None:
    assert _PERMISSIONS.asked("GET", path) is None
