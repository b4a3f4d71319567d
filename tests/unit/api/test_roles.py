"""Every route says whom it is for, and the door keeps to it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pytest
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from holdfast.api import routes
from holdfast.api.dependencies import open_session, open_write
from holdfast.api.routes import REPLAY_ROUTERS, ROUTERS
from holdfast.api.routing import LazyRouter
from holdfast.auth.roles import Permission
from holdfast.wiring.archive import Archive
from tests.api_routes import PERMISSIONS, REPLAY_ROUTES, ROUTES
from tests.client import Client, asking
from tests.unit.api.conftest import MakeArchive, MakeClient

_TOKEN = "a token of sixteen or more"


def _filled(path: str) -> str:
    return path.replace("{id}", "1").replace("{source}", "x").replace("{year}", "2026").replace("{code}", "x")


def _method(route: APIRoute) -> str:
    return sorted(route.methods or {"GET"})[0]


_ADMIN = [route for route in ROUTES if route.permission is not Permission.READ]


def test_permissions_of_all_routes_are_the_listed_ones() -> None:
    listed = Path(__file__).with_name("permissions.txt").read_text("utf-8").splitlines()

    assert sorted(f"{permission.value:<11} {row}" for row, permission in PERMISSIONS.items()) == listed


def test_head_needs_the_permission_of_get() -> None:
    heads = {row.removeprefix("HEAD "): asked for row, asked in PERMISSIONS.items() if row.startswith("HEAD ")}

    assert {path: PERMISSIONS[f"GET {path}"] for path in heads} == heads


def test_every_router_of_every_file_is_served() -> None:
    found = [
        value
        for file in iter_modules(routes.__path__)
        for value in vars(import_module(f"{routes.__name__}.{file.name}")).values()
        if isinstance(value, LazyRouter)
    ]

    assert {id(router) for router in found} == {id(router) for router in (*ROUTERS, *REPLAY_ROUTERS)}


def test_no_route_holds_a_session_while_it_waits_for_its_turn_to_write() -> None:
    def asked(dependant: Dependant) -> set[object]:
        return {dependant.call}.union(*(asked(one) for one in dependant.dependencies))

    found = [(route.path, asked(route.dependant)) for route in ROUTES]

    # There are five of them: as many changes that wait would keep every reader waiting, for ten seconds.
    assert [path for path, calls in found if {open_session, open_write} <= calls] == []
    assert sum(open_write in calls for _, calls in found) > 20


def test_the_replay_host_has_public_routes_alone() -> None:
    asked = {route.permission for route in REPLAY_ROUTES for method in route.methods or ()}

    assert asked == {Permission.READ}


def test_what_changes_something_is_public_only_where_a_reader_reports_or_signs_in() -> None:
    public = {
        (method, route.path)
        for route in ROUTES
        for method in route.methods or ()
        if method not in ("GET", "HEAD", "OPTIONS") and route.permission is Permission.READ
    }

    assert {path for _, path in public} <= {
        *("/api/reports", "/report", "/api/session", "/api/auth/login", "/signin", "/setup"),
        # A captured request is looked up by its body; the tools for assistants only read.
        *("/web/{target:path}", "/mcp"),
    }
    assert PERMISSIONS["GET /metrics"] is Permission.WATCH


def test_admin_routes_are_shut_without_the_token_and_with_a_wrong_one(make_client: MakeClient) -> None:
    client = make_client(admin_token=_TOKEN, rate_limiting=False)
    tries = [{}, {"authorization": "Bearer "}, {"authorization": f"Bearer {_TOKEN[:-1]}"}, {"x-admin-token": "null"},
             {"authorization": f"Basic {_TOKEN}"}, {"x-admin-token": f"{_TOKEN}x"}]  # fmt: skip

    for route in _ADMIN:
        refused = [client.request(_method(route), _filled(route.path), headers=headers) for headers in tries]
        assert {answer.status_code for answer in refused} == {401}, route.path
        assert {answer.headers["www-authenticate"] for answer in refused} == {'Bearer realm="holdfast"'}
        if _method(route) != "HEAD":  # which has no body
            assert [answer.json()["code"] for answer in refused] == ["unauthenticated", *["credential_wrong"] * 5]
            assert refused[0].json()["error"] == "Authentication required"


def test_admin_routes_open_with_the_token_in_either_header(make_client: MakeClient) -> None:
    client = make_client(admin_token=_TOKEN, rate_limiting=False)

    for route in _ADMIN:
        for headers in ({"authorization": f"Bearer {_TOKEN}"}, {"x-admin-token": _TOKEN}):
            answer = client.request(_method(route), _filled(route.path), headers=headers)
            assert answer.status_code not in (401, 403), route.path


@pytest.mark.parametrize("environment", ["production", "staging", "Production", "prod", "live"])
def test_a_strict_environment_without_a_token_lets_nobody_in(make_client: MakeClient, environment: str) -> None:
    answer = make_client(environment=environment).get("/metrics", headers={"x-admin-token": ""})

    assert answer.status_code == 500
    assert answer.json()["error"] == answer.json()["detail"] == "Admin token not configured for this environment"


@pytest.mark.parametrize(
    "api", [{}, {"host": "localhost"}, {"admin_token": _TOKEN}, {"site_url": "http://localhost:8060"},
            {"allowed_hosts": ("archive.example",)}, {"trusted_proxies": ("127.0.0.1",)}],
)  # fmt: skip
@pytest.mark.parametrize("host", ["127.0.0.1:8060", "localhost", "[::1]:8060"])
def test_request_without_credential_is_anonymous_on_loopback(
    make_archive: MakeArchive, api: dict[str, Any], host: str
) -> None:
    with asking(make_archive(rate_limiting=False, **api), as_admin=False) as client:
        refused = [client.request(_method(route), _filled(route.path), headers={"host": host}) for route in _ADMIN]
        session = client.get("/api/session", headers={"host": host}).json()

    assert {answer.status_code for answer in refused} == {401}
    assert (session["authenticated"], session["way"]) == (False, "anonymous")


@pytest.mark.parametrize("headers", [{"x-admin-token": "guess"}, {"authorization": "Bearer guess"}])
def test_admin_token_is_wrong_when_the_server_has_none(make_archive: MakeArchive, headers: dict[str, str]) -> None:
    with asking(make_archive(), as_admin=False) as client:
        refused = client.get("/metrics", headers=headers)
        empty = client.get("/metrics", headers={"x-admin-token": ""})

    assert (refused.status_code, refused.json()["code"]) == (401, "credential_wrong")
    assert "HOLDFAST_API_ADMIN_TOKEN" in refused.json()["detail"]
    assert empty.json()["code"] == "unauthenticated", "an empty header shows no credential"


def test_a_public_route_asks_nobody_who_they_are(make_client: MakeClient) -> None:
    client = make_client(admin_token=_TOKEN, rate_limiting=False)
    public = [
        route
        for route in ROUTES
        if route.permission is Permission.READ
        # Which say so of a name without its password.
        and (_method(route), route.path) not in (("POST", "/signin"), ("POST", "/setup"))
    ]

    shut = [
        route.path for route in public if client.request(_method(route), _filled(route.path)).status_code in (401, 403)
    ]

    assert shut == []


def test_no_reading_changes_anything(shared: tuple[Archive, Client]) -> None:
    archive, client = shared
    reading = [route for route in ROUTES if "GET" in (route.methods or ())]
    with closing(sqlite3.connect(archive.home / "holdfast.db")) as watcher:
        before = watcher.execute("PRAGMA data_version").fetchone()
        for route in reading:
            client.get(_filled(route.path))
        after = watcher.execute("PRAGMA data_version").fetchone()

    assert len(reading) > 20
    assert before == after


def test_route_without_a_permission_fails_when_it_is_declared() -> None:
    declare: Any = LazyRouter().get

    with pytest.raises(TypeError, match="permission"):
        declare("/forgotten")
