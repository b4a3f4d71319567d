"""Background work of a server, from start to shutdown: counts totals, writes usage, and runs upkeep."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from threading import Event, Thread
from typing import Any, Protocol

from anyio.to_thread import current_default_thread_limiter, run_sync
from fastapi import FastAPI
from starlette.datastructures import State

from holdfast import log
from holdfast.api.dependencies import THREADS
from holdfast.api.figures import CountedTotals, CountedWork
from holdfast.api.live.hub import Hub
from holdfast.api.readiness import BesideState
from holdfast.api.upkeep import Upkeep
from holdfast.db.engine import limit_statements
from holdfast.errors import HoldfastError
from holdfast.operations.launching import OperationLauncher
from holdfast.replay.renderer import lacking_files
from holdfast.search.search import SearchRequest
from holdfast.sources.members_file import note_members
from holdfast.webhooks.delivery import DeliveryThread
from holdfast.wiring.archive import Archive
from holdfast.wiring.server import END_STREAMS

_log = log.get()
# How long a start waits for the search index: that of 20,000 captures opens in 0.2 s; a larger one opens while requests
# are served.
_OPEN_S = 1.0
# First delay before a failed start is retried; later delays grow.
_AGAIN_S = 1.0
_LONGEST_AGAIN_S = 60.0
_LET_GO_S = 5.0
_FLUSH_S = 10.0
STATEMENT_S = 10.0
"""Timeout of a statement within a request."""


class _Part(Protocol):
    def start(self) -> None: ...

    def close(self) -> None: ...


class BackgroundTasks:
    """Opens the search index and starts the background work of a server.

    A part that fails to start is retried until it starts, and does not delay the others.
    """

    def __init__(self, archive: Archive, state: State, *, again_s: float = _AGAIN_S) -> None:
        self._archive, self._state, self._again_s = archive, state, again_s
        self._ending, self._opened = Event(), Event()
        self._begun: list[_Part] = []
        # Open the index last: it may take long, and no other part needs it.
        self._waiting = {**self._wanted(), "search": self._open_search}
        self._states: dict[str, BesideState] = {}
        self._reported: dict[str, str] = {}
        self._thread = Thread(target=self._run, name="beside requests", daemon=True)

    def start(self) -> None:
        """Start all parts; return once the search index is open, has failed to open, or takes longer than a second."""
        self._thread.start()
        self._opened.wait(_OPEN_S)

    def states(self) -> dict[str, BesideState]:
        """Return the state of each part that has failed to start so far."""
        return dict(self._states)

    def close(self) -> None:
        self._ending.set()
        if self._thread.is_alive():
            # A large index takes longer to open; its thread ends with the process and starts nothing else.
            self._thread.join(_LET_GO_S)
        for part in self._begun:
            part.close()

    def _wanted(self) -> dict[str, Callable[[], None]]:
        settings, found = self._archive.settings, dict[str, Callable[[], None]]()
        if settings.api.upkeep:
            found["operations"] = lambda: self._begin(OperationLauncher(settings, self._archive.clock))
            found["upkeep"] = lambda: self._begin(Upkeep(self._archive))
        if settings.webhooks.deliver:
            found["webhooks"] = self._begin_webhooks
        return found

    def _run(self) -> None:
        rest_s, again_s = 0.0, self._again_s
        while self._waiting and not self._ending.wait(rest_s):
            for name, begin in tuple(self._waiting.items()):
                if self._tried(name, begin):
                    del self._waiting[name]
                    self._states.pop(name, None)
            rest_s, again_s = again_s, min(2 * again_s, _LONGEST_AGAIN_S)

    def _tried(self, name: str, begin: Callable[[], None]) -> bool:
        """Start one part and return whether it started. Each failure reason is logged once."""
        if self._ending.is_set():
            return False
        try:
            begin()
        except Exception as exc:
            # If the thread ended here, no request would notice that the others were never started.
            self._states[name] = BesideState.NOT_BEGUN
            known, self._reported[name] = self._reported.get(name), repr(exc)
            if known != self._reported[name] and isinstance(exc, HoldfastError):
                _log.warning("api.cold", part=name, message=str(exc))
            elif known != self._reported[name]:
                _log.exception("api.cold", part=name)
            return False
        return True

    def _open_search(self) -> None:
        self._states["search"] = BesideState.OPENING
        try:
            self._state.search.ask(SearchRequest())
        finally:
            self._opened.set()

    def _begin_webhooks(self) -> None:
        archive, settings = self._archive, self._archive.settings
        poll_s = settings.timings.webhooks_poll_s
        self._begin(DeliveryThread(archive.database, archive.clock, settings.webhooks, poll_s=poll_s))

    def _begin(self, part: _Part) -> None:
        if not self._ending.is_set():
            part.start()
            self._begun.append(part)


def lifespan_of(archive: Archive) -> Callable[[FastAPI], AbstractAsyncContextManager[dict[str, Any]]]:
    """Return the ASGI lifespan for this archive; it writes the counts of requests regularly, and again at shutdown."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[dict[str, Any]]:
        # The default is forty: that many threads would compete for the pool of connections.
        current_default_thread_limiter().total_tokens = THREADS
        # A slow statement must not hold a connection, and with it a request's thread, until its end.
        limit_statements(archive.database.engine, seconds=STATEMENT_S)
        state = app.state
        counts: tuple[CountedTotals, CountedWork] = (state.totals, state.work)
        written = (state.usage.flush, state.accounts.identities.flush, state.metrics.share)
        hub: Hub = state.hub
        await run_sync(_warm, archive, counts)
        state.beside = beside = BackgroundTasks(archive, state)
        await run_sync(beside.start)
        async with asyncio.TaskGroup() as tasks:
            writing = tasks.create_task(_write_counts(written), name="write counts")
            try:
                # The server calls this when it starts to stop: it waits for open streams before the lifespan ends.
                yield {END_STREAMS: hub.end}
            finally:
                hub.end()
                # Keep this order: when the last counts are written, nothing else writes.
                writing.cancel()
                state.readiness.close()
                await run_sync(beside.close)
                for count in counts:
                    await run_sync(count.close)
                for service in (state.frontier_counts, state.frontier):
                    await run_sync(service.close)
                await _write_all(written)
                await state.rates.close()
                for threads in (state.record_threads, state.search_threads):
                    await run_sync(threads.shutdown)
                archive.database.raw_reads.close()

    return lifespan


def _warm(archive: Archive, counts: tuple[CountedTotals, CountedWork]) -> None:
    """Count before the first request; if that fails, the first request will count."""
    try:
        with archive.database.read() as session:
            for count in counts:
                count.read(session)
        # A process that died between a change and its note left a note with too few or too many sources.
        note_members(archive.database, archive.home)
    except HoldfastError as exc:
        _log.warning("api.cold", message=str(exc))
    folder = archive.settings.replay.renderer_dir
    # Log it: otherwise an operator would search for a mode that is not offered.
    if folder is not None and (lacking := lacking_files(folder)):
        _log.warning("api.renderer_incomplete", folder=str(folder), lacking=lacking)


async def _write_counts(written: tuple[Callable[[], None], ...]) -> None:
    while True:
        await asyncio.sleep(_FLUSH_S)
        await _write_all(written)


async def _write_all(written: tuple[Callable[[], None], ...]) -> None:
    for write in written:
        try:
            await run_sync(write)
        except Exception:
            # If this ended the task, all background work would end with it, and no request would notice.
            _log.exception("api.counts_not_written")
