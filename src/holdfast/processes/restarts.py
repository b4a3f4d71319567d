"""Delay before an ended process is restarted: short at first, then longer; after ten ends in a minute, long."""

from __future__ import annotations

from collections import deque

DEATHS = 10
WINDOW_S = 60.0
# Ten immediate failures take about a second each, well within the minute that counts them.
_FIRST_S = 0.25
_GROWTH = 1.5
LONGEST_S = 5.0


class Restarts:
    """Ends of one process within the last minute; times are monotonic seconds."""

    def __init__(self, *, failing_s: float = WINDOW_S) -> None:
        """`failing_s` is the delay after too many ends."""
        self._failing_s = failing_s
        self._ends: deque[float] = deque()
        self.is_failing = False
        """Whether it ended too often; over when it has run for a minute."""

    def wait_after_end(self, now: float) -> float:
        """Record that it ended; return the seconds to wait before restarting it."""
        self._ends.append(now)
        self._forget(now)
        if len(self._ends) >= DEATHS or self.is_failing:
            self.is_failing = True
            return self._failing_s
        return min(_FIRST_S * _GROWTH ** (len(self._ends) - 1), LONGEST_S)

    def runs_since(self, started: float, now: float) -> bool:
        """Record that it is running; return whether it has just recovered from failing."""
        recovered = self.is_failing and now - started >= WINDOW_S
        if recovered:
            self.is_failing = False
            self._ends.clear()
        return recovered

    def _forget(self, now: float) -> None:
        while self._ends and now - self._ends[0] > WINDOW_S:
            self._ends.popleft()
