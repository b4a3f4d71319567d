"""How late the event loop is: a short sleep, again and again, and how much longer it took than asked for."""

from __future__ import annotations

import asyncio
import math

_STEP_S = 0.05
_GROWTH = 1.25
"""Each class of the histogram is a quarter wider than the one before: percentiles are true to that."""
_CLASSES = 60


class LagMeter:
    """Lags since the start of a process, in milliseconds; a few hundred bytes however long it runs."""

    def __init__(self) -> None:
        self._classes = [0] * _CLASSES
        self._count = 0
        self.worst_ms = 0.0

    async def watch(self) -> None:
        """Measure until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + _STEP_S
            await asyncio.sleep(_STEP_S)
            self.note(loop.time() - due)

    def note(self, late_s: float) -> None:
        """Count one lag, and the looks that were missed meanwhile: a stall of a second is twenty bad looks, not one."""
        while True:
            late_ms = max(late_s, 0.0) * 1000.0
            self.worst_ms = max(self.worst_ms, late_ms)
            self._classes[min(int(math.log(late_ms + 1.0, _GROWTH)), _CLASSES - 1)] += 1
            self._count += 1
            late_s -= _STEP_S
            if late_s <= 0:
                return

    def percentile(self, share: float) -> float:
        """Return the lag that this share of all looks stays below; too much by a quarter of it and of 1 ms at most."""
        left = math.ceil(self._count * share)
        for number, count in enumerate(self._classes):
            left -= count
            if left <= 0:
                return float(min(_GROWTH ** (number + 1) - 1.0, self.worst_ms))
        return self.worst_ms

    def figures(self) -> list[float]:
        """Return the median, the 99th percentile and the worst lag, as they are written to the database."""
        return [round(self.percentile(0.5), 1), round(self.percentile(0.99), 1), round(self.worst_ms, 1)]
