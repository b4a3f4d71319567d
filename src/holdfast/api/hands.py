"""What a route changes things with: the desk of this process, one request at a time, in the name of who asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager
from typing import Annotated, NamedTuple

from fastapi import Depends, Request
from sqlalchemy.orm import Session

from holdfast.errors import Unavailable
from holdfast.wiring.desk import Desk

_WAIT_S = 10.0
"""How long a change waits for its turn. It waits here, where that costs no thread: readers go on meanwhile."""


class Hand(NamedTuple):
    """The desk, for as long as one request is served."""

    desk: Desk
    actor: str

    def write(self) -> AbstractContextManager[Session]:
        """Open a short transaction; what is audited in it is in the name of who asked."""
        return self.desk.write(self.actor)


async def desk_of(request: Request) -> Desk:
    """Return the desk of this process, for looking only."""
    desk: Desk = request.app.state.desk
    return desk


def actor_of(request: Request) -> str:
    """Return who asks, and from where: `admin@203.0.113.7`."""
    return f"admin@{request.client.host if request.client else 'unknown'}"


async def open_hand(request: Request) -> AsyncIterator[Hand]:
    """Wait for the desk to be free, then lend it; Unavailable if that takes too long."""
    turn: asyncio.Semaphore = request.app.state.turn
    try:
        async with asyncio.timeout(_WAIT_S):
            await turn.acquire()
    except TimeoutError:
        raise Unavailable("other changes are still being written; try again in a moment") from None
    try:
        yield Hand(request.app.state.desk, actor_of(request))
    finally:
        turn.release()


DeskDep = Annotated[Desk, Depends(desk_of)]
HandDep = Annotated[Hand, Depends(open_hand, scope="function")]
"""For one short change. A route that has it opens no session of its own."""
