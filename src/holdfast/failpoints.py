"""Named places where a test may kill, stop or slow a process (`HOLDFAST_FAILPOINT=after_append:kill`); else no-ops."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable


def _nothing(_name: str) -> None:
    return None


def _armed(spec: str) -> Callable[[str], None]:
    """Return what to call at every place; `NAME:ACTION[:SKIP]` acts after SKIP passes."""
    name, action, *rest = spec.split(":")
    left = int(rest[0]) if rest else 0

    def reach(place: str) -> None:
        nonlocal left
        if place != name:
            return
        left -= 1
        if left >= 0:
            return
        if action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif action == "sleep":
            time.sleep(3600)
        elif action == "raise":
            raise RuntimeError(f"failpoint {place}")

    return reach


_spec = os.environ.get("HOLDFAST_FAILPOINT")
reach: Callable[[str], None] = _armed(_spec) if _spec else _nothing
"""Called with the place's name on the way through."""
