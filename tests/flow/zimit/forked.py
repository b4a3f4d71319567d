"""The real command in a process of its own, without a new interpreter: a fork of the tests, which have it loaded.

Starting Python and loading the command is two thirds of what a short run costs; there are dozens of them.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path


class Forked:
    """A child that runs one function; its outputs are files."""

    def __init__(
        self, main: Callable[[Sequence[str]], int], arguments: Sequence[str], variables: Mapping[str, str], folder: Path
    ) -> None:
        self._out, self._err = folder / "stdout", folder / "stderr"
        self.returncode: int | None = None
        for path in (self._out, self._err):
            path.touch()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            self._child(main, arguments, variables)

    def _child(
        self, main: Callable[[Sequence[str]], int], arguments: Sequence[str], variables: Mapping[str, str]
    ) -> None:
        code = 70
        try:
            os.setsid()
            for path, number in ((self._out, 1), (self._err, 2)):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
            sys.stdout, sys.stderr = (open(number, "w", closefd=False) for number in (1, 2))  # noqa: SIM115
            signal.signal(signal.SIGINT, signal.default_int_handler)
            os.environ.clear()
            os.environ.update(variables)
            code = main(arguments)
        except SystemExit as exc:
            code = exc.code if isinstance(exc.code, int) else 1
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def poll(self) -> int | None:
        """Return the exit code, None while it runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout_s: float) -> bool:
        """Wait for the end, this long at most; return whether it came."""
        deadline = time.monotonic() + timeout_s
        while self.poll() is None:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.005)
        return True

    def send_signal(self, number: int) -> None:
        """Send it a signal."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def said(self) -> tuple[str, str]:
        """Return what it wrote to its two outputs."""
        return self._out.read_text(errors="replace"), self._err.read_text(errors="replace")
