"""What runs beside the requests from the server's start to its end: totals made ready, usage written, upkeep done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from anyio.to_thread import current_default_thread_limiter, run_sync
from fastapi import FastAPI

from holdfast import log
from holdfast.api.deps import THREADS
from holdfast.api.totals import Totals
from holdfast.api.upkeep import Upkeep
from holdfast.api.work import Work
from holdfast.db.limits import limit_statements
from holdfast.errors import HoldfastError
from holdfast.feedback.usage import UsageTally
from holdfast.search.search import Request, Search
from holdfast.wiring.archive import Archive

_FLUSH_S = 10.0
STATEMENT_S = 10.0
"""Longest time of a statement that a request waits for."""
_log = log.get()


def life_of(
    archive: Archive, counts: tuple[Totals, Work], usage: UsageTally, search: Search
) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    """Return the lifespan of the application that serves this archive."""

    @asynccontextmanager
    async def life(_app: FastAPI) -> AsyncIterator[None]:
        current_default_thread_limiter().total_tokens = THREADS
        limit_statements(archive.database.engine, seconds=STATEMENT_S)
        await run_sync(_warm, archive, counts, search)
        upkeep = Upkeep(archive)
        if archive.settings.api.upkeep:
            upkeep.start()
        async with asyncio.TaskGroup() as tasks:
            writing = tasks.create_task(_write_usage(usage), name="write usage counts")
            try:
                yield
            finally:
                writing.cancel()
                await run_sync(upkeep.close)
                for count in counts:
                    await run_sync(count.close)
                await run_sync(usage.flush)

    return life


def _warm(archive: Archive, counts: tuple[Totals, Work], search: Search) -> None:
    """Count, and open the search index, before the first request; what cannot be done now, the first request will."""
    try:
        with archive.database.read() as session:
            for count in counts:
                count.read(session)
        search.ask(Request())
    except HoldfastError as exc:
        _log.warning("api.cold", message=str(exc))


async def _write_usage(usage: UsageTally) -> None:
    while True:
        await asyncio.sleep(_FLUSH_S)
        await run_sync(usage.flush)
