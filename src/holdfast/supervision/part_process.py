"""One part of `serve` as a child process that dies with its supervisor, whatever ends that."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from holdfast.supervision.output import Lines

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


STARTED_AGAIN: Final = "HOLDFAST_STARTED_AGAIN"
"""The variable by which a part knows that the front has answered before: what was told once is not told again."""
FOR_PEOPLE: Final = "no administrator yet: "
"""How a line of the front begins that is meant for who started everything: it is passed on as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicePart:
    """What is to run, under a name that its lines carry."""

    name: str
    command: tuple[str, ...]
    is_front: bool = False
    """Whether it answers readers: it begins first, is stopped last, and says in a line that it is ready."""


def own_command(*arguments: str) -> tuple[str, ...]:
    """Return the words that start a command of `holdfast` with this very interpreter."""
    return sys.executable, "-P", "-m", "holdfast.cli.main", *arguments


class PartProcess:
    """A running part; it is the leader of its own process group, so that Ctrl-C reaches the supervisor alone."""

    def __init__(self, part: ServicePart, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            part.command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env={**environment, "PYTHONUNBUFFERED": "1"},
            # The supervisor has one thread, so that code between fork and exec is safe.
            preexec_fn=_dying_with(os.getpid()),
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self.pid = self._process.pid
        self.stdout, self.stderr = Lines(self._process.stdout.fileno()), Lines(self._process.stderr.fileno())

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the part alone; one that is gone hears nothing."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """End the part and everything of its process group."""
        # Before it is waited for: its number cannot be another's yet.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def reap(self) -> int | None:
        """Return how the part ended, None while it runs; what it left in its process group ends with it."""
        if self._process.returncode is not None:
            return self._process.returncode
        ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is None:
            return None
        self.kill()
        return self._process.wait()

    def close(self) -> None:
        """Close the pipes."""
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()


def how_it_ended(code: int) -> str:
    """Return in words how a process ended."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


def _dying_with(parent: int) -> Callable[[], None] | None:
    """Return what a child does before it becomes the part: it asks the kernel to end it with its parent."""
    if _libc is None:
        return None
    prctl = _libc.prctl

    def ask() -> None:
        # KILL and not TERM: a part that drains would hold port and lock while the next supervisor starts. Everything
        # that a part does survives a kill.
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        # The parent may have died before that: the kernel would not tell any more.
        if os.getppid() != parent:
            os._exit(1)

    return ask


def reap_strangers(known: Sequence[int]) -> None:
    """Take leave of ended processes that were never ours: process 1 of a container inherits all orphans."""
    with suppress(ChildProcessError):
        while True:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None or ended.si_pid in known:
                return
            os.waitpid(ended.si_pid, os.WNOHANG)
