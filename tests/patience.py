"""How long a test waits on a machine that has other things to do: what holds on a quiet one is stretched by load."""

from __future__ import annotations

import os
import sys
from typing import Self

_LEAST_WAIT_S = 60.0
_MOST = 12.0
_MOST_PERIOD = 2.5


def slowness() -> float:
    """Return how many runnable tasks each core has, at least 1: by so much everything takes longer than alone."""
    return min(max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)), _MOST)


def allowed(seconds: float) -> float:
    """Return what a promise in seconds comes to on this machine now; on a quiet one it is the promise itself."""
    return seconds * slowness()


def period(seconds: float) -> float:
    """Return how long a lease, a heartbeat or a deadline lasts that processes of a test must keep up with.

    Two runnable tasks a core are what `make test` itself makes, and periods are long enough for that. On a busier
    machine a process that does nothing wrong would come too late.
    """
    return round(seconds * min(max(1.0, slowness() / 2), _MOST_PERIOD), 3)


def deadline(seconds: float) -> float:
    """Return how long a condition is waited for: only a test that fails takes that long."""
    return max(allowed(seconds), _LEAST_WAIT_S)


class Calls:
    """Counts the calls of functions inside a `with`: work that can be compared, whatever the machine does beside."""

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> Self:
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _note(self, _frame: object, event: str, _argument: object) -> None:
        if event in ("call", "c_call"):
            self.count += 1
