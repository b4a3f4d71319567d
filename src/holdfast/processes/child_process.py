"""Child processes: start one, ask it to end, wait for it, and kill it with everything that it started."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Final, TypedDict, Unpack

STOPS: Final = (signal.SIGTERM, signal.SIGINT)
"""The first and the second request to end: two signals of one kind that come together are one."""
_POLL_S = 0.02
_KILLED_S = 0.5


class ChildOptions(TypedDict, total=False):
    """Options of `subprocess.Popen`; there is no standard input unless it is named."""

    stdin: int | IO[bytes]
    stdout: int | IO[bytes]
    stderr: int | IO[bytes]
    cwd: str | Path
    user: int | None
    group: int | None
    extra_groups: Sequence[int] | None
    preexec_fn: Callable[[], None] | None


class ChildProcess:
    """A program in a session of its own: Ctrl-C reaches only the process that started it, which decides what it
    means.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], **options: Unpack[ChildOptions]) -> None:
        """Start it; raise OSError or SubprocessError if that fails."""
        given: ChildOptions = {"stdin": subprocess.DEVNULL, **options}
        self._process = subprocess.Popen(list(command), env=dict(environment), start_new_session=True, **given)
        self.pid = self._process.pid
        self.stdin, self.stdout, self.stderr = self._process.stdin, self._process.stdout, self._process.stderr
        self._asked = 0

    def ask_to_end(self, times: int = 1) -> None:
        """Request it to end `times` times in all, at most twice; requests that were sent before count."""
        while self._asked < min(times, len(STOPS)):
            self._asked += 1
            # `Popen` would read the exit code, and then the kernel no longer has the process's resource use.
            if self._process.returncode is None:
                with suppress(ProcessLookupError):
                    os.kill(self.pid, STOPS[self._asked - 1])

    def kill(self) -> None:
        """Kill it and everything in its session, without waiting."""
        # Only before its exit code is read: until then no other process can get its id.
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    def has_ended(self) -> bool:
        """Return whether it has ended, without reading the exit code: its resource use is available until then."""
        if self._process.returncode is not None:
            return True
        with suppress(ChildProcessError):
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        return True

    def poll(self) -> int | None:
        """Return the exit code after killing the rest of its session; None while it runs."""
        if not self.has_ended():
            return None
        self.kill()
        return self._process.wait()

    def wait(self, seconds: float | None = None, until: Callable[[], bool] | None = None) -> int | None:
        """Return the exit code as `poll` does; None if it still runs after these seconds, or once `until` is true."""
        if seconds is None:
            with suppress(ChildProcessError):
                os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            return self.poll()
        self._ends_within(seconds, until)
        return self.poll()

    def finish(self, deadline_s: float, until: Callable[[], bool] | None = None) -> int | None:
        """Return the exit code, and leave what it started running: a mount command may leave its server behind.

        At the deadline, or once `until` is true, kill everything in its session, and return None. A process that
        hangs in the kernel cannot be killed: it is left behind, and ends when its system call returns.
        """
        if self._ends_within(deadline_s, until):
            return self._process.wait()
        self.kill()
        self.wait(_KILLED_S)
        return None

    def _ends_within(self, seconds: float, until: Callable[[], bool] | None) -> bool:
        while not self.has_ended() and seconds > 0 and not (until is not None and until()):
            time.sleep(min(_POLL_S, seconds))
            seconds -= _POLL_S
        return self.has_ended()

    def close(self) -> None:
        """Close this end of its pipes."""
        for pipe in (self.stdin, self.stdout, self.stderr):
            if pipe is not None:
                with suppress(OSError):  # it died with unread input
                    pipe.close()


def how_it_ended(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


def when_input_ends(act: Callable[[], object]) -> None:
    """Call `act` on a thread once standard input is closed: this process is requested to end, or its parent is dead."""

    def listen() -> None:
        # Bypass Python's buffer: a waiting thread would hold its lock when the process ends.
        while os.read(0, 4096):
            pass
        act()

    threading.Thread(target=listen, name="end of input", daemon=True).start()
