"""The bell that wakes the main thread: a signal asks for the end, or a stage's output came to its own."""

from __future__ import annotations

import signal
from collections.abc import Callable
from queue import Empty, SimpleQueue
from types import FrameType

from holdfast.clock import Clock


class Bell:
    """Waiting that can be cut short. Safe to ring from threads and from signal handlers: SimpleQueue re-enters."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rung: SimpleQueue[None] = SimpleQueue()
        self.requests = 0
        """How often somebody asked for the end; the second time it is urgent."""

    @property
    def stopping(self) -> bool:
        """Whether somebody asked for the end."""
        return self.requests > 0

    def ring(self) -> None:
        """Wake whoever waits."""
        self._rung.put(None)

    def ask_to_stop(self, _number: int = 0, _frame: FrameType | None = None) -> None:
        """Ask for the end; also a signal handler."""
        self.requests += 1
        self.ring()

    def catch_signals(self) -> None:
        """Take SIGTERM and SIGINT as a request to end."""
        signal.signal(signal.SIGTERM, self.ask_to_stop)
        signal.signal(signal.SIGINT, self.ask_to_stop)

    def wait(self, seconds: float) -> None:
        """Return at the next ring, or after this long."""
        try:
            self._rung.get(timeout=max(0.0, seconds))
        except Empty:
            return

    def wait_until(self, done: Callable[[], bool], seconds: float) -> bool:
        """Wait until something is so, or this long has passed; return whether it is so."""
        deadline = self._clock.monotonic() + seconds
        while not done():
            left = deadline - self._clock.monotonic()
            if left <= 0:
                return False
            self.wait(left)
        return True

    def pause(self, seconds: float) -> bool:
        """Wait this long unless somebody asks for the end; return whether somebody did."""
        return self.wait_until(lambda: self.stopping, seconds)
