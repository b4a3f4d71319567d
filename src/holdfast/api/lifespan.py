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
from holdfast.api.readiness import BesideState
from holdfast.db.engine import limit_statements
from holdfast.errors import HoldfastError
from holdfast.wiring.archive import Archive
from holdfast.wiring.server import END_STREAMS

_log = log.get()
# From the start until what runs beside requests begins: all of it loads a lot, and the first requests share the
# interpreter with it. Who searches before does not wait for it.
_SETTLE_S = 0.5
# What could not begin is tried again so soon at first, and then at longer and longer intervals.
_AGAIN_S = 1.0
_LONGEST_AGAIN_S = 60.0
_LET_GO_S = 5.0
_FLUSH_S = 10.0
STATEMENT_S = 10.0
"""Longest time of a statement that a request waits for."""


class _Part(Protocol):
    def start(self) -> None: ...

    def close(self) -> None: ...


class BesideRequests:
    """A thread that begins what runs beside requests and opens the search index, once the first had their turn.

    What cannot begin is tried again until it can, and keeps nothing else from it.
    """

    def __init__(
        self, archive: Archive, state: LateState, *, settle_s: float = _SETTLE_S, again_s: float = _AGAIN_S
    ) -> None:
        self._archive, self._state, self._settle_s, self._again_s = archive, state, settle_s, again_s
        self._ending = Event()
        self._begun: list[_Part] = []
        # The index last: it may take long to open, and none of the others needs it.
        self._waiting = {**self._wanted(), "search": self._open_search}
        self._states: dict[str, BesideState] = {}
        self._told: dict[str, str] = {}
        self._thread = Thread(target=self._run, name="beside requests", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def states(self) -> dict[str, BesideState]:
        """Return what was tried and is not there yet, by part."""
        return dict(self._states)

    def close(self) -> None:
        """End all that was begun, in its order; does nothing if none ever began."""
        self._ending.set()
        if self._thread.is_alive():
            # A large index takes longer to open; that thread ends with the process, and begins nothing more.
            self._thread.join(_LET_GO_S)
        for part in self._begun:
            part.close()

    def _wanted(self) -> dict[str, Callable[[], None]]:
        settings, found = self._archive.settings, dict[str, Callable[[], None]]()
        if settings.api.upkeep:
            found |= {"operations": self._begin_operations, "upkeep": self._begin_upkeep}
        if settings.webhooks.deliver:
            found["webhooks"] = self._begin_webhooks
        return found

    def _run(self) -> None:
        rest_s, again_s = self._settle_s, self._again_s
        while self._waiting and not self._ending.wait(rest_s):
            for name, begin in tuple(self._waiting.items()):
                if self._tried(name, begin):
                    del self._waiting[name]
                    self._states.pop(name, None)
            rest_s, again_s = again_s, min(2 * again_s, _LONGEST_AGAIN_S)

    def _tried(self, name: str, begin: Callable[[], None]) -> bool:
        """Begin one part; return whether it is begun. Whatever it fails with is told once for each reason."""
        if self._ending.is_set():
            return False
        try:
            begin()
        except Exception as exc:
            # If the thread ended here, no request would notice that the rest was never begun.
            is_lost = name == "search" and not self._state.is_made(name)
            self._states[name] = BesideState.NOT_LOADED if is_lost else BesideState.NOT_BEGUN
            told, self._told[name] = self._told.get(name), repr(exc)
            if told != self._told[name] and isinstance(exc, HoldfastError):
                _log.warning("api.cold", part=name, message=str(exc))
            elif told != self._told[name]:
                _log.exception("api.cold", part=name)
            return False
        return True

    def _open_search(self) -> None:
        search = self._state.search
        self._states["search"] = BesideState.OPENING
        search.ask(load("holdfast.search.search").SearchRequest())

    def _begin_operations(self) -> None:
        self._begin(self._state.operations)

    def _begin_upkeep(self) -> None:
        self._begin(load("holdfast.api.upkeep").Upkeep(self._archive))

    def _begin_webhooks(self) -> None:
        archive = self._archive
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
        state.beside = beside = BesideRequests(archive, state)
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
        # A process that died between a change and its note left one that names too few or too many.
        load("holdfast.sources.members_file").note_members(archive.database, archive.home)
    except HoldfastError as exc:
        _log.warning("api.cold", message=str(exc))
    folder = archive.settings.replay.renderer_dir
    # Without a word an operator would look for a mode that is not offered.
    if folder is not None and (lacking := load("holdfast.replay.renderer").lacking_files(folder)):
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
            # If this ended the task, all that runs beside the requests would end with it, and no request would notice.
            _log.exception("api.counts_not_written")
