"""A crawl process as its supervisor sees it: started, watched by its pulse, told to stop, and its ending read."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from holdfast.coordination.runfile import last_tick, new_name
from holdfast.worker.process import Assignment

_STOPS = (signal.SIGTERM, signal.SIGINT)
"""Two signals, because two of one kind that come together are one."""


class Child:
    """One process at work."""

    def __init__(self, assignment: Assignment, *, environment: dict[str, str], log_path: Path, run_folder: Path,
                 now: float) -> None:  # fmt: skip
        self.run_path = run_folder / assignment.run_file
        self._alive_at = now
        self._has_ticked = False
        self._told = 0
        with log_path.open("ab") as log_file:
            # A session of its own: Ctrl-C reaches the supervisor only, which decides what it means.
            self._process = subprocess.Popen(
                [sys.executable, "-m", "holdfast.worker.process"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
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

    def exit_code(self) -> int | None:
        """Return how the process ended, or None while it runs."""
        return self._process.poll()

    def ending(self) -> str | None:
        """Return the word with which an ended process said goodbye; None if it died without one."""
        assert self._process.stdout is not None
        lines = self._process.stdout.read().splitlines()
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
            return 0.0 if self._has_ticked else now - self._alive_at
        self._has_ticked = True
        return now - max(self._alive_at, tick)

    def excuse(self, now: float) -> None:
        """Count silence from now on: nobody was there to listen."""
        self._alive_at = now


def fresh_name() -> str:
    """Return the name of a run file for a new process."""
    return new_name()
