"""Runs slow work (exports, packages, comparisons, imports of sources), a few tasks at a time, on separate threads.

All other work has its own threads, so that searches and pages respond however many exports are requested. A
task holds a thread for one step at a time and never while a client reads: a slow reader blocks no one. The
first step of an export may take minutes (it sorts an index or writes a package); such steps have permits of
their own, so that comparisons, index queries and running downloads continue meanwhile. If the client
disconnects, the task stops at its next chunk (`holdfast.cancellation`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, nullcontext, suppress
from functools import partial
from threading import Event
from typing import AnyStr, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from anyio import CancelScope, CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from holdfast import cancellation
from holdfast.api.errors import ExportOutdated, ServerBusy
from holdfast.cancellation import WorkAbandoned
from holdfast.db.engine import Database
from holdfast.withdrawals.visibility import Mark, visibility_mark

HEAVY_THREADS = 3
"""Heavy steps that may run at the same time; more would take the interpreter from all other requests."""
EXPORT_THREADS = 2
"""Exports and packages that may start at the same time; threads for all heavy work then read their chunks."""
REPLAY_THREADS = 4
"""Archived pages rewritten at the same time, on threads that nothing else uses."""
# Number of requests that may wait for their first step; more are rejected immediately.
_WAITING = 8
_WAIT_S = 5.0
# Number of concurrent streamed responses: a slow reader occupies no thread, but holds a folder, open files and memory
# until the end.
_HOLDING = 8
_T = TypeVar("_T")


class Streamed(NamedTuple):
    """A response whose body is produced in chunks, each on a thread for heavy work."""

    pieces: Iterator[bytes]
    media_type: str
    headers: Mapping[str, str]
    status: int = 200
    is_holding: bool = False
    """Whether it holds more resources than an open file until it has been read completely."""
    is_rechecked: bool = False
    """Whether its chunks are read while they are sent, so that each is limited to what the viewer may see by then."""


class SlowTaskPool:
    """The threads for slow work and the queue for them; one per serving process."""

    def __init__(self) -> None:
        self._steps, self._exports = _Turns(HEAVY_THREADS), _Turns(EXPORT_THREADS)
        self._holding = 0

    async def answer(
        self, receive: Receive, work: Callable[[], Response | Streamed], *, is_export: bool = False
    ) -> Response:
        """Return the response of `work`; raise ServerBusy if no thread frees up soon, WorkAbandoned if the client
        leaves.

        The first chunk of a streamed response is produced before anything is sent, so that an error still gets a
        status. If `is_export`, both use an export permit.
        """
        turns = self._exports if is_export else self._steps
        async with _watched(receive) as left:
            made = await turns.run(work, left)
            if isinstance(made, Response):
                return made
            # Slow readers keep these open for as long as they like, and must not fill memory and disk.
            if made.is_holding and self._holding >= _HOLDING:
                raise ServerBusy
            self._holding += made.is_holding
            try:
                # A sent status cannot be changed: run the first step before, so that its failure still becomes an error
                # response.
                first = await turns.run(lambda: next(made.pieces, b""), left)
            except BaseException:
                await self._close(made)
                raise
        return _WatchedStream(self._pieces(first, made.pieces, left), made, left, partial(self._close, made))

    async def result(self, work: Callable[[], _T]) -> _T:
        """Return the result of `work`, a part of handling a request; raise ServerBusy if no thread frees up soon."""
        return await self._steps.run(work, Event())

    async def _close(self, made: Streamed) -> None:
        """Release what a streamed response holds (files, a sort directory), however it ended."""
        self._holding -= made.is_holding
        close = getattr(made.pieces, "close", None)
        if close is not None:
            with CancelScope(shield=True):
                # Do not use one of our threads: a client that is rejected because all are busy would wait for one of
                # them.
                await run_sync(close, limiter=CapacityLimiter(1))

    async def _pieces(self, first: bytes, pieces: Iterator[bytes], left: Event) -> AsyncGenerator[bytes]:
        # The client disconnected: there is no connection to respond on.
        with suppress(WorkAbandoned):
            piece: bytes | None = first
            while piece is not None:
                yield piece
                # Use a thread for one piece at a time: between two pieces a slow reader holds none.
                piece = await run_sync(_step, lambda: next(pieces, None), left, limiter=self._steps.limiter)


class ReplayTurns:
    """The threads that serve captures; each client address has one page rewritten at a time."""

    def __init__(self) -> None:
        self._threads = _Turns(REPLAY_THREADS)
        # A lock exists as long as a request of its address.
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def run(self, address: str | None, work: Callable[[], _T]) -> _T:
        """Return the result of `work`; with a client address, wait for its earlier requests first."""
        async with nullcontext() if address is None else self._turns.setdefault(address, asyncio.Lock()):
            return await run_sync(work, limiter=self._threads.limiter)


class _Turns:
    """A limited number of concurrent steps, and a queue for them."""

    def __init__(self, most: int) -> None:
        self.limiter, self._waiting = CapacityLimiter(most), 0

    async def run(self, work: Callable[[], _T], left: Event) -> _T:
        """Run a step for a client that has no response yet; raise ServerBusy if the queue is full or the wait is
        too long.
        """
        # More requests would wait in vain: each step takes seconds, and clients time out.
        if self._waiting >= _WAITING:
            raise ServerBusy
        self._waiting += 1
        try:
            async with asyncio.timeout(_WAIT_S):
                await self.limiter.acquire_on_behalf_of(token := object())
        except TimeoutError:
            raise ServerBusy from None
        finally:
            self._waiting -= 1
        try:
            # This request already has its turn; pass a limiter only to bypass the shared default one.
            return await run_sync(_step, work, left, limiter=CapacityLimiter(1))
        finally:
            self.limiter.release_on_behalf_of(token)


def _step(work: Callable[[], _T], left: Event) -> _T:
    with cancellation.until(left):
        cancellation.check()
        return work()


@asynccontextmanager
async def _watched(receive: Receive) -> AsyncIterator[Event]:
    """Yield an event that is set when the client disconnects while the block runs."""
    left = Event()

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        left.set()

    # Avoid a TaskGroup: it would wrap the exceptions that the block raises.
    watching = asyncio.create_task(watch(), name="watch for the client leaving")
    try:
        yield left
    finally:
        watching.cancel()
        await asyncio.wait([watching])


class _WatchedStream(StreamingResponse):
    """A streamed response that signals when its client disconnects, so that the running step ends too."""

    def __init__(
        self, pieces: AsyncGenerator[bytes], made: Streamed, left: Event, close: Callable[[], Awaitable[None]]
    ) -> None:
        super().__init__(pieces, made.status, dict(made.headers), made.media_type)
        self._source, self._left, self._close = pieces, left, close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the chunks; then release their source, even if the client left before the first one."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            with CancelScope(shield=True):
                await self._source.aclose()
                await self._close()

    async def listen_for_disconnect(self, receive: Receive) -> None:
        await super().listen_for_disconnect(receive)
        self._left.set()


def gathered(pieces: Iterable[AnyStr], *, size: int) -> Iterator[AnyStr]:
    """Yield chunks joined to at least `size`; a message per line would cost more than the line."""
    held: list[AnyStr] = []
    length = 0
    for piece in pieces:
        held.append(piece)
        length += len(piece)
        if length >= size:
            yield held[0][:0].join(held)
            held, length = [], 0
    if held:
        yield held[0][:0].join(held)


async def heavy_result(request: Request, work: Callable[[], _T]) -> _T:
    """Return the result of `work`, a part of handling a request, run on a thread for heavy work."""
    heavy: SlowTaskPool = request.app.state.heavy
    return await heavy.result(work)


async def heavily(request: Request, work: Callable[[], Response | Streamed]) -> Response:
    """Return the response of `work`, run on this process's threads for heavy work."""
    heavy: SlowTaskPool = request.app.state.heavy
    return await heavy.answer(request.receive, work)


async def export(request: Request, work: Callable[[], Response | Streamed]) -> Response:
    """Return the response of `work`; waits for one of the permits for exports and packages."""
    heavy: SlowTaskPool = request.app.state.heavy
    return await heavy.answer(request.receive, guarded(request, work), is_export=True)


def guarded(request: Request, work: Callable[[], _T]) -> Callable[[], _T]:
    """Return `work` wrapped so that its streamed response ends when the viewer's access changes."""
    database: Database = request.app.state.archive.database

    def run() -> _T:
        mark, made = _mark(database), work()
        if not isinstance(made, Streamed) or made.is_rechecked:
            return made
        return made._replace(pieces=while_visible(made.pieces, database, mark))

    return run


# Seconds between two checks of visibility: each is a statement.
_RECHECKED_BYTES = 1024 * 1024


def while_visible(pieces: Iterator[bytes], database: Database, mark: Mark) -> Iterator[bytes]:
    """Yield chunks until the viewer's access changes, then raise ExportOutdated.

    The content was selected earlier: without this check, a slow reader would for hours receive captures that have
    been taken down or made members-only.
    """
    unchecked = _RECHECKED_BYTES
    try:
        for piece in pieces:
            unchecked += len(piece)
            if unchecked >= _RECHECKED_BYTES:
                unchecked = 0
                if _mark(database) != mark:
                    raise ExportOutdated
            yield piece
    finally:
        if (close := getattr(pieces, "close", None)) is not None:
            close()


def _mark(database: Database) -> Mark:
    with database.read() as session:
        return visibility_mark(session)
