"""A cache whose entries live ten times as long as they took to compute.

Cheap values are therefore never stale, and expensive ones cost at most a tenth of a core.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import Lock
from typing import Final, Generic, TypeVar

from cachetools import LRUCache

from holdfast.clock import Clock

_REST: Final = 10.0
T = TypeVar("T")


class _Kept(Generic[T]):
    def __init__(self) -> None:
        self.making = Lock()
        self.answers: list[T] = []
        """Empty or one value."""
        self.until = 0.0


class AdaptiveCache(Generic[T]):
    """The newest values of a process, evicted least recently used first. One thread at a time computes each value."""

    def __init__(self, clock: Clock, *, kept: int) -> None:
        self._clock = clock
        self._lock = Lock()
        self._kept: LRUCache[Hashable, _Kept[T]] = LRUCache(kept)

    def read(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the cached or a new value. The key must include everything that the value depends on."""
        with self._lock:
            kept = self._kept.setdefault(key, _Kept())
        if kept.answers and self._clock.monotonic() < kept.until:
            return kept.answers[0]
        # A request with an old value uses it instead of waiting for the one that is being made.
        if not kept.making.acquire(blocking=not kept.answers):
            return kept.answers[0]
        try:
            began = self._clock.monotonic()
            if not kept.answers or began >= kept.until:
                kept.answers[:] = [make()]
                ended = self._clock.monotonic()
                kept.until = ended + _REST * (ended - began)
            return kept.answers[0]
        finally:
            kept.making.release()
