"""Keeps what links say of pages as fresh as the archive: in-links, out-links and PageRank, which search ranks by."""

from __future__ import annotations

from holdfast.search.signals import refresh
from holdfast.worker.chores import Bench

_LOOK_S = 60.0


class LinkSignals:
    """The chore of computing page signals anew when enough links have come."""

    name = "link signals"

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._looked_at: float | None = None

    def run_once(self) -> bool:
        """Compute them if that is due; False if it is not, if another process is at it, or if the worker ends."""
        ground = self._bench.ground
        now = ground.clock.monotonic()
        if self._looked_at is not None and now - self._looked_at < _LOOK_S:
            return False
        self._looked_at = now
        return refresh(self._bench.database, ground.settings.home, ground.clock, is_stopping=self._bench.is_stopping)
