"""`/api/health` and `/health`: whether the archive can answer, asked by monitors."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, Query
from fastapi.responses import JSONResponse
from sqlalchemy.exc import SQLAlchemyError

from holdfast import __version__, log
from holdfast.api import queries
from holdfast.api.deps import ArchiveDep, MetricsDep, TotalsDep, WorkDep
from holdfast.api.roles import PUBLIC
from holdfast.api.schemas.archive import Checks, Health, Services
from holdfast.coordination.disk import low_volume
from holdfast.db.room import last_refusal
from holdfast.errors import HoldfastError

_log = log.get()
router = APIRouter(tags=["archive"], dependencies=[PUBLIC])
_BROKEN = {"status": "error", "checks": {"db": "error"}}
_EXAMPLE = {"description": "The database does not answer.", "content": {"application/json": {"example": _BROKEN}}}
Details = Annotated[bool, Query(description="Add jobs by status, and how many captures there are; as last counted.")]


_threads = CapacityLimiter(2)
"""Of their own: a monitor is answered however many requests wait for a thread."""
_LOOK_S = 10.0


async def look(
    archive: ArchiveDep, totals: TotalsDep, work: WorkDep, metrics: MetricsDep, details: Details = False
) -> Health | None:
    """Return what is well; None, and a line in the log, if the database is not, or does not say so in time."""

    def ask() -> tuple[Checks, int]:
        with archive.database.read() as session:
            workers = len(queries.active_workers(session, archive.clock))
            if not details:
                return Checks(db="ok"), workers
            total = totals.read(session).snapshots
            disk: Literal["ok", "low"] = "ok" if low_volume(archive.settings) is None else "low"
            writes: Literal["ok", "refused"] = "ok" if last_refusal(archive.home) is None else "refused"
            checks = Checks(db="ok", jobs=work.read(session).jobs, snapshots={"total": total}, disk=disk, writes=writes)
            return checks, workers

    try:
        async with asyncio.timeout(_LOOK_S):
            checks, workers = await run_sync(ask, abandon_on_cancel=True, limiter=_threads)
    except (HoldfastError, SQLAlchemyError, TimeoutError) as exc:
        _log.error("health.failed", message=(str(exc) or f"no answer in {_LOOK_S:g} s").splitlines()[0])
        return None
    return Health(
        status="ok", checks=checks, timestamp=archive.clock.now(), version=__version__,
        uptime=round(archive.clock.monotonic() - metrics.started, 3),
        services=Services(database="ok", redis="not configured"), workers=workers,
    )  # fmt: skip


Found = Annotated[Health | None, Depends(look)]


@router.get("/api/health", response_model=Health, response_model_exclude_none=True, responses={500: _EXAMPLE})
async def health(found: Found) -> Health | JSONResponse:
    """Say whether the archive answers; 500 if its database does not."""
    return found or JSONResponse(_BROKEN, 500)


@router.get("/health", response_model=Health, response_model_exclude_none=True, responses={503: _EXAMPLE})
async def health_of_service(found: Found) -> Health | JSONResponse:
    """Say the same as `/api/health`, with 503 if the database does not answer."""
    return found or JSONResponse(_BROKEN, 503)
