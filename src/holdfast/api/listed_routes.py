"""Routes that are known from a table alone: the file that declares one is loaded by the first request to it.

Files of routes, and what they load, took a second of each start, and a process is asked for a few of them. A file is
loaded on a thread, one at a time, so that requests to other routes are answered meanwhile; one that cannot be loaded is
the failure of the request, and is tried again by the next. Nothing is loaded ahead: it would compete with the first
requests for the interpreter, in each process, mostly for routes that are never asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, Final

from anyio.to_thread import run_sync
from fastapi.routing import APIRoute
from starlette._utils import get_route_path
from starlette.exceptions import HTTPException
from starlette.routing import Match, compile_path
from starlette.types import Receive, Scope, Send

from holdfast.api.late_routes import LateRoute, LateRouter
from holdfast.api.loading import BUILDING, load

ANY: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
"""The methods of a row that says ANY."""


class ListedRouter:
    """The routes of one router, `file.name` below a package, as a table lists them; loads nothing until asked."""

    def __init__(self, package: str, where: str, rows: Iterable[str]) -> None:
        file, _, self._name = where.partition(".")
        self.module = f"{package}.{file}"
        self.routes = tuple(
            ListedRoute(self, method, path)
            for methods, _, path in (row.partition(" ") for row in rows)
            for method in (ANY if methods == "ANY" else (methods,))
        )

    def load(self) -> LateRouter:
        """Return the router itself; ImportError, or whatever its file fails with."""
        found: LateRouter = getattr(load(self.module), self._name)
        return found

    def declared(self, method: str, path: str) -> LateRoute:
        """Return the route as its file declares it; RuntimeError if the file has none of the kind."""
        for route in self.load().routes:
            if isinstance(route, LateRoute) and route.path == path and method in (route.methods or ()):
                return route
        raise RuntimeError(f"{self.module} has no {method} {path}, which its table lists")


class ListedRoute(APIRoute):
    """A route of which the path and the method are known; the rest is that of the declared one, and loads it."""

    methods: set[str]

    def __init__(self, router: ListedRouter, method: str, path: str) -> None:
        # Without `super().__init__`, which wants the function.
        self.path, self.methods, self._router, self._method = path, {method}, router, method
        self._declared: LateRoute | None = None

    @property
    def declared(self) -> LateRoute:
        """The route itself; loads its file."""
        if self._declared is None:
            self._declared = self._router.declared(self._method, self.path)
        return self._declared

    @property
    def is_built(self) -> bool:
        """Whether the file is loaded, and the parameters and models of the route have been read."""
        return self._declared is not None and self._declared.is_built

    # Read when a path is held against it: to compile all of them is a twentieth of a start.
    @cached_property
    def _compiled(self) -> tuple[Any, str, dict[str, Any]]:
        return compile_path(self.path)

    @property
    def path_regex(self) -> Any:  # type: ignore[override]
        """What a path is held against."""
        return self._compiled[0]

    @property
    def path_format(self) -> str:  # type: ignore[override]
        """The path with the bare names of its parameters."""
        return self._compiled[1]

    @property
    def param_convertors(self) -> dict[str, Any]:  # type: ignore[override]
        """How parameters of the path are read."""
        return self._compiled[2]

    def __getattr__(self, name: str) -> Any:
        # Called only for what is not there: the function, its parameters, what the document says of it.
        if name.startswith("__") or name in ("_declared", "_router", "_compiled"):
            raise AttributeError(name)
        return getattr(self.declared, name)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return whether a request is for this route, and what its scope gets; does not load it."""
        found = self.path_regex.match(get_route_path(scope)) if scope["type"] == "http" else None
        if found is None:
            return Match.NONE, {}
        convertors = self.param_convertors
        given = {name: convertors[name].convert(value) for name, value in found.groupdict().items()}
        child = {"route": self, "path_params": {**scope.get("path_params", {}), **given}}
        return (Match.FULL if scope["method"] in self.methods else Match.PARTIAL), child

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; the first one waits until the route is there."""
        if scope["method"] not in self.methods:
            raise HTTPException(405, headers={"Allow": ", ".join(self.methods)})
        if not self.is_built:
            # Not on the threads of the other requests: it must not wait until one of them is free.
            await run_sync(self.build, limiter=BUILDING)
        await self.declared.handle(scope, receive, send)

    def build(self) -> None:
        """Load the file and read the parameters and models, if nothing has yet."""
        self.declared.build()
