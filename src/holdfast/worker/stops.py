"""How a run hears that it is to end: from signals where it has the process to itself, from its worker otherwise."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_LOOK_S = 0.1
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stops:
    """How often somebody said stop: the first time drains, the second hands back at once."""

    def __init__(self) -> None:
        self._asked = 0
        self._is_abandoned = False

    @property
    def count(self) -> int:
        """How often stop was said so far."""
        return self._asked

    @property
    def abandoned(self) -> bool:
        """Whether another process has the execution now: end, and write nothing."""
        return self._is_abandoned

    def abandon(self) -> None:
        """Say that another process has the execution now: hand back at once, and write nothing."""
        self._is_abandoned = True
        self.ask(2)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the first word, at most so long; return whether it has come."""
        # No event that the handler sets: it may interrupt whoever holds the event's own lock.
        left = math.inf if timeout is None else timeout
        while not self.count and left > 0:
            time.sleep(min(_LOOK_S, left))
            left -= _LOOK_S
        return self.count > 0

    def ask(self, times: int) -> None:
        """Ask to stop, so often altogether; what was asked before stands."""
        self._asked = max(self._asked, times)


@contextmanager
def obeying_signals() -> Iterator[Stops]:
    """Count signals for the length of the block; only on the main thread, and in a process that does nothing else."""
    stops = Stops()

    def count(_number: int, _frame: FrameType | None) -> None:
        stops.ask(
            stops.count + 1
        )  # passed on by the next look, so that no process is missed that is just being started

    before = {number: signal.signal(number, count) for number in _SIGNALS}
    try:
        yield stops
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
