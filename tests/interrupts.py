"""Interrupting a process that stands still, so that it hears of it before it does anything else."""

from __future__ import annotations

import ctypes
import os
import signal


def interrupt_and_go_on(pid: int) -> None:
    """Send Ctrl-C to a stopped process, and let it go on.

    To its main thread: any other might take it first, and the main one, which alone hears of it, be past the end.
    """
    assert ctypes.CDLL(None).tgkill(pid, pid, signal.SIGINT) == 0
    os.kill(pid, signal.SIGCONT)
