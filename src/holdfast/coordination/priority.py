"""How a process steps back behind those that somebody waits for. It refuses to come forward again: the kernel does."""

from __future__ import annotations

import os


def step_back(nice: int) -> int:
    """Give up this process's priority, and that of what it starts, down to this niceness; return the one in force.

    Work that nobody waits for does so: at 10 beside a server on the same core it gets a tenth of it, and all of an idle
    one. A process that is nicer already stays so.
    """
    return os.nice(max(0, nice - os.nice(0)))
