"""A running `archive-tool` as a worker sees it: one that it started, or one that a worker before it left behind.

Both write to files in the output directory, never to a pipe: a tool outlives the worker that started it.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Protocol

from holdfast.archive_tool.hold import Holder, holder_of, last_end
from holdfast.archive_tool.logs import FAILURE_BYTES, tail
from holdfast.archive_tool.program import ToolMissing

KILLED = -signal.SIGKILL
"""The exit code of a tool that left no word of its end."""
HURRY = (signal.SIGTERM, signal.SIGINT)
"""Two requests to end. Two signals of one kind could be one by the time that they are heard."""


class Tool(Protocol):
    """One run of the tool, while it lasts."""

    said: Path | None
    """Where it writes what it has to say."""

    def poll(self) -> int | None:
        """Return the exit code, None while it runs; KILLED if it ended without a word."""
        ...

    def ask_to_end(self) -> None:
        """Ask it to stop its container and end."""
        ...

    def hurry(self) -> None:
        """Ask it to end without its container's grace, whether it was asked before or not."""
        ...

    def kill(self) -> None:
        """End it at once; its container is stopped by the next run in the same directory."""
        ...


class StartedTool:
    """A tool in a session of its own, so that nothing that ends the worker ends it by the way."""

    def __init__(self, command: Sequence[str], output_dir: Path, environment: Mapping[str, str], now: datetime) -> None:
        """Start it; ToolMissing if the program cannot be started, OSError if the directory takes no log."""
        self.said: Path | None = output_dir / f"tool_{now:%Y%m%dT%H%M%S%fZ}.log"
        with self.said.open("xb") as log:
            try:
                self._process = subprocess.Popen(
                    list(command), stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                    env=dict(environment), start_new_session=True,
                )  # fmt: skip
            except (FileNotFoundError, PermissionError) as exc:
                raise ToolMissing(command[0], exc.strerror or str(exc)) from exc

    def poll(self) -> int | None:
        return self._process.poll()

    def ask_to_end(self) -> None:
        self._process.terminate()

    def hurry(self) -> None:
        for number in HURRY:
            self._process.send_signal(number)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


class AdoptedTool:
    """A tool that somebody else started, known by its hold on the directory; its end stands there as well."""

    def __init__(self, output_dir: Path, holder: Holder) -> None:
        self._output_dir, self._holder = output_dir, holder
        self.said = newest_words(output_dir)

    def poll(self) -> int | None:
        if holder_of(self._output_dir) is not None:
            return None
        end = last_end(self._output_dir)
        return KILLED if end is None else end.exit_code

    def ask_to_end(self) -> None:
        self._signal(signal.SIGTERM)

    def hurry(self) -> None:
        for number in HURRY:
            self._signal(number)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        signal_holder(self._output_dir, self._holder, number)


def signal_holder(output_dir: Path, holder: Holder, number: signal.Signals) -> bool:
    """Send a signal to the tool that holds a directory; False if it is not here, or is not what it says it is.

    A number alone is no identity: the process must have this directory as its output directory.
    """
    if not holder.is_here or not _works_in(holder.pid, output_dir):
        return False
    with suppress(ProcessLookupError):
        os.kill(holder.pid, number)
        return True
    return False


def hurry_tools(output_dir: Path) -> int:
    """Ask every tool that writes to this directory to end at once; return how many there were.

    The directory itself is not touched: it may be on storage that holds whoever does.
    """
    asked = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid() and _works_in(int(entry.name), output_dir):
            with suppress(ProcessLookupError, PermissionError):
                for number in HURRY:
                    os.kill(int(entry.name), number)
                asked += 1
    return asked


def _works_in(pid: int, output_dir: Path) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return (b"--output-dir", os.fsencode(output_dir)) in pairwise(words)


def newest_words(output_dir: Path) -> Path | None:
    """Return the file to which the last tool in a directory wrote, None if no worker started one there."""
    return max(output_dir.glob("tool_*.log"), default=None)


def words_of(output_dir: Path, said: Path | None) -> str:
    """Return the end of what a tool said, and its last word from the directory if that is all there is."""
    text = "" if said is None else tail(said, FAILURE_BYTES).decode("utf-8", "replace")
    end = last_end(output_dir)
    return text if end is None else f"{text}\narchive-tool: {end.state}\n"
