"""What runs beside the requests from the server's start to its end: totals made ready, usage written, upkeep done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from threading import Event, Thread
from typing import Any, Protocol

from anyio.to_thread import current_default_thread_limiter, run_sync
from fastapi import FastAPI

from holdfast import log
from holdfast.api.dependencies import THREADS
from holdfast.api.figures import CountedTotals, CountedWork
from holdfast.api.listed_routes import ListedRoute
from holdfast.api.live.hub import Hub
from holdfast.api.loading import LateState, load
from holdfast.db.engine import limit_statements
from holdfast.errors import HoldfastError
from holdfast.wiring.archive import Archive
from holdfast.wiring.server import END_STREAMS

_log = log.get()
# From the start until what runs beside requests begins: all of it loads a lot, and the first requests share the
# interpreter with it. Who searches before does not wait for it.
_SETTLE_S = 0.5
_LET_GO_S = 5.0
_FLUSH_S = 10.0
STATEMENT_S = 10.0
"""Longest time of a statement that a request waits for."""


class _Part(Protocol):
    def start(self) -> None: ...

    def close(self) -> None: ...


class BesideRequests:
    """A thread that opens the search index and begins what else runs beside requests, once the first had their turn."""

    def __init__(self, archive: Archive, state: LateState, *, settle_s: float = _SETTLE_S) -> None:
        self._archive, self._state, self._settle_s = archive, state, settle_s
        self._ending = Event()
        self._begun: list[_Part] = []
        self._thread = Thread(target=self._run, name="beside requests", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """End all that was begun, in its order; does nothing if none ever began."""
        self._ending.set()
        if self._thread.is_alive():
            # A large index takes longer to open; that thread ends with the process, and begins nothing more.
            self._thread.join(_LET_GO_S)
        for part in self._begun:
            part.close()

    def _run(self) -> None:
        if self._ending.wait(self._settle_s):
            return
        for begin in (self._open_search, self._begin_upkeep, self._begin_webhooks):
            try:
                begin()
            except HoldfastError as exc:
                # What cannot be done now, the first request will.
                _log.warning("api.cold", message=str(exc))
            except Exception:
                # If the thread ended here, no request would notice that the rest was never begun.
                _log.exception("api.cold")

    def _open_search(self) -> None:
        self._state.search.ask(load("holdfast.search.search").SearchRequest())

    def _begin_upkeep(self) -> None:
        if self._archive.settings.api.upkeep:
            self._begin(self._state.operations)
            self._begin(load("holdfast.api.upkeep").Upkeep(self._archive))

    def _begin_webhooks(self) -> None:
        archive = self._archive
        if archive.settings.webhooks.deliver:
            delivery = load("holdfast.webhooks.delivery")
            self._begin(delivery.DeliveryThread(archive.database, archive.clock, archive.settings.webhooks))

    def _begin(self, part: _Part) -> None:
        if not self._ending.is_set():
            part.start()
            self._begun.append(part)


def lifespan_of(
    archive: Archive,
    counts: tuple[CountedTotals, CountedWork],
    written: tuple[Callable[[], None], ...],
    hub: Hub,
) -> Callable[[FastAPI], AbstractAsyncContextManager[dict[str, Any]]]:
    """Return the lifespan of the application that serves this archive; `written` is called now and then, and last."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[dict[str, Any]]:
        # Forty by default: that many threads would wait for the pool of connections and starve each other.
        current_default_thread_limiter().total_tokens = THREADS
        # One slow statement must not hold a connection, and with it a thread of the requests, until it ends.
        limit_statements(archive.database.engine, seconds=STATEMENT_S)
        state = app.state
        assert isinstance(state, LateState)
        await run_sync(_build_probes, state)
        await run_sync(_warm, archive, counts)
        beside = BesideRequests(archive, state)
        beside.start()
        async with asyncio.TaskGroup() as tasks:
            writing = tasks.create_task(_write_counts(written), name="write counts")
            try:
                # The server calls it as soon as it is told to stop: it waits for open streams before it ends this.
                yield {END_STREAMS: hub.end}
            finally:
                hub.end()
                # In this order: nothing writes any more when the last counts are written.
                writing.cancel()
                app.state.readiness.close()
                await run_sync(beside.close)
                for count in counts:
                    await run_sync(count.close)
                for name in ("frontier_counts", "frontier", "operations"):
                    if state.is_made(name):
                        await run_sync(getattr(state, name).close)
                await _write_all(written)
                await app.state.rates.close()
                await run_sync(app.state.quick.close)
                await run_sync(app.state.search_threads.close)
                app.state.connections.close()

    return lifespan


def _build_probes(state: LateState) -> None:
    """Load what supervisors and balancers ask: it must not wait while the modules of other routes are loaded."""
    for route in state.routes:
        if isinstance(route, ListedRoute) and route.path.startswith("/health/"):
            route.build()


def _warm(archive: Archive, counts: tuple[CountedTotals, CountedWork]) -> None:
    """Count before the first request; what cannot be done now, the first request will."""
    try:
        with archive.database.read() as session:
            for count in counts:
                count.read(session)
    except HoldfastError as exc:
        _log.warning("api.cold", message=str(exc))


async def _write_counts(written: tuple[Callable[[], None], ...]) -> None:
    while True:
        await asyncio.sleep(_FLUSH_S)
        await _write_all(written)


async def _write_all(written: tuple[Callable[[], None], ...]) -> None:
    for write in written:
        try:
            await run_sync(write)
        except Exception:
            # If this ended the task, all that runs beside the requests would end with it, and no request would notice.
            _log.exception("api.counts_not_written")
