"""A crawl process as its supervisor sees it: started, watched by its pulse, told to stop, and its ending read."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from holdfast.coordination.runfile import last_tick, new_name
from holdfast.worker.assignment import Assignment

_STOPS = (signal.SIGTERM, signal.SIGINT)
"""Two signals, because two of one kind that come together are one."""

_PROGRAM = "import gc; gc.disable(); from holdfast.worker.process import main; main()"
"""A tenth of loading is spent looking for garbage that modules do not make; `main` turns the search on again."""
_START_S = 20.0
"""How long a process may take to begin: on a busy machine an interpreter needs seconds to load its modules."""
_TICKS_S = os.sysconf("SC_CLK_TCK")


class Cost(NamedTuple):
    """What a process has taken so far."""

    cpu_s: float
    peak_bytes: int


class Child:
    """One process at work."""

    def __init__(self, assignment: Assignment, *, environment: dict[str, str], log_path: Path, run_folder: Path,
                 now: float) -> None:  # fmt: skip
        self.run_path = run_folder / assignment.run_file
        self._alive_at = now
        self._has_ticked = False
        self._told = 0
        self._said = b""
        with log_path.open("ab") as log_file:
            # A session of its own: Ctrl-C reaches the supervisor only, which decides what it means.
            self._process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=log_file, env={**os.environ, **environment}, start_new_session=True,
            )  # fmt: skip
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it died at once: its exit code will say so
            self._process.stdin.write(assignment.to_json().encode())
            self._process.stdin.close()

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    def has_ended(self) -> bool:
        """Return whether the process is over; its exit code may still be read, and what it cost."""
        if self._process.returncode is not None:
            return True
        with suppress(ChildProcessError):
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        return True

    def cost(self) -> Cost | None:
        """Return what the process has taken, as the kernel tells it while it lives; None where it does not tell."""
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
            lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        except OSError:
            return None
        peak = next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)
        return Cost((int(fields[11]) + int(fields[12])) / _TICKS_S, peak)

    def exit_code(self) -> int | None:
        """Return how the process ended, or None while it runs."""
        return self._process.poll()

    def fileno(self) -> int:
        """Return what to wait on for the process's last words, or for its end."""
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def hear(self) -> None:
        """Take what the process says; the kernel closes its output a moment before the process is over."""
        said = os.read(self.fileno(), 4096)
        self._said += said
        if not said:
            with suppress(ChildProcessError):
                os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)

    def ending(self) -> str | None:
        """Return the word with which an ended process said goodbye; None if it died without one."""
        assert self._process.stdout is not None
        lines = (self._said + self._process.stdout.read()).splitlines()
        self._process.stdout.close()
        return json.loads(lines[-1])["ending"] if lines and self._process.returncode == 0 else None

    def stop(self, times: int) -> None:
        """Ask the process to drain, or the second time to hand back at once; what it was told is not repeated."""
        while self._told < min(times, len(_STOPS)):
            self._process.send_signal(_STOPS[self._told])
            self._told += 1

    def kill(self) -> None:
        """End the process without asking."""
        self._process.kill()
        self._process.wait()

    def silent_for(self, now: float) -> float:
        """Return for how long the process's loop has shown no life; one that has said goodbye is not silent."""
        tick = last_tick(self.run_path)
        if tick is None:
            return 0.0 if self._has_ticked else max(0.0, now - self._alive_at - _START_S)
        self._has_ticked = True
        return now - max(self._alive_at, tick)

    def excuse(self, now: float) -> None:
        """Count silence from now on: nobody was there to listen."""
        self._alive_at = now


def fresh_name() -> str:
    """Return the name of a run file for a new process."""
    return new_name()
