"""`/health/live` and `/health/ready`: for process supervisors, and for load balancers.

Both respond on the event loop and are never rate-limited; the first one checks nothing at all. `/api/health`
and `/health` report the state of the archive to monitors.
"""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import Depends, Query, Request, Response
from sqlalchemy.exc import SQLAlchemyError
from starlette.responses import JSONResponse

from holdfast import __version__, log
from holdfast.api.dependencies import ArchiveDep, MetricsDep, RatesDep, TotalsDep, WorkDep
from holdfast.api.live.topics import room_of
from holdfast.api.readiness import ReadinessProbe, Ready
from holdfast.api.record_answers import record_response
from holdfast.api.routing import LazyRouter
from holdfast.auth.roles import Permission
from holdfast.errors import HoldfastError
from holdfast.jobs.views.recorded import active_workers
from holdfast.processes.part_states import PartState, served_parts
from holdfast.records import IfKnown, Public, record
from holdfast.withdrawals.viewers import viewer

_log = log.get()
router = LazyRouter(tags=["archive"])


_NO_STORE = {"Cache-Control": "no-store"}
_NOT_READY: dict[int | str, dict[str, Any]] = {
    503: {
        "description": "A part is not ready.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Ready"}}},
    }
}


@record
class Alive:
    """The process is alive."""

    status: Public[Literal["alive"]]


@router.get("/health/live", Permission.READ, response_model=Alive)
async def liveness(_request: Request) -> Response:
    """Return that the process is alive. Checks nothing else, so that a database outage restarts no server."""
    return record_response(Alive(status="alive"), headers=_NO_STORE)


@router.get("/health/ready", Permission.READ, response_model=Ready, responses=_NOT_READY)
async def readiness(request: Request) -> Response:
    """Return within two seconds whether requests can be served; 503 with the part that is not ready."""
    probe: ReadinessProbe = request.app.state.readiness
    found = await probe.read()
    return record_response(found, status=200 if found.status == "ready" else 503, headers=_NO_STORE)


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
# Use separate threads: a monitor gets a response however many requests wait for a thread.
_threads = CapacityLimiter(2)
_LOOK_S = 10.0


@record
class Checks:
    """A check and its result."""

    db: Public[Literal["ok", "error"]]
    jobs: Public[IfKnown[dict[str, int]]] = None
    """Jobs by status, in the words of `/api/admin/jobs`, with details=1."""
    snapshots: Public[IfKnown[dict[str, int]]] = None
    """`total`, with details=1."""
    disk: Public[IfKnown[Literal["ok", "low"]]] = None
    """Whether the volumes of database and captures have room, with details=1."""
    writes: Public[IfKnown[Literal["ok", "refused"]]] = None
    """Whether the database refused the last write for want of room, with details=1."""
    parts: Public[IfKnown[dict[str, PartState]]]
    """State of the parts of `holdfast serve`, by name, if it is running; `failing` ended ten times in a minute and
    is restarted once a minute.
    """


@record
class Services:
    """Services that the archive depends on."""

    database: Public[Literal["ok", "error"]]
    redis: Public[Literal["ok", "away", "not configured"]]
    """`away` while it does not answer and each process counts requests for itself; `not configured` without
    HOLDFAST_REDIS_URL.
    """


@record
class Health:
    """The archive's health, for monitors of either kind: `checks`, and `services` with `workers`."""

    status: Public[Literal["ok", "error"]]
    checks: Public[Checks]
    timestamp: Public[datetime]
    version: Public[str]
    uptime: Public[float]
    """Seconds since the server started."""
    services: Public[Services]
    workers: Public[int]
    """Running processes."""


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
            workers = len(active_workers(session, archive.clock))
            found = served_parts(archive.home)
            if not details:
                return Checks(db="ok", parts=found), workers
            total = totals.read(session).snapshots
            counted = work.read(session)
            jobs = counted.jobs if viewer().sees_members else counted.public_jobs
            return Checks(db="ok", jobs=jobs, snapshots={"total": total}, parts=found, **room_of(archive)), workers

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


@router.get("/api/health", Permission.READ, response_model=Health, responses={500: _EXAMPLE})
async def health(found: Found) -> Response:
    """Return whether the archive works; 500 if its database does not respond."""
    return record_response(found) if found else JSONResponse(_BROKEN, 500)


@router.get("/health", Permission.READ, response_model=Health, responses={503: _EXAMPLE})
async def health_of_service(found: Found) -> Response:
    """Return the same as `/api/health`, with 503 if the database does not respond."""
    return record_response(found) if found else JSONResponse(_BROKEN, 503)
