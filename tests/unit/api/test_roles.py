"""Every route says whom it is for, and the door keeps to it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import pytest
from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.datastructures import Headers

from holdfast.api.admin_token import has_owner, is_owner
from holdfast.api.permissions import PERMISSIONS, demand_permissions, permission_of
from holdfast.api.routes import REPLAY_ROUTERS, ROUTERS
from holdfast.auth.roles import Permission
from holdfast.config import Settings
from holdfast.wiring.archive import Archive
from tests.client import Client
from tests.unit.api.conftest import MakeClient

_TOKEN = "a token of sixteen or more"
_ROUTES = [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]
_OF_PROXIES = ("x-real-ip", "cf-connecting-ip", "cf-ray", "true-client-ip", "x-client-ip", "fastly-client-ip",
               "x-cluster-client-ip", "fly-client-ip", "x-azure-clientip", "cloudfront-viewer-address", "client-ip",
               "x-appengine-user-ip", "x-original-forwarded-for", "x-envoy-external-address", "cdn-loop",
               "x-nf-client-connection-ip", "do-connecting-ip", "x-amzn-trace-id", "tailscale-user-login",
               "x-forwarded-port", "X-Forwarded-Server")  # fmt: skip
"""Headers by which proxies, load balancers, CDNs and tunnels say for whom they ask."""
_REPLAY_ROUTES = [route for router in REPLAY_ROUTERS for route in router.routes if isinstance(route, APIRoute)]


def _filled(path: str) -> str:
    return path.replace("{id}", "1").replace("{source}", "x").replace("{year}", "2026").replace("{code}", "x")


def _method(route: APIRoute) -> str:
    return sorted(route.methods or {"GET"})[0]


_ADMIN = [route for route in _ROUTES if permission_of(_method(route), route.path) is not Permission.READ]


def test_every_route_has_a_row_and_every_row_a_route() -> None:
    declared = {(method, route.path) for route in _ROUTES + _REPLAY_ROUTES for method in route.methods or ()}
    rows = {f"{method} {path}" for method, path in declared} | {f"ANY {path}" for _, path in declared}

    assert len(_ROUTES) > 12
    for method, path in declared:
        permission_of(method, path)
    assert set(PERMISSIONS) <= rows


def test_the_replay_host_has_public_routes_alone() -> None:
    asked = {permission_of(method, route.path) for route in _REPLAY_ROUTES for method in route.methods or ()}

    assert asked == {Permission.READ}


def test_what_changes_something_is_public_only_where_a_reader_reports_or_signs_in() -> None:
    public = {
        (method, route.path)
        for route in _ROUTES
        for method in route.methods or ()
        if method not in ("GET", "HEAD", "OPTIONS") and permission_of(method, route.path) is Permission.READ
    }

    assert {path for _, path in public} <= {
        *("/api/reports", "/report", "/api/session", "/api/auth/login", "/signin", "/setup"),
        # A captured request is looked up by its body; the tools for assistants only read.
        *("/web/{target:path}", "/mcp"),
    }
    assert permission_of("GET", "/metrics") is Permission.WATCH


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


def test_without_a_token_a_loopback_server_is_open_to_its_owner(client: Client) -> None:
    assert client.get("/metrics").status_code == 200


@pytest.mark.parametrize(
    ("host", "peer", "headers"),
    [("archive.example", "127.0.0.1", {}), ("127.0.0.1:8060", "203.0.113.7", {}), ("localhost", "10.0.0.2", {}),
     ("localhost", "junk", {}), ("localhost", "127.0.0.1", {"x-forwarded-for": "203.0.113.7"}),
     ("localhost", "127.0.0.1", {"forwarded": "for=203.0.113.7"}), ("localhost", "127.0.0.1", {"via": "1.1 proxy"}),
     *(("localhost", "127.0.0.1", {name: "203.0.113.7"}) for name in _OF_PROXIES)],
)  # fmt: skip
def test_without_a_token_nobody_else_is_let_in(
    make_client: MakeClient, host: str, peer: str, headers: dict[str, str]
) -> None:
    # As a host of the bind address it is answered, so that the role decides and not the list of hosts.
    client = make_client(peer=peer, host=host if host == "archive.example" else "127.0.0.1", rate_limiting=False)

    assert client.get("/metrics", headers={"host": host, **headers}).status_code == 401
    assert client.get("/api/stats", headers={"host": host, **headers}).status_code == 200


@pytest.mark.parametrize("headers", [{"x-admin-token": "guess"}, {"authorization": "Bearer guess"}])
def test_a_token_that_is_shown_to_a_server_without_one_is_wrong(client: Client, headers: dict[str, str]) -> None:
    refused = client.get("/metrics", headers=headers)

    assert (refused.status_code, refused.json()["code"]) == (401, "credential_wrong")
    assert "HOLDFAST_API_ADMIN_TOKEN" in refused.json()["detail"]
    assert client.get("/metrics", headers={"x-admin-token": ""}).status_code == 200, "an empty one is none"


@pytest.mark.parametrize("name", ["user-agent", "accept-language", "sec-ch-ua", "x-request-id", "if-modified-since"])
def test_what_browsers_and_tools_send_is_no_sign_of_a_proxy(client: Client, name: str) -> None:
    assert client.get("/metrics", headers={name: "anything"}).status_code == 200


@pytest.mark.parametrize(
    "api", [{"allowed_hosts": ("archive.example",)}, {"site_url": "https://archive.example"},
            {"trusted_proxies": ("127.0.0.1",)}, {"replay_origin": "https://replay.example"}],
)  # fmt: skip
def test_without_a_token_a_server_behind_a_proxy_lets_nobody_in(make_client: MakeClient, api: dict[str, Any]) -> None:
    assert make_client(**api).get("/metrics").status_code == 401


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8060", "localhost:8060", "[::1]", "[::1]:8060"])
def test_without_a_token_every_name_of_this_machine_lets_its_user_in(client: Client, host: str) -> None:
    assert client.get("/metrics", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(("version", "is_let_in"), [("1.0", False), ("1.1", True)])
def test_without_a_token_a_proxy_that_speaks_http_1_0_is_not_the_owner(version: str, is_let_in: bool) -> None:
    scope = {
        "type": "http",
        "http_version": version,
        "client": ("127.0.0.1", 40_000),
        "headers": [(b"host", b"127.0.0.1:8060")],
    }

    assert has_owner(Settings())
    assert is_owner(scope, Headers(scope=scope)) is is_let_in


def test_a_public_route_asks_nobody_who_they_are(make_client: MakeClient) -> None:
    client = make_client(admin_token=_TOKEN, rate_limiting=False)
    public = [
        route
        for route in _ROUTES
        if permission_of(_method(route), route.path) is Permission.READ
        # Which say so of a name without its password.
        and (_method(route), route.path) not in (("POST", "/signin"), ("POST", "/setup"))
    ]

    shut = [
        route.path for route in public if client.request(_method(route), _filled(route.path)).status_code in (401, 403)
    ]

    assert shut == []


def test_no_reading_changes_anything(shared: tuple[Archive, Client]) -> None:
    archive, client = shared
    reading = [route for route in _ROUTES if "GET" in (route.methods or ())]
    with closing(sqlite3.connect(archive.home / "holdfast.db")) as watcher:
        before = watcher.execute("PRAGMA data_version").fetchone()
        for route in reading:
            client.get(_filled(route.path))
        after = watcher.execute("PRAGMA data_version").fetchone()

    assert len(reading) > 20
    assert before == after


def test_a_route_that_stands_in_no_row_is_refused() -> None:
    forgotten, other = APIRouter(), APIRouter()
    forgotten.add_api_route("/forgotten", lambda: None)
    other.add_api_route("/api/search", lambda: None, methods=["POST"])

    for router in (forgotten, other):
        with pytest.raises(RuntimeError, match="no row"):
            demand_permissions(router.routes)
