"""`/health/live` and `/health/ready`: for process supervisors, and for load balancers.

Both respond on the event loop and are never rate-limited; the first one checks nothing at all. `/api/health`
and `/health` report the state of the archive to monitors.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Final, Literal

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import Depends, Query, Request, Response
from sqlalchemy.exc import SQLAlchemyError
from starlette.responses import JSONResponse

from holdfast import __version__, log
from holdfast.api import queries
from holdfast.api.dependencies import ArchiveDep, MetricsDep, RatesDep, TotalsDep, WorkDep
from holdfast.api.readiness import ReadinessProbe
from holdfast.api.routing import LazyRouter
from holdfast.api.schemas.health import Alive, Checks, Health, Ready, Services
from holdfast.auth.roles import Permission
from holdfast.coordination.disk import low_volume
from holdfast.errors import HoldfastError
from holdfast.supervision.state import served_parts
from holdfast.withdrawals.viewers import viewer

_log = log.get()
router = LazyRouter(tags=["archive"])


_NOT_READY: dict[int | str, dict[str, Any]] = {503: {"model": Ready, "description": "A part is not ready."}}


@router.get("/health/live", Permission.READ, response_model=Alive)
async def liveness(_request: Request) -> Response:
    """Return that the process is alive. Checks nothing else, so that a database outage restarts no server."""
    return JSONResponse({"status": "alive"}, headers={"Cache-Control": "no-store"})


@router.get("/health/ready", Permission.READ, response_model=Ready, responses=_NOT_READY)
async def readiness(request: Request) -> Response:
    """Return within two seconds whether requests can be served; 503 with the part that is not ready."""
    probe: ReadinessProbe = request.app.state.readiness
    found = await probe.read()
    is_ready = found.is_ready
    content: dict[str, Any] = {"status": "ready" if is_ready else "not_ready", "parts": dict(found.parts)}
    if found.serve is not None:
        content["serve"] = dict(found.serve)
    if found.beside:
        content["beside"] = dict(found.beside)
    return JSONResponse(content, 200 if is_ready else 503, headers={"Cache-Control": "no-store"})


_BROKEN = {"status": "error", "checks": {"db": "error"}}
_EXAMPLE = {"description": "The database does not answer.", "content": {"application/json": {"example": _BROKEN}}}
Details = Annotated[
    bool,
    Query(
        description="Add to `checks`: `jobs` by status and `snapshots`, as last counted; `disk`, whether there is "
        "room; `writes`, whether the database takes them."
    ),
]


_REDIS: Final[dict[bool | None, Literal["ok", "away", "not configured"]]] = {
    None: "not configured",
    True: "away",
    False: "ok",
}
# Of their own: a monitor is answered however many requests wait for a thread.
_threads = CapacityLimiter(2)
_LOOK_S = 10.0


async def look(
    archive: ArchiveDep,
    totals: TotalsDep,
    work: WorkDep,
    metrics: MetricsDep,
    rates: RatesDep,
    details: Details = False,
) -> Health | None:
    """Return the health; None, and a line in the log, if the database fails or does not respond in time."""

    def ask() -> tuple[Checks, int]:
        with archive.database.read() as session:
            workers = len(queries.active_workers(session, archive.clock))
            found = served_parts(archive.home)
            if not details:
                return Checks(db="ok", parts=found), workers
            total = totals.read(session).snapshots
            disk: Literal["ok", "low"] = "ok" if low_volume(archive.settings) is None else "low"
            writes: Literal["ok", "refused"] = "ok" if archive.database.takes_writes(archive.home) else "refused"
            counted = work.read(session)
            jobs = counted.jobs if viewer().sees_members else counted.public_jobs
            return Checks(
                db="ok", jobs=jobs, snapshots={"total": total}, disk=disk, writes=writes, parts=found
            ), workers

    try:
        # A database that hangs must not hang the monitor that would report it.
        async with asyncio.timeout(_LOOK_S):
            checks, workers = await run_sync(ask, abandon_on_cancel=True, limiter=_threads)
    except (HoldfastError, SQLAlchemyError, TimeoutError) as exc:
        _log.error("health.failed", message=(str(exc) or f"no answer in {_LOOK_S:g} s").splitlines()[0])
        return None
    return Health(
        status="ok",
        checks=checks,
        timestamp=archive.clock.now(),
        version=__version__,
        uptime=round(archive.clock.monotonic() - metrics.started, 3),
        services=Services(database="ok", redis=_REDIS[rates.is_away]),
        workers=workers,
    )


Found = Annotated[Health | None, Depends(look)]


@router.get(
    "/api/health", Permission.READ, response_model=Health, response_model_exclude_none=True, responses={500: _EXAMPLE}
)
async def health(found: Found) -> Health | JSONResponse:
    """Return whether the archive works; 500 if its database does not respond."""
    return found or JSONResponse(_BROKEN, 500)


@router.get(
    "/health", Permission.READ, response_model=Health, response_model_exclude_none=True, responses={503: _EXAMPLE}
)
async def health_of_service(found: Found) -> Health | JSONResponse:
    """Return the same as `/api/health`, with 503 if the database does not respond."""
    return found or JSONResponse(_BROKEN, 503)
