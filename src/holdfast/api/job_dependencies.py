"""Dependencies of routes that manage crawls and the archive: the job service, the frontier, the write turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Annotated, NamedTuple

from anyio import from_thread
from fastapi import Depends, Request
from sqlalchemy.orm import Session

from holdfast.api.crawler_figures import FrontierCounts
from holdfast.api.dependencies import actor_of, held
from holdfast.api.run_reports import RunReports
from holdfast.errors import Unavailable
from holdfast.operations.launching import OperationLauncher
from holdfast.wiring import Runtime
from holdfast.wiring.frontier import ServedFrontier
from holdfast.wiring.jobs import JobService

# How long a change waits for its turn. It waits on the event loop, where that costs no thread: readers go on.
_WAIT_S = 10.0


class AdminWrite(NamedTuple):
    """The job service for the duration of one request, while no other request writes."""

    job_service: JobService
    actor: str

    def write(self) -> AbstractContextManager[Session]:
        """Open a short transaction; its audit entries name the requesting user."""
        return self.job_service.write(self.actor)


class WriteTurns(NamedTuple):
    """The job service for many short transactions, each with its own write turn, so that others can write between."""

    job_service: JobService
    actor: str
    turn: asyncio.Semaphore

    @contextmanager
    def write(self) -> Iterator[Session]:
        """Wait for a write turn and open a short transaction; only for use on a route's thread."""
        from_thread.run(_wait_for, self.turn)
        try:
            with self.job_service.write(self.actor) as session:
                yield session
        finally:
            from_thread.run_sync(self.turn.release)


async def open_write(request: Request) -> AsyncIterator[AdminWrite]:
    """Hold the write turn while the route runs; raise Unavailable if the wait is too long."""
    job_service: JobService = request.app.state.job_service
    turn: asyncio.Semaphore = request.app.state.turn
    await _wait_for(turn)
    try:
        yield AdminWrite(job_service, actor_of(request))
    finally:
        turn.release()


async def open_turns(request: Request) -> WriteTurns:
    return WriteTurns(request.app.state.job_service, actor_of(request), request.app.state.turn)


class ServedFrontierTurn(NamedTuple):
    served: ServedFrontier
    actor: str

    def open(self) -> AbstractContextManager[Runtime]:
        """Lock the frontier for a few short transactions; their audit entries name the requesting user."""
        return self.served.open(self.actor)


async def open_frontier(request: Request) -> ServedFrontierTurn:
    return ServedFrontierTurn(request.app.state.frontier, actor_of(request))


async def _wait_for(turn: asyncio.Semaphore) -> None:
    # SQLite has one writer, and its own waiting would hold one of the few threads that routes run on.
    try:
        async with asyncio.timeout(_WAIT_S):
            await turn.acquire()
    except TimeoutError:
        raise Unavailable("other changes are still being written; try again in a moment") from None


RunReportsDep = Annotated[RunReports, Depends(held("run_reports"))]
FrontierCountsDep = Annotated[FrontierCounts, Depends(held("frontier_counts"))]
OperationsDep = Annotated[OperationLauncher, Depends(held("operations"))]
"""Starts queued operations; notify it after the commit."""
JobServiceDep = Annotated[JobService, Depends(held("job_service"))]
"""For reading only; to write, use one of the next two."""
AdminWriteDep = Annotated[AdminWrite, Depends(open_write, scope="function")]
"""For one short change. A route that uses it opens no session of its own."""
WriteTurnsDep = Annotated[WriteTurns, Depends(open_turns)]
"""For a change in several batches."""
FrontierDep = Annotated[ServedFrontierTurn, Depends(open_frontier)]
"""For changes to the frontier and its domains, of which a running crawl is notified."""
