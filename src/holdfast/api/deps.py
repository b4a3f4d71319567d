"""What a route may ask for. A session lives until its function returns, never while a response is streamed."""

from __future__ import annotations

from asyncio import Semaphore
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Depends, Request
from fastapi.concurrency import contextmanager_in_threadpool
from sqlalchemy.orm import Session

from holdfast.api.totals import Totals
from holdfast.api.work import Work
from holdfast.feedback.usage import UsageTally
from holdfast.metrics import ServerMetrics
from holdfast.search.search import Search
from holdfast.wiring.archive import Archive

SESSIONS = 5
"""Sessions of requests that are open at once."""
THREADS = 10
"""Threads that routes run on. With the sessions above, three for heavy work and two for health they stay within a pool
of 20 connections, so that no thread ever waits for one: one that did could keep the holder of a connection from going
on."""


# These wait for nothing; `async` spares them the trip to a thread that plain dependencies take.


async def archive_of(request: Request) -> Archive:
    """Return the archive that this application serves."""
    archive: Archive = request.app.state.archive
    return archive


async def totals_of(request: Request) -> Totals:
    """Return the archive's totals."""
    totals: Totals = request.app.state.totals
    return totals


async def work_of(request: Request) -> Work:
    """Return the figures of jobs and runs."""
    work: Work = request.app.state.work
    return work


async def usage_of(request: Request) -> UsageTally:
    """Return the tally of what is used."""
    usage: UsageTally = request.app.state.usage
    return usage


async def metrics_of(request: Request) -> ServerMetrics:
    """Return what this process counts of itself."""
    metrics: ServerMetrics = request.app.state.metrics
    return metrics


async def search_of(request: Request) -> Search:
    """Return the search of this process: one, with the columns that it keeps in memory."""
    search: Search = request.app.state.search
    return search


ArchiveDep = Annotated[Archive, Depends(archive_of)]
TotalsDep = Annotated[Totals, Depends(totals_of)]
WorkDep = Annotated[Work, Depends(work_of)]
UsageDep = Annotated[UsageTally, Depends(usage_of)]
MetricsDep = Annotated[ServerMetrics, Depends(metrics_of)]
SearchDep = Annotated[Search, Depends(search_of)]


async def open_session(request: Request, archive: ArchiveDep) -> AsyncIterator[Session]:
    """Open a session for reading, ended before the first byte is sent; Unavailable if the database is away."""
    permits: Semaphore = request.app.state.sessions
    async with permits, contextmanager_in_threadpool(archive.database.read()) as session:
        yield session


SessionDep = Annotated[Session, Depends(open_session, scope="function")]
"""For one short question. What streams opens its own short sessions from `archive.database`, one a batch."""
