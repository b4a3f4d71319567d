"""A cache of whole responses: searches, and records as they were captured.

The key holds the request, everything that decides what its viewer may see, and the generation of the index.
Entries live for a few seconds.
"""

from __future__ import annotations

import asyncio
import contextvars
import re
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from threading import Lock
from typing import Any, NamedTuple

from cachetools import TTLCache
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast import log
from holdfast.api.middleware.request_ids import CAPABILITY
from holdfast.api.routing import credential_error
from holdfast.clock import Clock
from holdfast.db.prepared import RawConnections
from holdfast.errors import HoldfastError
from holdfast.withdrawals.viewers import viewer
from holdfast.withdrawals.visibility import VISIBILITY_MARK

KEPT_S = 5.0
"""Maximum age of a response. Takedowns and members-only sources apply immediately, because the key includes them."""
_BYTES = 32 * 1024**2
_LARGEST = 512 * 1024
SEARCHES = re.compile(r"/api/search")
RECORDS = re.compile(r"/web/[0-9]{14}id_/.*", re.S)
_log = log.get()


class RawResponse(NamedTuple):
    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class KeptResponses:
    """Cached responses of one process, evicted least recently used first."""

    def __init__(self, clock: Clock, connections: RawConnections) -> None:
        self._connections, self._lock = connections, Lock()
        self._kept: TTLCache[Any, tuple[RawResponse, int]] = TTLCache(
            maxsize=_BYTES, ttl=KEPT_S, timer=clock.monotonic, getsizeof=lambda kept: kept[1]
        )

    @property
    def size(self) -> int:
        """Bytes of the entries with their keys."""
        with self._lock:
            return int(self._kept.currsize)

    def find(self, asked: tuple[Any, ...]) -> tuple[Any, RawResponse | None]:
        """Return the key for the viewer of this context, and its response; raise Unavailable without a database."""
        with self._connections.read() as (tx, dialect):
            marks = VISIBILITY_MARK.rows(tx, dialect)
        # Read before the route runs: otherwise a response could be stored under a state that came after it.
        key = (*asked, tuple(map(tuple, marks)), viewer())
        with self._lock:
            found = self._kept.get(key)
        return key, None if found is None else found[0]

    def keep(self, key: Any, answer: RawResponse) -> None:
        # Include the key: otherwise requests for an empty record with ever different headers would have no weight.
        size = len(answer.body) + _weight(answer.headers) + _weight(key)
        if answer.status == 200 and size <= _LARGEST:
            with self._lock:
                self._kept[key] = answer, size


class ResponseCache:
    """Responds from memory; otherwise passes a request on and stores its response."""

    def __init__(
        self,
        app: ASGIApp,
        kept: KeptResponses,
        threads: Executor,
        *,
        paths: re.Pattern[str],
        key: Callable[[Scope], tuple[Any, ...]],
        make: Callable[[Scope], RawResponse | None] = lambda _scope: None,
        count_hit: Callable[[], None] = lambda: None,
    ) -> None:
        """Wrap `app` for GET requests of `paths`; `key` holds all that a response depends on except its viewer.

        `make` responds without the application, or returns None; it runs on one of the `threads`, like `key`.
        """
        self._app, self._kept, self._threads = app, kept, threads
        self._paths, self._key, self._make, self._count_hit = paths, key, make, count_hit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request. The route words all errors: what fails here is passed on."""
        # The guard of the route rejects an invalid credential.
        is_get = scope["method"] == "GET"
        if not is_get or credential_error(scope) is not None or not self._paths.fullmatch(scope["path"]):
            await self._app(scope, receive, send)
            return
        # Run it in a copy of this context, which has the viewer.
        work = partial(contextvars.copy_context().run, self._answer, scope)
        key = answer = None
        try:
            key, answer = await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except HoldfastError:
            pass
        except Exception as exc:
            _log.warning("response_cache.failed", path=scope["path"], message=str(exc).partition("\n")[0])
        if answer is not None:
            await send({"type": "http.response.start", "status": answer.status, "headers": [*answer.headers]})
            await send({"type": "http.response.body", "body": answer.body})
        else:
            await self._app(scope, receive, send if key is None else _collected(send, partial(self._kept.keep, key)))

    def _answer(self, scope: Scope) -> tuple[Any, RawResponse | None]:
        key, found = self._kept.find(self._key(scope))
        if found is not None:
            self._count_hit()
        elif (found := self._make(scope)) is not None:
            self._kept.keep(key, found)
        return key, found


def record_key(scope: Scope) -> tuple[Any, ...]:
    # Include all headers: the response depends on ranges, conditions and accepted encodings. Include the capability:
    # the response's links contain it, and a client must not get one that expires later than its own.
    address = (scope.get("raw_path"), scope["path"], scope["query_string"], scope.get(CAPABILITY, ""))
    return ("record", *address, tuple(scope["headers"]))


def _weight(value: Any) -> int:
    """Return the approximate bytes of a value: its texts, and 64 for each part."""
    if isinstance(value, tuple | list):
        return 64 + sum(map(_weight, value))
    return 64 + len(value) if isinstance(value, str | bytes) else 64


def _collected(send: Send, keep: Callable[[RawResponse], None]) -> Send:
    status, headers, body = 0, [], b""

    async def collected(message: Message) -> None:
        nonlocal status, headers, body
        if message["type"] == "http.response.start":
            # Copy the list: the layers around add headers of each request to it.
            status, headers = message["status"], [*message.get("headers", ())]
        elif message["type"] == "http.response.body" and len(body) <= _LARGEST:
            body += message.get("body", b"")
            if not message.get("more_body", False):
                keep(RawResponse(status, headers, body))
        await send(message)

    return collected
