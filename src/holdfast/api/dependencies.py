"""Dependencies that many routes share: sessions, the write turn, and objects that live as long as the server.

A session ends when its function returns; it is never open while a response is streamed.
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

from holdfast.api.figures import CountCache, CountedTotals, CountedWork, FrontierCounts, RunReports
from holdfast.api.middleware.rate_limits import CountedElsewhere, Rates
from holdfast.api.routing import principal_of
from holdfast.auth.identities import Identities
from holdfast.clock import Clock
from holdfast.config import Settings
from holdfast.db.models import Source
from holdfast.errors import NotFound, Unavailable
from holdfast.feedback import UsageTally
from holdfast.jobs.administration.actions import JobActions
from holdfast.metrics import ServerMetrics
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
"""Maximum number of open request sessions."""
THREADS = 6
"""Threads that routes run on. Together with the sessions above, three threads for heavy work, four for replay and
two for health checks, they fit in a pool of 20 connections, so that no thread ever waits for a connection: such
a thread could block the one that holds it.
"""


def held(name: str) -> Callable[[Request], Awaitable[Any]]:
    """Return a dependency that provides an object which lives as long as the application."""

    # It is `async` although it waits for nothing: FastAPI runs a plain dependency on a thread.
    async def found(request: Request) -> Any:
        return getattr(request.app.state, name)

    return found


ArchiveDep = Annotated[Archive, Depends(held("archive"))]
TotalsDep = Annotated[CountedTotals, Depends(held("totals"))]
WorkDep = Annotated[CountedWork, Depends(held("work"))]
UsageDep = Annotated[UsageTally, Depends(held("usage"))]
RatesDep = Annotated[Rates | CountedElsewhere, Depends(held("rates"))]
MetricsDep = Annotated[ServerMetrics, Depends(held("metrics"))]
AccountsDep = Annotated[Accounts, Depends(held("accounts"))]


async def open_session(request: Request, archive: ArchiveDep) -> AsyncIterator[Session]:
    """Open a read session that ends before the first byte is sent; raise Unavailable if the database is down."""
    permits: Semaphore = request.app.state.sessions
    # Get the permit first: a request that waits here holds neither a thread nor a connection.
    async with permits, contextmanager_in_threadpool(archive.database.read()) as session:
        yield session


SessionDep = Annotated[Session, Depends(open_session, scope="function")]
"""For one short query. Routes that stream open a short session per batch from `archive.database`."""


SourceCode = Annotated[str | None, Query(max_length=64, description="A source's code.", examples=["example-org"])]


class NoiseShown(StrEnum):
    """Whether lists include noise: captures that do not show the page itself (error pages, for example)."""

    HIDE = "hide"
    SHOW = "show"


Since = Annotated[date | None, Query(alias="from", description="First day, UTC.", examples=["2026-01-01"])]
Until = Annotated[date | None, Query(alias="to", description="Last day, UTC.", examples=["2026-12-31"])]


def demand_exports(archive: Archive) -> None:
    """Raise NotFound if this server offers no exports."""
    if not archive.settings.api.exports:
        raise NotFound("exports are not offered here; see HOLDFAST_API_EXPORTS")


def site_of(request: Request, settings: Settings) -> str:
    """Return the base URL of links: the configured site, or the host of the request."""
    return (settings.api.site_url or str(request.base_url)).rstrip("/")


def source_of(session: Session, code: str) -> Source:
    """Return a source; raise NotFound, with the next step for an API client, if it is missing or not visible."""
    # PostgreSQL rejects a NUL in text, which would give a 500; no code has one.
    found = source_by_code(session, code) if "\x00" not in code else None
    if found is None or not may_see(found):
        raise NotFound(f"{no_source(code)}; they are listed at /api/sources")
    return found


def source_id_of(session: Session, code: str | None) -> int | None:
    """Return the id of a source, or None without a code; raise NotFound if the code is unknown."""
    return source_of(session, code).id if code else None


def peer_of(scope: Scope) -> IPv4Address | IPv6Address | None:
    peer = scope.get("client")
    try:
        # A trusted proxy may forward an X-Forwarded-For that a client invented.
        return ip_address(str(peer[0])) if peer else None
    except ValueError:
        return None


def actor_of(request: Request) -> str:
    """Return the user and the client address for audit entries, such as `admin@203.0.113.7`."""
    return f"{principal_of(request.scope).name}@{peer_of(request.scope) or 'unknown'}"


# How long a change waits for its turn. It waits on the event loop, which costs no thread, so readers continue.
_WAIT_S = 10.0


class AdminWrite(NamedTuple):
    """What one request may change: rows, and what other threads have read of them."""

    job_service: JobService
    actor: str
    identities: Identities
    turn: Semaphore | None = None
    """The write turn to wait for in each transaction, so that others can write between; None if it is held already."""

    @property
    def clock(self) -> Clock:
        return self.job_service.clock

    @property
    def actions(self) -> JobActions:
        return self.job_service.actions

    @contextmanager
    def write_accounts(self) -> Iterator[Session]:
        """Open a transaction like `write`, for users, sessions and tokens: known identities are read again after it."""
        with self.write() as session:
            yield session
        self.identities.forget()

    @contextmanager
    def write(self) -> Iterator[Session]:
        """Open a short transaction; its audit entries name the requesting user.

        If it has to wait for the write turn, it must be called on a route's thread.
        """
        if self.turn is not None:
            from_thread.run(_wait_for, self.turn)
        try:
            with self.job_service.write(self.actor) as session:
                yield session
        finally:
            if self.turn is not None:
                from_thread.run_sync(self.turn.release)


async def open_write(request: Request) -> AsyncIterator[AdminWrite]:
    """Hold the write turn while the route runs; raise Unavailable if the wait is too long."""
    turns = await open_turns(request)
    assert turns.turn is not None
    await _wait_for(turns.turn)
    try:
        yield turns._replace(turn=None)
    finally:
        turns.turn.release()


async def open_turns(request: Request) -> AdminWrite:
    state = request.app.state
    return AdminWrite(state.job_service, actor_of(request), state.accounts.identities, state.turn)


class ServedFrontierTurn(NamedTuple):
    served: ServedFrontier
    actor: str

    def open(self) -> AbstractContextManager[Runtime]:
        """Lock the frontier for a few short transactions; their audit entries name the requesting user."""
        return self.served.open(self.actor)


async def open_frontier(request: Request) -> ServedFrontierTurn:
    return ServedFrontierTurn(request.app.state.frontier, actor_of(request))


async def _wait_for(turn: Semaphore) -> None:
    # SQLite has one writer, and waiting inside it would hold one of the few threads for routes.
    try:
        async with asyncio.timeout(_WAIT_S):
            await turn.acquire()
    except TimeoutError:
        raise Unavailable("other changes are still being written; try again in a moment") from None


RunReportsDep = Annotated[RunReports, Depends(held("run_reports"))]
FrontierCountsDep = Annotated[FrontierCounts, Depends(held("frontier_counts"))]
JobServiceDep = Annotated[JobService, Depends(held("job_service"))]
"""For reading only; to write, use one of the next two."""
AdminWriteDep = Annotated[AdminWrite, Depends(open_write, scope="function")]
"""For one short change. A route that uses it opens no session of its own."""
WriteTurnsDep = Annotated[AdminWrite, Depends(open_turns)]
"""For a change in several batches."""
FrontierDep = Annotated[ServedFrontierTurn, Depends(open_frontier)]
"""For changes to the frontier and its domains, of which a running crawl is notified."""


SearchDep = Annotated[SearchService, Depends(held("search"))]
"""One per process, with its in-memory columns."""


CountedYearsDep = Annotated[CountCache[tuple[dict[int, int], bool]], Depends(held("counted_years"))]
"""Cached counts of URLs with many captures, which are slow to count, by URL."""
HistoriesDep = Annotated[CountCache[PageHistory], Depends(held("histories"))]
"""Cached histories, by URL and year."""
