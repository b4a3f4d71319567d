"""Routes are declared at once and read when they are asked for."""

from __future__ import annotations

from fastapi import FastAPI
from pydantic import BaseModel
from starlette.responses import Response

from holdfast.api.middleware.headers import HeadRequests
from holdfast.api.routes import REPLAY_ROUTERS, ROUTERS
from holdfast.api.routing import LazyRoute, LazyRouter, RouteTable
from holdfast.auth.roles import Permission
from tests.client import Client


class Leaf(BaseModel):
    """An answer."""

    size: int


def _application(router: LazyRouter) -> tuple[FastAPI, dict[str, LazyRoute]]:
    app = FastAPI(openapi_url=None)
    app.router.routes.extend(router.routes)
    app.router.middleware_stack = RouteTable(router.routes).in_front_of(app.router.app)
    return app, {route.name: route for route in router.routes}


def _leaves() -> LazyRouter:
    router = LazyRouter(prefix="/leaves", tags=["leaves"])

    @router.get("/largest", Permission.READ)
    def largest_leaf() -> Leaf:
        return Leaf(size=9)

    @router.get("/{size}", Permission.READ)
    def leaf(size: int, wide: bool = False) -> Leaf:
        return Leaf(size=size * (2 if wide else 1))

    @router.post("/{size}", Permission.READ, status_code=201)
    def grow_leaf(size: int, leaf: Leaf) -> Leaf:
        return Leaf(size=size + leaf.size)

    return router


def test_a_route_is_built_by_the_first_request_to_it_and_by_no_other() -> None:
    app, routes = _application(_leaves())
    client = Client(app)

    assert not any(route.is_built for route in routes.values())
    assert client.get("/leaves/3?wide=true").json() == {"size": 6}
    assert client.get("/leaves/x").status_code == 422
    assert {name for name, route in routes.items() if route.is_built} == {"leaf"}
    assert client.post("/leaves/3", json={"size": 4}).status_code == 201
    client.close()


def test_the_first_route_that_fits_answers_and_other_methods_are_refused_without_building() -> None:
    app, routes = _application(_leaves())
    client = Client(app)

    assert client.get("/leaves/largest").json() == {"size": 9}
    assert client.request("PUT", "/leaves/3").status_code == 405
    assert [client.get(path).status_code for path in ("/leaves", "/leaves/3/4", "/", "/other/3")] == [404] * 4
    assert {name for name, route in routes.items() if route.is_built} == {"largest_leaf"}
    client.close()


def test_head_is_answered_as_get_would_be_and_not_by_a_wider_route() -> None:
    router = LazyRouter()

    @router.post("/leaves/fallen", Permission.READ)
    def rake() -> Leaf:
        return Leaf(size=0)

    @router.get("/leaves/fallen", Permission.READ)
    def fallen() -> Leaf:
        return Leaf(size=1)

    @router.get("/leaves/{size}", Permission.READ)
    def leaf(size: int) -> Leaf:
        return Leaf(size=size)

    @router.head("/leaves/{size}", Permission.READ)
    def leaf_head(size: int) -> Response:
        return Response(headers={"x-size": str(size)})

    @router.route(["GET", "HEAD"], "/{rest:path}", Permission.READ)
    def astray(rest: str) -> Response:
        return Response(status_code=410)

    app, _ = _application(router)
    table, whole = Client(app), Client(HeadRequests(app))
    paths = ("/leaves/fallen", "/leaves/3", "/elsewhere")
    bare, asked = ([client.request("HEAD", path) for path in paths] for client in (table, whole))
    table.close()
    whole.close()

    assert [answer.status_code for answer in bare] == [405, 200, 410]
    assert [answer.status_code for answer in asked] == [200, 200, 410]
    assert (asked[1].headers["x-size"], asked[0].content) == ("3", b"")


def test_the_document_has_what_the_framework_would_write() -> None:
    app, _ = _application(_leaves())

    paths = app.openapi()["paths"]

    assert {path: sorted(verbs) for path, verbs in paths.items()} == {
        "/leaves/largest": ["get"],
        "/leaves/{size}": ["get", "post"],
    }
    shown = paths["/leaves/{size}"]["post"]
    assert (shown["operationId"], shown["tags"]) == ("grow_leaf", ["leaves"])
    assert {"201", "422", "429"} <= set(shown["responses"])
    assert [one["name"] for one in paths["/leaves/{size}"]["get"]["parameters"]] == ["size", "wide"]


def test_the_table_finds_what_trying_every_route_finds() -> None:
    for routers in (ROUTERS, REPLAY_ROUTERS):
        table = RouteTable(route for router in routers for route in router.routes)
        filled = (route.path.replace("{target:path}", "2020/http://a.org/b") for route in table.routes)
        paths = [path.replace("{", "1").replace("}", "") for path in filled]

        for path in (
            *paths,
            "/",
            "//",
            "/nothing",
            "/api",
            "/api/",
            "/api/nothing/1",
            "/web/",
            "/health\n",
            "/health/",
        ):
            tried = [route for route in table.routes if route.path_regex.match(path)]
            assert [route for route in table.candidates(path) if route.path_regex.match(path)] == tried, path
