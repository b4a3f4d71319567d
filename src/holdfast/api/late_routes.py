"""Routes that cost nothing until they are asked for: the path and the methods of each are known when it is declared,
its parameters and models are read at its first request, or when the OpenAPI document is made.

A process has each route once, however many applications it makes: what the framework builds for one is kept in it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from inspect import get_annotations, iscoroutinefunction
from threading import Lock
from typing import Any, Final, Protocol

from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette._utils import get_route_path
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, compile_path
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.api.errors import answers
from holdfast.api.query_names import check_query, known_parameters

_BUILDING: Final = Lock()
_OF_PATH: Final = ("path_regex", "path_format", "param_convertors")
# What any route may answer, beside what it says itself.
_ANYWHERE = (400, 401, 403, 414, 422, 429, 500, 503)


class LateRoute(APIRoute):
    """A route of which only the name, the path and the methods are known until it is used."""

    any_query = False
    """Whether the route ignores query parameters that it does not declare, instead of refusing them."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **declared: Any) -> None:
        # Without `super().__init__`, which reads the types of all parameters and answers.
        self.path, self.endpoint = path, endpoint
        self._declared = declared
        self.name = declared.get("name") or endpoint.__name__
        self.methods = {method.upper() for method in declared.get("methods") or ("GET",)}
        self.include_in_schema = declared.get("include_in_schema", True)
        self.dependencies = list(declared.get("dependencies") or ())
        self.tags = list(declared.get("tags") or ())
        self.openapi_extra = declared.get("openapi_extra")
        self.operation_id = declared.get("operation_id")
        self.unique_id = self.operation_id or self.name

    @property
    def is_built(self) -> bool:
        """Return whether the parameters and models have been read."""
        return "dependant" in vars(self)

    def __getattr__(self, name: str) -> Any:
        # Called only for what is not there yet: the first look at a parameter, a model or the handler builds them.
        if name.startswith("__") or name == "_declared":
            raise AttributeError(name)
        if name in _OF_PATH:
            # Compiled when a path is held against it: to compile all of them is a twentieth of a start.
            vars(self).update(zip(_OF_PATH, compile_path(self.path), strict=True))
        else:
            self.build()
        try:
            return vars(self)[name]
        except KeyError:
            raise AttributeError(name) from None

    def build(self) -> None:
        """Read the parameters and models, if nothing has yet."""
        if self.is_built:
            return
        # One at a time: two requests that build the same models at once would make each of them twice.
        with _BUILDING:
            if not self.is_built:
                self._build()

    def _build(self) -> None:
        built = APIRoute(self.path, self.endpoint, **{**self._declared, "openapi_extra": self.openapi_extra})
        state = vars(built)
        state["query_names"] = known_parameters(built)
        if _is_plain(built):
            state["app"] = _plain(built.endpoint)
        # Last, because the others are looked for as soon as it is there.
        dependant = state.pop("dependant")
        vars(self).update(state)
        vars(self)["dependant"] = dependant

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; UnknownParameter or FieldRefused if its query is invalid (`check_query`)."""
        if not self.any_query and scope.get("query_string"):
            check_query(scope, self.query_names)
        await super().handle(scope, receive, send)


class AnyQueryRoute(LateRoute):
    """A route for addresses that other sites and old links write: it ignores query parameters it does not declare."""

    any_query = True


def _is_plain(route: APIRoute) -> bool:
    """Return whether a route asks for nothing but the request, and answers with a response of its own."""
    asked = route.dependant
    read = (asked.path_params, asked.query_params, asked.header_params, asked.cookie_params, asked.body_params)
    given = (asked.response_param_name, asked.background_tasks_param_name, asked.http_connection_param_name)
    return (
        iscoroutinefunction(route.endpoint)
        and asked.request_param_name is not None
        and get_annotations(route.endpoint, eval_str=True).get("return") is Response
        and not any(read)
        and not any(given)
        and not asked.dependencies
    )


def _plain(endpoint: Callable[..., Awaitable[Response]]) -> ASGIApp:
    """Return what serves such a route: there is nothing to be read or checked, which is half of what a route costs."""

    async def served(scope: Scope, receive: Receive, send: Send) -> None:
        response = await endpoint(Request(scope, receive, send))
        await response(scope, receive, send)

    return served


def _operation_id(route: APIRoute) -> str:
    return route.name


class LateRouter(APIRouter):
    """A router of late routes, for whatever an `APIRouter` is used for; operation ids are the names of functions."""

    def __init__(
        self,
        *,
        prefix: str = "",
        tags: Sequence[str] = (),
        dependencies: Sequence[Any] = (),
        responses: dict[int | str, dict[str, Any]] | None = None,
        include_in_schema: bool = True,
        any_query: bool = False,
    ) -> None:
        super().__init__(
            prefix=prefix,
            tags=list(tags),
            dependencies=list(dependencies),
            responses={**answers(*_ANYWHERE), **(responses or {})},
            include_in_schema=include_in_schema,
            route_class=AnyQueryRoute if any_query else LateRoute,
            generate_unique_id_function=_operation_id,
            redirect_slashes=False,
        )


Guard = Callable[[Request], Awaitable[None]]
"""Raises what a request is refused with; the route that was found stands in its scope."""


class Served(Protocol):
    """An ASGI application that is a coroutine function."""

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Coroutine[Any, Any, None]:
        """Serve one request."""


class RouteTable:
    """Finds the route for a path without trying them all; the first of the list that fits is taken."""

    def __init__(self, routes: Iterable[BaseRoute], *, guard: Guard | None = None) -> None:
        self._guard = guard
        self.routes = tuple(route for route in routes if isinstance(route, APIRoute))
        self._starts = {start[:depth] for start in map(_start, self.routes) for depth in range(_DEPTH + 1)}
        # Filled as paths are asked for, by words of our own routes alone: to sort all of them out costs a tenth of a
        # second of each start, and few are asked for.
        self._by_path: dict[str, tuple[APIRoute, ...] | None] = {
            route.path: None for route in self.routes if "{" not in route.path
        }
        self._by_start: dict[tuple[str, ...], tuple[APIRoute, ...]] = {}

    def candidates(self, path: str) -> tuple[APIRoute, ...]:
        """Return the routes that a path may belong to, in their order; the rest certainly do not fit."""
        if path in self._by_path:
            if (found := self._by_path[path]) is None:
                found = tuple(route for route in self._beginning(path) if route.path_regex.match(path))
                self._by_path[path] = found
            return found
        return self._beginning(path)

    def _beginning(self, path: str) -> tuple[APIRoute, ...]:
        """Return the routes whose first segments may be those of a path."""
        start = tuple(path.split("/", _DEPTH + 1)[1 : _DEPTH + 1])
        while start not in self._starts:
            if not start:
                return ()
            start = start[:-1]
        if (among := self._by_start.get(start)) is None:
            among = self._by_start[start] = tuple(one for one in self.routes if _may_begin(_start(one), start))
        return among

    def in_front_of(self, otherwise: Served) -> Served:
        """Return an application that hands requests to these routes, and the rest of what a server says to another."""

        async def served(scope: Scope, receive: Receive, send: Send) -> None:
            await (self.serve if scope["type"] == "http" else otherwise)(scope, receive, send)

        return served

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request to its route, if the guard lets it pass; HTTPException with 404 if no route has its path.

        A path that only other methods have is answered 405 by its first route. So is HEAD where GET has an earlier and
        narrower route: a wider one would say something else of the same address, and `HeadRequests` then asks by GET.
        """
        partial: tuple[APIRoute, Scope] | None = None
        # The path of the route that would answer GET, if this is HEAD: only its own HEAD answers before it.
        by_get: str | None = None
        for route in self.candidates(get_route_path(scope)):
            match, child_scope = route.matches(scope)
            if match is Match.FULL and by_get in (None, route.path):
                scope.update(child_scope)
                if self._guard is not None:
                    # Before the route is built or a byte of the body is read.
                    await self._guard(Request(scope, receive))
                await route.handle(scope, receive, send)
                return
            if match is Match.PARTIAL and partial is None:
                partial = (route, child_scope)
            if match is Match.PARTIAL and scope["method"] == "HEAD" and "GET" in (route.methods or ()):
                by_get = by_get or route.path
        if partial is None:
            raise HTTPException(404)
        route, child_scope = partial
        scope.update(child_scope)
        await route.handle(scope, receive, send)


# Segments of a path by which routes are told apart: `/api/snapshot` and `/api/search` share only one.
_DEPTH: Final = 2


def _start(route: APIRoute) -> tuple[str, ...]:
    """Return the first segments of a route that have no parameter."""
    literal, brace, _ = route.path.partition("{")
    segments = literal.split("/")[1:]
    # What stands before a parameter in the same segment is only the beginning of one.
    return tuple(segments[:-1] if brace else segments)[:_DEPTH]


def _may_begin(start: tuple[str, ...], asked: tuple[str, ...]) -> bool:
    shorter = min(len(start), len(asked))
    return start[:shorter] == asked[:shorter]
