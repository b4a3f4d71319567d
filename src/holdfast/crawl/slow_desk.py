"""A second thread for documents that take seconds to read, so that the others need not wait behind them.

It holds a bounded amount of memory: who brings more waits until there is room.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Condition

ROOM_BYTES = 48 * 1024 * 1024
"""Documents that wait here are in memory, decoded; one of the largest size that is parsed always fits."""


class SlowDesk:
    """Does one thing after the other."""

    def __init__(self, room_bytes: int = ROOM_BYTES) -> None:
        self._room_bytes = room_bytes
        self._held = 0
        self._freed = Condition()
        self._closed = False
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="slow-desk")

    def put(self, call: Callable[[], None], *, size: int) -> None:
        """Have something done that holds so many bytes until then; waits while there is no room for them."""
        with self._freed:
            self._freed.wait_for(lambda: self._held == 0 or self._held + size <= self._room_bytes or self._closed)
            self._held += size
        self._thread.submit(self._do, call, size)

    def _do(self, call: Callable[[], None], size: int) -> None:
        try:
            call()
        finally:
            with self._freed:
                self._held -= size
                self._freed.notify_all()

    def close(self, *, wait: bool) -> None:
        """Take nothing more; finish what is here if `wait`."""
        with self._freed:
            self._closed = True
            self._freed.notify_all()
        self._thread.shutdown(wait=wait)
