"""How long rewriting one capture may take. What takes longer is served as it is, without scripts (P08)."""

from __future__ import annotations

from holdfast.clock import Clock
from holdfast.errors import Unavailable

_STRIDE = 256
"""Steps between two looks at the clock: a step costs about a microsecond, a look half of one."""


class TooSlow(Unavailable):
    """Rewriting this capture takes too long."""

    code = "rewrite_too_slow"


class Deadline:
    """Counts steps, and looks at the clock now and then."""

    __slots__ = ("_clock", "_ends_at", "_left")

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._ends_at = clock.monotonic() + seconds
        self._left = _STRIDE

    def check(self, steps: int = 1) -> None:
        """Count steps; TooSlow once time is up."""
        self._left -= steps
        if self._left <= 0:
            self._left = _STRIDE
            if self._clock.monotonic() > self._ends_at:
                raise TooSlow("this page takes too long to rewrite; its raw bytes are at /web/<digits>id_/<address>")
