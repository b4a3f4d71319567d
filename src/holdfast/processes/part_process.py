"""One part of `serve` as a child process that dies with its supervisor, however that ends."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from holdfast.processes.part_output import Lines
from holdfast.values import dataclass

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


STARTED_AGAIN: Final = "HOLDFAST_STARTED_AGAIN"
"""Variable that tells a part that the front has already started before, so that notices are not repeated."""
FOR_PEOPLE: Final = "no administrator yet: "
"""Prefix of a line of the front for the person who started the server: it is passed on unchanged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicePart:
    name: str
    command: tuple[str, ...]
    is_front: bool = False
    """Whether it serves readers: it starts first, is stopped last, and prints a line when it is ready."""


class PartProcess:
    """A running part, the leader of its own process group, so that Ctrl-C reaches only the supervisor."""

    def __init__(self, part: ServicePart, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            part.command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env={**environment, "PYTHONUNBUFFERED": "1"},
            # Safe here: the supervisor has one thread, so code may run between fork and exec.
            preexec_fn=_dying_with(os.getpid()),
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self.pid = self._process.pid
        self.stdout, self.stderr = Lines(self._process.stdout.fileno()), Lines(self._process.stderr.fileno())

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the part alone; do nothing if it has ended."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """Kill the part and everything in its process group."""
        # Signal before waiting for it: until then no other process can get its id.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def reap(self) -> int | None:
        """Return the exit code, None while it runs; kills the rest of its process group."""
        if self._process.returncode is not None:
            return self._process.returncode
        ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is None:
            return None
        self.kill()
        return self._process.wait()

    def close(self) -> None:
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()


def how_it_ended(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


def _dying_with(parent: int) -> Callable[[], None] | None:
    """Return a pre-exec function that asks the kernel to kill the child with its parent."""
    if _libc is None:
        return None
    prctl = _libc.prctl

    def ask() -> None:
        # KILL, not TERM: a draining part would hold port and lock while the next supervisor starts. All work of a part
        # survives a kill.
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        # The parent may have died before this call: the kernel would then send no signal.
        if os.getppid() != parent:
            os._exit(1)

    return ask


def reap_strangers(known: Sequence[int]) -> None:
    """Reap ended processes that are not ours: process 1 of a container inherits all orphans."""
    with suppress(ChildProcessError):
        while True:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None or ended.si_pid in known:
                return
            os.waitpid(ended.si_pid, os.WNOHANG)
