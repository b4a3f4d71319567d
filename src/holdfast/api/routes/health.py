"""`/health/live` and `/health/ready`: for those that restart a process, and those that send requests to it.

Both are answered on the event loop and are never limited; the first touches nothing at all.
"""

from __future__ import annotations

from typing import Any, Literal

from fastapi import Request, Response
from starlette.responses import JSONResponse

from holdfast.api.late_routes import LateRouter
from holdfast.api.readiness import ReadinessProbe
from holdfast.api.schemas.base import Answer
from holdfast.supervision.state import PartState

router = LateRouter(tags=["archive"])


class Alive(Answer):
    """That this process answers."""

    status: Literal["alive"]


class Ready(Answer):
    """Whether this process can serve, and which part cannot."""

    status: Literal["ready", "not_ready"]
    parts: dict[str, str]
    """`ok`, or what is wrong, by part: database, storage, search."""
    serve: dict[str, PartState] | None = None
    """How the parts of `holdfast serve` do, where that runs; one that is `failing` does not make this not ready."""


_NOT_READY: dict[int | str, dict[str, Any]] = {503: {"model": Ready, "description": "A part is not ready."}}


@router.get("/health/live", response_model=Alive)
async def liveness(_request: Request) -> Response:
    """Say that the process answers; nothing else is asked, so a database that is away restarts no server."""
    return JSONResponse({"status": "alive"}, headers={"Cache-Control": "no-store"})


@router.get("/health/ready", response_model=Ready, responses=_NOT_READY)
async def readiness(request: Request) -> Response:
    """Say whether requests can be served, within two seconds; 503 with the part that is not ready."""
    probe: ReadinessProbe = request.app.state.readiness
    found = await probe.read()
    is_ready = found.is_ready
    content: dict[str, Any] = {"status": "ready" if is_ready else "not_ready", "parts": dict(found.parts)}
    if found.serve is not None:
        content["serve"] = dict(found.serve)
    return JSONResponse(content, 200 if is_ready else 503, headers={"Cache-Control": "no-store"})
