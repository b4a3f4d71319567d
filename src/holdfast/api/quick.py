"""Single rows, answered with one statement on one thread: no session, no dependencies, nothing that is made anew.

What is asked for in any other way than the plain one, is not found, or fails, goes on to the route of the same path,
which says what is wrong. A test holds the answers of both against each other.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, NamedTuple

from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast import log
from holdfast.api.permissions import credential_error
from holdfast.db.prepared import RawConnections
from holdfast.errors import HoldfastError

_log = log.get()
_THREADS = 4
SEARCH_THREADS = 6
"""Threads for searches, most of which take a few milliseconds."""


class QuickAnswer(NamedTuple):
    """A whole answer."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


QuickHandler = Callable[[Scope, RawConnections], QuickAnswer | None]
"""Answers on a thread; None if the route has to."""


class _Job(NamedTuple):
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    context: contextvars.Context
    work: Callable[[], Any]


class QuickThreads:
    """A few threads for short work; begun by the first request, ended by `close`."""

    def __init__(self, count: int = _THREADS) -> None:
        self._count = count
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._threads: list[Thread] = []
        self._beginning = Lock()

    async def run(self, work: Callable[[], Any]) -> Any:
        """Return what the work returns; it sees what this context holds, such as who looks."""
        if not self._threads:
            self._begin()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._jobs.put(_Job(loop, future, contextvars.copy_context(), work))
        return await future

    def _begin(self) -> None:
        with self._beginning:
            if not self._threads:
                self._threads = [
                    Thread(target=self._serve, name=f"quick {number}", daemon=True) for number in range(self._count)
                ]
                for thread in self._threads:
                    thread.start()

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                found, error = job.context.run(job.work), None
            except Exception as exc:
                found, error = None, exc
            try:
                job.loop.call_soon_threadsafe(_settle, job.future, found, error)
            except RuntimeError:
                # The loop was closed: the server has ended, and no client waits.
                continue

    def close(self) -> None:
        """End the threads; does nothing if none ever began."""
        with self._beginning:
            threads, self._threads = self._threads, []
        for _ in threads:
            self._jobs.put(None)
        for thread in threads:
            thread.join()


def _settle(future: asyncio.Future[Any], found: Any, error: Exception | None) -> None:
    if future.cancelled():
        return
    if error is None:
        future.set_result(found)
    else:
        future.set_exception(error)


class QuickWay(NamedTuple):
    """What answers a path, and on which threads: what may take longer has its own, so that single rows do not wait."""

    answer: QuickHandler
    threads: QuickThreads


class QuickRoutes:
    """Answers the paths that have a quick way, and hands everything else on."""

    def __init__(
        self,
        app: ASGIApp,
        ways: dict[str, QuickWay],
        connections: RawConnections,
        keeping: Callable[[Scope, Send], Send] | None = None,
    ) -> None:
        """Take the ways by the first segment of their path or its first two, and what keeps other answers."""
        self._app, self._ways, self._connections = app, ways, connections
        self._keeping = keeping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        # A credential that is not valid is refused by the guard of the route.
        if scope["type"] != "http" or scope["method"] != "GET" or credential_error(scope) is not None:
            await self._app(scope, receive, send)
            return
        if (way := self._way(scope["path"])) is not None:
            try:
                answer = await way.threads.run(lambda: way.answer(scope, self._connections))
            except HoldfastError:
                # Asked again, the route finds out what it was, and words it.
                answer = None
            except Exception as exc:
                _log.warning("quick.failed", path=scope["path"], message=str(exc).partition("\n")[0])
                answer = None
            if answer is not None:
                await send({"type": "http.response.start", "status": answer.status, "headers": [*answer.headers]})
                await send({"type": "http.response.body", "body": answer.body})
                return
            if self._keeping is not None:
                send = self._keeping(scope, send)
        await self._app(scope, receive, send)

    def _way(self, path: str) -> QuickWay | None:
        first = path.find("/", 1)
        if first < 0:
            return self._ways.get(path)
        second = path.find("/", first + 1)
        return self._ways.get(path[:second] if second > 0 else path) or self._ways.get(path[:first])


def json_answer(body: bytes) -> QuickAnswer:
    """Return JSON."""
    return QuickAnswer(200, [(b"content-length", b"%d" % len(body)), (b"content-type", b"application/json")], body)
