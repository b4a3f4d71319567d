"""`/mcp`: the archive as tools for assistants, with the caller's permissions. Stateless."""

from __future__ import annotations

import importlib
from asyncio import Semaphore
from collections.abc import Callable
from typing import Any, Final

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from holdfast.api.dependencies import ArchiveDep, SearchDep
from holdfast.api.heavy import heavy_result
from holdfast.api.routing import LazyRouter, PrincipalDep, demand_own_origin
from holdfast.auth.errors import Unauthenticated
from holdfast.auth.roles import Permission, Role

# The OpenAPI document cannot describe JSON-RPC: the protocol has its own schema.
router = LazyRouter(tags=["assistants"], include_in_schema=False)


_ONE: Final = CapacityLimiter(1)
"""One thread loads the tools: two that start together could see half-imported modules."""


def _tool_server() -> Any:
    """Import the module that serves tools on first use: the SDK takes as long to load as the whole server."""
    return importlib.import_module("holdfast.assistants.server")


class _Answered(Response):
    """Hands a request to the tool server, which writes the response itself."""

    def __init__(self, **handed: Any) -> None:
        super().__init__()
        self._handed = handed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        server = await run_sync(_tool_server, limiter=_ONE)
        handed = self._handed
        asked = server.ToolArchive(archive=handed["archive"], search=handed["search"])
        await server.serve_request(asked, handed["principal"], scope, receive, send, handed["run"])


@router.post("/mcp", Permission.READ, response_class=Response)
async def call_tools(request: Request, archive: ArchiveDep, search: SearchDep, principal: PrincipalDep) -> Response:
    """Speak the Model Context Protocol: list tools and call them. Results are limited to what the caller may see.

    As the protocol requires, raises OriginRefused for a page of another origin, whatever its credentials.
    """
    demand_own_origin(request)
    if getattr(request.app.state, "tools_only", False) and principal.role is Role.ANONYMOUS:
        raise Unauthenticated

    sessions: Semaphore = request.app.state.sessions

    async def run(work: Callable[[], Any], is_heavy: bool) -> Any:
        if is_heavy:
            return await heavy_result(request, work)
        # Hold the permit while the tool runs, not until its response is read: slow readers would take the few permits
        # from every other route.
        async with sessions:
            return await run_sync(work)

    return _Answered(archive=archive, search=search, principal=principal, run=run)
