"""What a running program says, line by line: into three log files, and to whoever listens.

A line without end is written as it comes and not listened to. A disk that fails does not block the program.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen
from typing import IO

from holdfast.archive_tool.lines import MAX_LINE_BYTES
from holdfast.archive_tool.logs import StageLog

Listener = Callable[[bytes], None]
_CHUNK = 64 * 1024


class Tape:
    """Records one process until both of its outputs are closed."""

    def __init__(self, log: StageLog, listener: Listener, ended: Callable[[], None]) -> None:
        self.log = log
        self.trouble: OSError | None = None
        """Why the logs could not be written, if they could not."""
        self._listener, self._ended = listener, ended
        self._lock = threading.Lock()
        self._open = 2
        self._threads: list[threading.Thread] = []
        self._combined = _create(log.combined)

    @property
    def is_over(self) -> bool:
        """Whether the process has closed both of its outputs."""
        return self._open == 0

    def record(self, process: Popen[bytes]) -> None:
        """Begin; the process must have both outputs as pipes."""
        assert process.stdout is not None
        assert process.stderr is not None
        for stream, path in ((process.stdout, self.log.stdout), (process.stderr, self.log.stderr)):
            thread = threading.Thread(target=self._copy, args=(stream, _create(path)), name=path.name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def note(self, line: str) -> None:
        """Write a line of our own to the combined log, and listen to it."""
        data = line.encode() + b"\n"
        self._write(self._combined, data)
        self._listener(data)

    def close(self, timeout: float) -> None:
        """Wait for what is still under way, and close the files."""
        for thread in self._threads:
            thread.join(timeout)
        with self._lock:
            self._combined.close()

    def _copy(self, stream: IO[bytes], own: IO[bytes]) -> None:
        rest, endless = b"", False
        with own:
            while chunk := os.read(stream.fileno(), _CHUNK):
                self._write(own, chunk)
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self._write(self._combined, line + b"\n")
                    if not endless:
                        self._listener(line)
                    endless = False
                if len(rest) > MAX_LINE_BYTES:
                    self._write(self._combined, rest)
                    rest, endless = b"", True
            if rest:
                self._write(self._combined, rest + b"\n")
                self._listener(rest)
        stream.close()
        with self._lock:
            self._open -= 1
        self._ended()

    def _write(self, file: IO[bytes], data: bytes) -> None:
        try:
            with self._lock:
                if not file.closed:
                    file.write(data)
        except OSError as exc:
            self.trouble = self.trouble or exc
            self._ended()


def _create(path: Path) -> IO[bytes]:
    """Open a log that must be new, unbuffered: whoever looks at it sees everything that was said."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    return os.fdopen(fd, "wb", buffering=0)
