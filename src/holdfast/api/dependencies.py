"""What a route may ask for. A session lives until its function returns, never while a response is streamed."""

from __future__ import annotations

from asyncio import Semaphore
from collections.abc import AsyncIterator
from datetime import date, datetime
from typing import Annotated

from fastapi import Depends, Query, Request
from fastapi.concurrency import contextmanager_in_threadpool
from sqlalchemy.orm import Session

from holdfast.api.figures import CountedTotals, Work
from holdfast.clock import digits14
from holdfast.config import Settings
from holdfast.db.models import Source
from holdfast.errors import NotFound
from holdfast.feedback import UsageTally
from holdfast.metrics import ServerMetrics
from holdfast.replay.address import replay_path
from holdfast.search.search import SearchService
from holdfast.sources.queries import no_source, source_by_code
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


async def totals_of(request: Request) -> CountedTotals:
    """Return the archive's totals."""
    totals: CountedTotals = request.app.state.totals
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


async def search_of(request: Request) -> SearchService:
    """Return the search of this process: one, with the columns that it keeps in memory."""
    search: SearchService = request.app.state.search
    return search


ArchiveDep = Annotated[Archive, Depends(archive_of)]
TotalsDep = Annotated[CountedTotals, Depends(totals_of)]
WorkDep = Annotated[Work, Depends(work_of)]
UsageDep = Annotated[UsageTally, Depends(usage_of)]
MetricsDep = Annotated[ServerMetrics, Depends(metrics_of)]
SearchDep = Annotated[SearchService, Depends(search_of)]


async def open_session(request: Request, archive: ArchiveDep) -> AsyncIterator[Session]:
    """Open a session for reading, ended before the first byte is sent; Unavailable if the database is away."""
    permits: Semaphore = request.app.state.sessions
    async with permits, contextmanager_in_threadpool(archive.database.read()) as session:
        yield session


SessionDep = Annotated[Session, Depends(open_session, scope="function")]
"""For one short question. What streams opens its own short sessions from `archive.database`, one a batch."""


SourceCode = Annotated[str | None, Query(max_length=64, description="A source's code.", examples=["example-org"])]
Since = Annotated[date | None, Query(alias="from", description="First day, UTC.", examples=["2026-01-01"])]
Until = Annotated[date | None, Query(alias="to", description="Last day, UTC.", examples=["2026-12-31"])]


def site_of(request: Request, settings: Settings) -> str:
    """Return what links begin with: the configured site, or the host that was asked."""
    return (settings.api.site_url or str(request.base_url)).rstrip("/")


def source_of(session: Session, code: str) -> Source:
    """Return the source of this code; NotFound, with what a reader of the API does next."""
    # PostgreSQL refuses a NUL in text, which would answer 500; no code has one.
    found = source_by_code(session, code) if "\x00" not in code else None
    if found is None:
        raise NotFound(f"{no_source(code)}; they are listed at /api/sources")
    return found


def source_id_of(session: Session, code: str | None) -> int | None:
    """Return the source that is meant, None if none is named; NotFound if there is none of this code."""
    return source_of(session, code).id if code else None


def raw_url(snapshot_id: int) -> str:
    """Return the path of a capture's raw view."""
    return f"/api/snapshots/raw/{snapshot_id}"


def browse_url(settings: Settings, *, url: str, captured_at: datetime, snapshot_id: int) -> str:
    """Return where a capture is replayed, on the replay host; the fragment names the capture for our own pages."""
    path = replay_path(digits14(captured_at), "", url.partition("#")[0])
    return f"{settings.replay_origin}{path}#ha_snapshot={snapshot_id}"
