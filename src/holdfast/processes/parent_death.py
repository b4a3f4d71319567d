"""Lets the kernel end a process when its parent dies, in whatever way. Linux only."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
# Looked up here: `die_with` may run between fork and exec.
_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


def die_with(parent: int, number: signal.Signals) -> None:
    """Let the kernel send this process a signal when its parent dies; end now if that has happened already.

    For a parent with a single thread: the kernel sends the signal when the thread that started the process ends.
    """
    if _prctl is None:
        return
    _prctl(_PR_SET_PDEATHSIG, number)
    # The parent may have died before this call: the kernel would then send no signal.
    if os.getppid() != parent:
        os._exit(1)
