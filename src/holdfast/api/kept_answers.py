"""What is asked for again is answered from memory: searches, and records as they were captured. The bytes of an answer
are kept under the request, what decides what its viewer may see, and the generation of the index; for a few seconds,
and up to a size.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from threading import Lock
from typing import Any, NamedTuple

from cachetools import TTLCache
from starlette.types import Message, Scope, Send

from holdfast.api.middleware.request_ids import CAPABILITY
from holdfast.api.quick import QuickAnswer, QuickHandler
from holdfast.clock import Clock
from holdfast.db.prepared import RawConnections
from holdfast.metrics import ServerMetrics
from holdfast.withdrawals.viewers import viewer
from holdfast.withdrawals.visibility import VISIBILITY_MARK

KEPT_S = 5.0
"""How old an answer may be. Withdrawals, and sources that become members', hold at once: they are part of the key."""
_BYTES = 32 * 1024**2
_LARGEST = 512 * 1024
_KEY = "holdfast_kept_answer"


_RECORD = re.compile(r"/web/[0-9]{14}id_/")


class _Kept(NamedTuple):
    answer: QuickAnswer
    size: int


class KeptAnswers:
    """Answers of one process, the least recent forgotten first."""

    def __init__(self, clock: Clock, metrics: ServerMetrics) -> None:
        self._metrics = metrics
        self._lock = Lock()
        self._kept: TTLCache[Any, _Kept] = TTLCache(
            maxsize=_BYTES, ttl=KEPT_S, timer=clock.monotonic, getsizeof=lambda kept: kept.size
        )

    @property
    def size(self) -> int:
        """Bytes that are kept, with what they are kept under."""
        with self._lock:
            return int(self._kept.currsize)

    def searches(self, plain: Callable[[Scope], QuickAnswer | None], generation: Callable[[], object]) -> QuickHandler:
        """Return the quick way of `/api/search`: what is kept, if it still holds, or else what answers a plain one.

        What was found in one generation of the index does not hold in the next.
        """

        def answer(scope: Scope, connections: RawConnections) -> QuickAnswer | None:
            if scope["path"] != "/api/search":
                return None
            found = self._look(scope, connections, ("search", scope["query_string"], generation()))
            if found is not None:
                self._metrics.searched("kept")
                return found
            made = plain(scope)
            if made is not None:
                self._keep(scope[_KEY], made)
            return made

        return answer

    def records(self) -> QuickHandler:
        """Return the quick way of `/web/…id_/…`: a record that was sent a moment ago."""

        def answer(scope: Scope, connections: RawConnections) -> QuickAnswer | None:
            if not _RECORD.match(scope["path"]):
                return None
            # All headers: a range, a condition or a coding that is accepted makes another answer. The capability, too:
            # it stands in the links of an answer, and one that ends later must not come to who holds another.
            address = (scope.get("raw_path"), scope["path"], scope["query_string"], scope.get(CAPABILITY, ""))
            return self._look(scope, connections, ("record", *address, tuple(scope["headers"])))

        return answer

    def _look(self, scope: Scope, connections: RawConnections, asked: tuple[Any, ...]) -> QuickAnswer | None:
        with connections.read() as (tx, dialect):
            marks = VISIBILITY_MARK.rows(tx, dialect)
        # Read before the route runs: an answer never stands under the key of what changed meanwhile.
        key = (*asked, tuple(map(tuple, marks)), viewer())
        with self._lock:
            found = self._kept.get(key)
        if found is None:
            scope[_KEY] = key
            return None
        return found.answer

    def keeping(self, scope: Scope, send: Send) -> Send:
        """Return what sends an answer and keeps it, if it is one that the quick way looked for."""
        key = scope.get(_KEY)
        return send if key is None else _collected(send, lambda answer: self._keep(key, answer))

    def _keep(self, key: Any, answer: QuickAnswer) -> None:
        # The key, too: an empty record that is asked for with ever other headers would cost nothing else.
        size = len(answer.body) + _weight(answer.headers) + _weight(key)
        if answer.status == 200 and size <= _LARGEST:
            with self._lock:
                self._kept[key] = _Kept(answer, size)


def _weight(value: Any) -> int:
    """Return about how many bytes a value takes: its texts, and a little for each part."""
    if isinstance(value, tuple | list):
        return 64 + sum(map(_weight, value))
    return 64 + len(value) if isinstance(value, str | bytes) else 64


def _collected(send: Send, keep: Callable[[QuickAnswer], None]) -> Send:
    status, headers, body = 0, [], b""

    async def collected(message: Message) -> None:
        nonlocal status, headers, body
        if message["type"] == "http.response.start":
            # A copy: the layers around add headers of each request to the list.
            status, headers = message["status"], [*message.get("headers", ())]
        elif message["type"] == "http.response.body" and len(body) <= _LARGEST:
            body += message.get("body", b"")
            if not message.get("more_body", False):
                keep(QuickAnswer(status, headers, body))
        await send(message)

    return collected
