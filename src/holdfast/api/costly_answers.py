"""Answers that take long to make are given again for a while: ten times as long as making them took.

What is quick is made anew each time, so that it is never old; what takes long costs no more than a tenth of a core.
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
    """The newest answer to one question."""

    def __init__(self) -> None:
        self.making = Lock()
        self.answers: list[T] = []
        """None or one."""
        self.until = 0.0


class CostlyAnswers(Generic[T]):
    """The newest answers of a process, the longest unused forgotten first; one at a time is made for each question."""

    def __init__(self, clock: Clock, *, kept: int) -> None:
        self._clock = clock
        self._lock = Lock()
        self._kept: LRUCache[Hashable, _Kept[T]] = LRUCache(kept)

    def read(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the answer to a question, of now or of a moment ago; whatever decides what it may hold is its key."""
        with self._lock:
            kept = self._kept.setdefault(key, _Kept())
        if kept.answers and self._clock.monotonic() < kept.until:
            return kept.answers[0]
        # A request that has an answer to give does not wait for another one that is being made.
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
