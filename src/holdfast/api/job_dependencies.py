"""What routes ask for that run crawls and keep the archive: the job service, the frontier, the turn to write."""

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
    """The job service, for as long as one request is served: no other request writes meanwhile."""

    job_service: JobService
    actor: str

    def write(self) -> AbstractContextManager[Session]:
        """Open a short transaction; what is audited in it is in the name of who asked."""
        return self.job_service.write(self.actor)


class WriteTurns(NamedTuple):
    """The job service for work of many short transactions: each has a turn of its own, so that others come between."""

    job_service: JobService
    actor: str
    turn: asyncio.Semaphore

    @contextmanager
    def write(self) -> Iterator[Session]:
        """Wait for a turn and open a short transaction; only on the thread of a route."""
        from_thread.run(_wait_for, self.turn)
        try:
            with self.job_service.write(self.actor) as session:
                yield session
        finally:
            from_thread.run_sync(self.turn.release)


async def open_write(request: Request) -> AsyncIterator[AdminWrite]:
    """Wait for the turn to write, and hold it while the route runs; Unavailable if that takes too long."""
    job_service: JobService = request.app.state.job_service
    turn: asyncio.Semaphore = request.app.state.turn
    await _wait_for(turn)
    try:
        yield AdminWrite(job_service, actor_of(request))
    finally:
        turn.release()


async def open_turns(request: Request) -> WriteTurns:
    """Give the job service for as many turns as are needed."""
    return WriteTurns(request.app.state.job_service, actor_of(request), request.app.state.turn)


class ServedFrontierTurn(NamedTuple):
    """The frontier, for what an operator changes."""

    served: ServedFrontier
    actor: str

    def open(self) -> AbstractContextManager[Runtime]:
        """Have it alone for a few short transactions; what is audited is in the name of who asked."""
        return self.served.open(self.actor)


async def open_frontier(request: Request) -> ServedFrontierTurn:
    """Give the frontier to a route."""
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
"""Starts what was queued; told of it once that is committed."""
JobServiceDep = Annotated[JobService, Depends(held("job_service"))]
"""For reading only; what writes has one of the next two."""
AdminWriteDep = Annotated[AdminWrite, Depends(open_write, scope="function")]
"""For one short change. A route that has it opens no session of its own."""
WriteTurnsDep = Annotated[WriteTurns, Depends(open_turns)]
"""For a change that is made in portions."""
FrontierDep = Annotated[ServedFrontierTurn, Depends(open_frontier)]
"""For changes to the frontier and its domains, which a crawl that runs hears of."""
