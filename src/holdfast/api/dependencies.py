"""What a route may ask for: sessions, services, the turn to write.

A session lives until its function returns, never while a response is streamed.
"""

from __future__ import annotations

import asyncio
from asyncio import Semaphore
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import date
from enum import StrEnum
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Annotated, Any, NamedTuple

from anyio import from_thread
from fastapi import Depends, Query, Request
from fastapi.concurrency import contextmanager_in_threadpool
from sqlalchemy.orm import Session
from starlette.types import Scope

from holdfast.api.costly_answers import CostlyAnswers
from holdfast.api.crawler_figures import FrontierCounts
from holdfast.api.figures import CountedTotals, CountedWork
from holdfast.api.middleware.rate_counts import CountedElsewhere, Rates
from holdfast.api.permissions import principal_of
from holdfast.api.run_reports import RunReports
from holdfast.config import Settings
from holdfast.db.models import Source
from holdfast.errors import NotFound, Unavailable
from holdfast.feedback import UsageTally
from holdfast.metrics import ServerMetrics
from holdfast.operations.launching import OperationLauncher
from holdfast.replay.history import PageHistory
from holdfast.search.search import SearchService
from holdfast.sources.queries import no_source, source_by_code
from holdfast.wiring import Runtime
from holdfast.wiring.accounts import Accounts
from holdfast.wiring.archive import Archive
from holdfast.wiring.frontier import ServedFrontier
from holdfast.wiring.jobs import JobService
from holdfast.withdrawals.visibility import may_see

SESSIONS = 5
"""Sessions of requests that are open at once."""
THREADS = 10
"""Threads that routes run on. With the sessions above, three for heavy work and two for health they stay within a pool
of 20 connections, so that no thread ever waits for one: one that did could keep the holder of a connection from going
on."""


def _held(name: str) -> Callable[[Request], Awaitable[Any]]:
    """Return what gives a route something that the application holds for as long as it runs."""

    # `async`, although it waits for nothing: a plain dependency is run on a thread.
    async def found(request: Request) -> Any:
        return getattr(request.app.state, name)

    return found


ArchiveDep = Annotated[Archive, Depends(_held("archive"))]
TotalsDep = Annotated[CountedTotals, Depends(_held("totals"))]
WorkDep = Annotated[CountedWork, Depends(_held("work"))]
UsageDep = Annotated[UsageTally, Depends(_held("usage"))]
RatesDep = Annotated[Rates | CountedElsewhere, Depends(_held("rates"))]
MetricsDep = Annotated[ServerMetrics, Depends(_held("metrics"))]
SearchDep = Annotated[SearchService, Depends(_held("search"))]
"""One for the process, with the columns that it keeps in memory."""
AccountsDep = Annotated[Accounts, Depends(_held("accounts"))]
HistoriesDep = Annotated[CostlyAnswers[PageHistory], Depends(_held("histories"))]
"""Of addresses with many captures, which take long to read."""
RunReportsDep = Annotated[RunReports, Depends(_held("run_reports"))]
FrontierCountsDep = Annotated[FrontierCounts, Depends(_held("frontier_counts"))]
OperationsDep = Annotated[OperationLauncher, Depends(_held("operations"))]
"""Starts what was queued; told of it once that is committed."""
JobServiceDep = Annotated[JobService, Depends(_held("job_service"))]
"""For reading only; what writes has one of the two at the end of this file."""


async def open_session(request: Request, archive: ArchiveDep) -> AsyncIterator[Session]:
    """Open a session for reading, ended before the first byte is sent; Unavailable if the database is away."""
    permits: Semaphore = request.app.state.sessions
    # The permit first: a request that waits here holds neither a thread nor a connection.
    async with permits, contextmanager_in_threadpool(archive.database.read()) as session:
        yield session


SessionDep = Annotated[Session, Depends(open_session, scope="function")]
"""For one short question. What streams opens its own short sessions from `archive.database`, one a batch."""


SourceCode = Annotated[str | None, Query(max_length=64, description="A source's code.", examples=["example-org"])]


class NoiseShown(StrEnum):
    """Whether captures are listed that show something else than their page."""

    HIDE = "hide"
    SHOW = "show"


Since = Annotated[date | None, Query(alias="from", description="First day, UTC.", examples=["2026-01-01"])]
Until = Annotated[date | None, Query(alias="to", description="Last day, UTC.", examples=["2026-12-31"])]


def site_of(request: Request, settings: Settings) -> str:
    """Return what links begin with: the configured site, or the host that was asked."""
    return (settings.api.site_url or str(request.base_url)).rstrip("/")


def source_of(session: Session, code: str) -> Source:
    """Return the source of this code; NotFound, with what a reader of the API does next, also if it may not be seen."""
    # PostgreSQL refuses a NUL in text, which would answer 500; no code has one.
    found = source_by_code(session, code) if "\x00" not in code else None
    if found is None or not may_see(found):
        raise NotFound(f"{no_source(code)}; they are listed at /api/sources")
    return found


def source_id_of(session: Session, code: str | None) -> int | None:
    """Return the source that is meant, None if none is named; NotFound if there is none of this code."""
    return source_of(session, code).id if code else None


def peer_of(scope: Scope) -> IPv4Address | IPv6Address | None:
    """Return who asks; None if that is no address."""
    peer = scope.get("client")
    try:
        # A trusted proxy may pass on what a client made up in X-Forwarded-For.
        return ip_address(str(peer[0])) if peer else None
    except ValueError:
        return None


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


def actor_of(request: Request) -> str:
    """Return who asks, and from where: `admin@203.0.113.7`."""
    return f"{principal_of(request.scope).name}@{peer_of(request.scope) or 'unknown'}"


async def open_write(request: Request) -> AsyncIterator[AdminWrite]:
    """Wait for the turn to write, and hold it while the route runs; Unavailable if that takes too long."""
    turn: asyncio.Semaphore = request.app.state.turn
    await _wait_for(turn)
    try:
        yield AdminWrite(request.app.state.job_service, actor_of(request))
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


AdminWriteDep = Annotated[AdminWrite, Depends(open_write, scope="function")]
"""For one short change. A route that has it opens no session of its own."""
WriteTurnsDep = Annotated[WriteTurns, Depends(open_turns)]
"""For a change that is made in portions."""
FrontierDep = Annotated[ServedFrontierTurn, Depends(open_frontier)]
"""For changes to the frontier and its domains, which a crawl that runs hears of."""
