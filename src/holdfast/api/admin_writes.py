"""What a route changes things with: the desk of this process, one request at a time, in the name of who asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Annotated, NamedTuple

from anyio import from_thread
from fastapi import Depends, Request
from sqlalchemy.orm import Session

from holdfast.api.middleware.rate_limits import peer_of
from holdfast.errors import Unavailable
from holdfast.wiring.jobs import JobService

_WAIT_S = 10.0
"""How long a change waits for its turn. It waits here, where that costs no thread: readers go on meanwhile."""


class AdminWrite(NamedTuple):
    """The desk, for as long as one request is served."""

    job_service: JobService
    actor: str

    def write(self) -> AbstractContextManager[Session]:
        """Open a short transaction; what is audited in it is in the name of who asked."""
        return self.job_service.write(self.actor)


class WriteTurns(NamedTuple):
    """The desk for work of many short transactions: each has a turn of its own, so that others come in between."""

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


async def desk_of(request: Request) -> JobService:
    """Return the desk of this process, for looking only."""
    job_service: JobService = request.app.state.job_service
    return job_service


def actor_of(request: Request) -> str:
    """Return who asks, and from where: `admin@203.0.113.7`."""
    return f"admin@{peer_of(request.scope) or 'unknown'}"


async def open_hand(request: Request) -> AsyncIterator[AdminWrite]:
    """Wait for the desk to be free, then lend it; Unavailable if that takes too long."""
    turn: asyncio.Semaphore = request.app.state.turn
    await _wait_for(turn)
    try:
        yield AdminWrite(request.app.state.job_service, actor_of(request))
    finally:
        turn.release()


async def open_turns(request: Request) -> WriteTurns:
    """Lend the desk for as many turns as are needed."""
    return WriteTurns(request.app.state.job_service, actor_of(request), request.app.state.turn)


async def _wait_for(turn: asyncio.Semaphore) -> None:
    try:
        async with asyncio.timeout(_WAIT_S):
            await turn.acquire()
    except TimeoutError:
        raise Unavailable("other changes are still being written; try again in a moment") from None


DeskDep = Annotated[JobService, Depends(desk_of)]
HandDep = Annotated[AdminWrite, Depends(open_hand, scope="function")]
"""For one short change. A route that has it opens no session of its own."""
TurnsDep = Annotated[WriteTurns, Depends(open_turns)]
"""For a change that is made in portions."""
