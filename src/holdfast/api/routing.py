"""Routing: declares, finds, guards and builds routes.

A route names its path, the permission that it needs, and the statuses of its errors:

    router = LazyRouter(prefix="/api/admin/users", tags=["admin"])

    @router.get("/{id}", Permission.ADMINISTER, errors=(404,))
    def show_user(session: SessionDep, id: UserId) -> UserRecord: ...

Its parameters and models are read at the first request, or when the OpenAPI document is made: reading all of
them would double the startup time of a server. A process has each route once, however many applications it
creates.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from difflib import get_close_matches
from inspect import get_annotations, iscoroutinefunction
from threading import Lock
from typing import Annotated, Any, Final, Protocol, TypeVar

from fastapi import Depends
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette._utils import get_route_path
from starlette.datastructures import Headers, QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, compile_path
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.api.errors import AdminTokenMissing, FieldRefused, OriginRefused, UnknownParameter, answers
from holdfast.api.record_answers import answer_for, encoding, has_records
from holdfast.auth.credentials import is_same
from holdfast.auth.errors import CrossSiteRefused, RoleTooLow, Unauthenticated
from holdfast.auth.principal import ANONYMOUS, Principal, SignInWay
from holdfast.auth.roles import Permission
from holdfast.config import Settings
from holdfast.old_spellings import CAMEL_PATHS, OLD_PATHS
from holdfast.records import Spelling

F = TypeVar("F", bound=Callable[..., Any])
SAFE_METHODS: Final = ("GET", "HEAD", "OPTIONS")
FORM_PATHS: Final = frozenset(
    {"/account/password", "/account/sessions", "/account/tokens", "/account/tokens/revoke", "/signout"}
)
"""Paths that receive forms from our own pages. The CSRF token is a field of the form, which the route checks."""
_BUILDING: Final = Lock()
_OF_PATH: Final = ("path_regex", "path_format", "param_convertors")
_ERRORS_OF_ALL: Final = (400, 401, 403, 414, 422, 429, 500, 503)
"""Error statuses that every route may return; a route declares only additional ones."""
_NAME_CHARS = 60


class LazyRoute(APIRoute):
    """A route that, until first used, knows only its name, path, methods and permission."""

    methods: set[str]

    def __init__(
        self, path: str, endpoint: Callable[..., Any], *, permission: Permission, any_query: bool, **declared: Any
    ) -> None:
        # Skip `super().__init__`, which reads the types of all parameters and responses.
        self.path, self.endpoint, self.permission = path, endpoint, permission
        self.any_query = any_query
        # It adds up to ten thousand URLs to a frontier with one request, and has its own rate limit.
        self.is_seeding: bool = declared.pop("is_seeding", False)
        # Name in `settings.api` of a setting that opens the route to everybody.
        self.opened_by: str | None = declared.pop("opened_by", None)
        self._declared = declared
        self.name = declared.get("name") or endpoint.__name__
        self.methods = {method.upper() for method in declared["methods"]}
        self.include_in_schema = declared.get("include_in_schema", True)
        self.dependencies = list(declared.get("dependencies") or ())
        self.tags = list(declared.get("tags") or ())
        self.openapi_extra = declared.get("openapi_extra")
        self.operation_id = declared.get("operation_id")
        self.unique_id = self.operation_id or self.name

    @property
    def returned(self) -> Any:
        """The return type of the route's function, or its response model if it builds the response itself."""
        model = self._declared.get("response_model")
        return model if has_records(model) else get_annotations(self.endpoint, eval_str=True).get("return")

    @property
    def spelling(self) -> Spelling:
        """The case of field names in responses: snake case below /api/v1 and /api/v2, camel case elsewhere."""
        is_snake = self.path.startswith(("/api/v1/", "/api/v2/", "/api/internal/v1/")) and self.path not in CAMEL_PATHS
        return Spelling.SNAKE if is_snake else Spelling.CAMEL

    @property
    def is_built(self) -> bool:
        return "dependant" in vars(self)

    def permission_here(self, settings: Settings) -> Permission:
        is_open = self.opened_by is not None and getattr(settings.api, self.opened_by)
        return Permission.READ if is_open else self.permission

    def __getattr__(self, name: str) -> Any:
        # Called only for missing attributes: the first access to a parameter, a model or the handler builds them.
        if name.startswith("__") or name == "_declared":
            raise AttributeError(name)
        if name in _OF_PATH:
            # Compile it when a path is first compared with it: compiling all takes a twentieth of a start.
            vars(self).update(zip(_OF_PATH, compile_path(self.path), strict=True))
        else:
            self.build()
        try:
            return vars(self)[name]
        except KeyError:
            raise AttributeError(name) from None

    def build(self) -> None:
        """Read the parameters and models; does nothing if that was done before."""
        if self.is_built:
            return
        # Build one at a time: two concurrent requests would build the same models twice.
        with _BUILDING:
            if not self.is_built:
                self._build()

    def _build(self) -> None:
        declared, endpoint = {**self._declared, "openapi_extra": self.openapi_extra}, self.endpoint
        if has_records(self.returned):
            declared["response_model"] = None
            endpoint = encoding(endpoint, declared.get("status_code") or 200, self.spelling)
        built = APIRoute(self.path, endpoint, **declared)
        state = vars(built)
        state["query_names"] = known_parameters(built)
        if _is_plain(built):
            state["app"] = _plain(built.endpoint)
        # Use the declared function, not the one that also encodes its record.
        state["endpoint"] = self.endpoint
        # Set this last: other threads treat the route as built once it exists.
        dependant = state.pop("dependant")
        vars(self).update(state)
        vars(self)["dependant"] = dependant

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; raises UnknownParameter or FieldRefused if its query is invalid (`check_query`)."""
        if not self.any_query and scope.get("query_string"):
            check_query(scope, self.query_names)
        await super().handle(scope, receive, send)


def known_parameters(route: APIRoute) -> Sequence[str]:
    return sorted(set(_parameter_names(route.dependant)))


def _parameter_names(dependant: Dependant) -> Iterator[str]:
    for field in dependant.query_params:
        yield field.alias
    for below in dependant.dependencies:
        yield from _parameter_names(below)


def check_query(scope: Scope, known: Sequence[str]) -> None:
    """Raise UnknownParameter, with the nearest name, for a parameter not in `known`; FieldRefused for a NUL.

    If a misspelled filter were ignored, the response would list everything.
    """
    for name, value in QueryParams(scope["query_string"]).multi_items():
        if name not in known:
            shown = name[:_NAME_CHARS].encode("ascii", "replace").decode().replace("\x00", "?")
            nearest = get_close_matches(shown, known, n=1, cutoff=0.5)
            raise UnknownParameter(shown, nearest[0] if nearest else None, known)
        if "\x00" in value:
            raise FieldRefused(name, "it holds a NUL character")


def _is_plain(route: APIRoute) -> bool:
    """Return whether a route takes only the request, and returns a response."""
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
    """Return an application for such a route that skips parameter parsing, half of what a route costs."""

    async def served(scope: Scope, receive: Receive, send: Send) -> None:
        response = await endpoint(Request(scope, receive, send))
        await response(scope, receive, send)

    return served


def _operation_id(route: APIRoute) -> str:
    return route.name


class LazyRouter:
    """Declares routes. Their operation ids are the names of the functions.

    With `any_query`, its routes ignore unknown query parameters, for URLs that other sites and old links contain.
    """

    def __init__(
        self, *, prefix: str = "", tags: Sequence[str] = (), include_in_schema: bool = True, any_query: bool = False
    ) -> None:
        self.prefix, self.tags = prefix, list(tags)
        self.include_in_schema, self.any_query = include_in_schema, any_query
        self.routes: list[LazyRoute] = []

    def route(
        self, methods: Sequence[str], path: str, permission: Permission, *, errors: Sequence[int] = (), **options: Any
    ) -> Callable[[F], F]:
        """Declare a route with the statuses of its errors; `options` are those of FastAPI and of LazyRoute."""
        declared = {
            "include_in_schema": self.include_in_schema,
            "generate_unique_id_function": _operation_id,
            **options,
            "tags": [*self.tags, *options.get("tags", ())],
            "responses": {**answers(*_ERRORS_OF_ALL, *errors), **options.get("responses", {})},
        }
        places = [(methods, self.prefix + path, declared)]
        for method in methods:
            for old in OLD_PATHS.get(f"{method} {self.prefix}{path}", ()):
                old_method, _, old_path = old.partition(" ")
                places.append(([old_method], old_path, {**declared, "include_in_schema": False}))

        def declare(endpoint: F) -> F:
            for of, at, given in places:
                route = LazyRoute(at, endpoint, permission=permission, any_query=self.any_query, methods=of, **given)
                self.routes.append(route)
            return endpoint

        return declare

    def get(self, path: str, permission: Permission, *, has_head: bool = False, **options: Any) -> Callable[[F], F]:
        """Declare a route for GET; if `has_head`, its function also responds to HEAD, without building the body."""
        declare = self.route(["GET"], path, permission, **options)
        if not has_head:
            return declare
        declare_head = self.head(path, permission, **{**options, "include_in_schema": False})
        return lambda endpoint: declare(declare_head(endpoint))

    def head(self, path: str, permission: Permission, **options: Any) -> Callable[[F], F]:
        """Declare a route for HEAD, which is otherwise served as GET."""
        return self.route(["HEAD"], path, permission, **options)

    def post(self, path: str, permission: Permission, **options: Any) -> Callable[[F], F]:
        return self.route(["POST"], path, permission, **options)

    def put(self, path: str, permission: Permission, **options: Any) -> Callable[[F], F]:
        return self.route(["PUT"], path, permission, **options)

    def patch(self, path: str, permission: Permission, **options: Any) -> Callable[[F], F]:
        return self.route(["PATCH"], path, permission, **options)

    def delete(self, path: str, permission: Permission, **options: Any) -> Callable[[F], F]:
        return self.route(["DELETE"], path, permission, **options)

    def options(self, path: str, permission: Permission, **options: Any) -> Callable[[F], F]:
        return self.route(["OPTIONS"], path, permission, **options)


Guard = Callable[[Request], Awaitable[None]]
"""Raises the error that rejects a request; the matched route is in the request's scope."""


class Served(Protocol):
    """An ASGI application that is a coroutine function."""

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Coroutine[Any, Any, None]:
        """Serve one request."""


class RouteTable:
    """Finds the route for a path without trying all of them; the first match in the list wins."""

    def __init__(self, routes: Iterable[LazyRoute], *, guard: Guard | None = None) -> None:
        self._guard = guard
        self.routes = tuple(routes)
        self._starts = {start[:depth] for start in map(_start, self.routes) for depth in range(_DEPTH + 1)}
        # Requests fill this, only with segments of our own routes: sorting all at the start costs a tenth of a second,
        # and few are requested.
        self._by_path: dict[str, tuple[LazyRoute, ...] | None] = {
            route.path: None for route in self.routes if "{" not in route.path
        }
        self._by_start: dict[tuple[str, ...], tuple[LazyRoute, ...]] = {}

    def candidates(self, path: str) -> tuple[LazyRoute, ...]:
        """Return all routes that may match a path, in order."""
        if path in self._by_path:
            if (found := self._by_path[path]) is None:
                found = tuple(route for route in self._beginning(path) if route.path_regex.match(path))
                self._by_path[path] = found
            return found
        return self._beginning(path)

    def _beginning(self, path: str) -> tuple[LazyRoute, ...]:
        start = tuple(path.split("/", _DEPTH + 1)[1 : _DEPTH + 1])
        while start not in self._starts:
            if not start:
                return ()
            start = start[:-1]
        if (among := self._by_start.get(start)) is None:
            among = self._by_start[start] = tuple(one for one in self.routes if _may_begin(_start(one), start))
        return among

    def find(self, method: str, path: str) -> LazyRoute | None:
        """Return the route of a request; if none of the path's routes has the method, the first of them."""
        found = [route for route in self.candidates(path) if route.path_regex.match(path)]
        taken = "GET" if method == "HEAD" else method
        return next((route for route in found if taken in route.methods), found[0] if found else None)

    def in_front_of(self, otherwise: Served) -> Served:
        """Return an application that sends requests to these routes, and other ASGI events to `otherwise`."""

        async def served(scope: Scope, receive: Receive, send: Send) -> None:
            await (self.serve if scope["type"] == "http" else otherwise)(scope, receive, send)

        return served

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run a request's route if the guard allows it; raise HTTPException with 404 if no route has its path.

        If the path has only routes with other methods, its first route responds 405. So does HEAD if GET has an
        earlier, narrower route: a wider HEAD route would describe something else at that URL, and `HeadRequests` then
        uses GET.
        """
        partial: tuple[LazyRoute, Scope] | None = None
        # The path of the route that would answer GET, if this is HEAD: only its own HEAD answers before it.
        by_get: str | None = None
        for route in self.candidates(get_route_path(scope)):
            match, child_scope = route.matches(scope)
            if match is Match.FULL and by_get in (None, route.path):
                scope.update(child_scope)
                if self._guard is not None:
                    # Check this before building the route or reading a byte of the body.
                    await self._guard(Request(scope, receive))
                await route.handle(scope, receive, send)
                return
            if match is Match.PARTIAL and partial is None:
                partial = (route, child_scope)
            if match is Match.PARTIAL and scope["method"] == "HEAD" and "GET" in route.methods:
                by_get = by_get or route.path
        if partial is None:
            raise HTTPException(404)
        route, child_scope = partial
        scope.update(child_scope)
        await route.handle(scope, receive, send)


# Segments of a path that distinguish routes: `/api/snapshot` and `/api/search` share only one.
_DEPTH: Final = 2


def _start(route: LazyRoute) -> tuple[str, ...]:
    literal, brace, _ = route.path.partition("{")
    segments = literal.split("/")[1:]
    # The text before a parameter in the same segment is only the start of a segment.
    return tuple(segments[:-1] if brace else segments)[:_DEPTH]


def _may_begin(start: tuple[str, ...], asked: tuple[str, ...]) -> bool:
    shorter = min(len(start), len(asked))
    return start[:shorter] == asked[:shorter]


def principal_of(scope: Scope) -> Principal:
    """Return the principal of a request, as stored by `api.middleware.identity`."""
    found: Principal = scope.get("state", {}).get("principal", ANONYMOUS)
    return found


def credential_error(scope: Scope) -> Unauthenticated | None:
    found: Unauthenticated | None = scope.get("state", {}).get("credential_error")
    return found


async def _principal(request: Request) -> Principal:
    return principal_of(request.scope)


PrincipalDep = Annotated[Principal, Depends(_principal)]


async def check_permission(request: Request) -> None:
    """Check that the caller has the permission of the route.

    Raises Unauthenticated if the credential is missing or wrong, RoleTooLow without the permission, and
    CrossSiteRefused for a change that a page of another site made the browser send.
    """
    scope = request.scope
    settings: Settings = request.app.state.archive.settings
    route: LazyRoute = scope["route"]
    permission, principal = route.permission_here(settings), principal_of(scope)
    # A strict environment closes routes that it cannot guard.
    is_guarded = settings.api.admin_token is not None or not settings.api.strict
    if not is_guarded and permission is not Permission.READ and principal.way is SignInWay.ANONYMOUS:
        raise AdminTokenMissing
    if (wrong := credential_error(scope)) is not None:
        raise wrong
    if not principal.may(permission):
        if principal.way is SignInWay.ANONYMOUS:
            raise Unauthenticated
        raise RoleTooLow(permission.value)
    if request.method not in SAFE_METHODS and principal.way is SignInWay.SESSION:
        _demand_same_site(request, settings, permission)
    answer_for(principal)


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


def _demand_same_site(request: Request, settings: Settings, permission: Permission) -> None:
    """Reject a change with a session cookie that a page of another site may have made the browser send."""
    origin = request.headers.get("origin")
    is_own = origin is not None and is_own_origin(origin, request.scope, settings)
    shown = request.headers.get("x-csrf-token", "")
    is_form = request.url.path in FORM_PATHS or permission is Permission.READ
    if not is_own or not (is_form or is_same(shown, request.scope["state"]["csrf_token"])):
        raise CrossSiteRefused


class PathPermissions:
    """Finds the permission of a path before its route runs, for rate limits and CORS."""

    def __init__(self, table: RouteTable, settings: Settings) -> None:
        self._table, self._settings = table, settings

    def asked(self, method: str, path: str) -> Permission | None:
        """Return the permission that the route of a path needs here; None if no route matches."""
        route = self._table.find(method, path)
        return None if route is None else route.permission_here(self._settings)

    def is_seeding(self, method: str, path: str) -> bool:
        route = self._table.find(method, path)
        return route is not None and route.is_seeding
