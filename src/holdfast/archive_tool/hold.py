"""The hold on an output directory: one tool at a time, who it is, and how the last run ended.

The kernel lets go when the holder dies. The end stands in the directory, for whoever called may be gone by then.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.archive_tool.files import write_whole
from holdfast.archive_tool.refusals import OutputBusy

LOCK_NAME = ".archive_tool.lock"
END_NAME = ".archive_end.json"
_TRIES, _EVERY_S = 8, 0.05
"""Somebody who only looks who holds a directory has it for microseconds; a tool that starts then must not give up."""


class Holder(NamedTuple):
    """Who holds a directory, as far as it says."""

    pid: int
    """0 if it says nothing."""
    host: str

    @property
    def is_here(self) -> bool:
        """Whether it runs on this machine."""
        return self.pid > 0 and self.host == socket.gethostname()


@contextmanager
def hold_output(output_dir: Path) -> Iterator[None]:
    """Hold an output directory for this process alone; OutputBusy if another has it."""
    fd = os.open(output_dir / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        _lock(fd, output_dir)
        told = json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode()
        os.ftruncate(fd, 0)
        os.pwrite(fd, told, 0)
        yield
    finally:
        os.close(fd)


def _lock(fd: int, output_dir: Path) -> None:
    for left in reversed(range(_TRIES)):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError as exc:
            if not left:
                raise OutputBusy(output_dir) from exc
            time.sleep(_EVERY_S)


def holder_of(output_dir: Path) -> Holder | None:
    """Return who holds an output directory now, None if nobody does."""
    try:
        fd = os.open(output_dir / LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _holder(os.pread(fd, 4096, 0))
    finally:
        os.close(fd)
    return None


def _holder(told: bytes) -> Holder:
    content = _object(told)
    pid, host = content.get("pid"), content.get("host")
    return Holder(pid if isinstance(pid, int) and pid > 0 else 0, host if isinstance(host, str) else "")


def _object(data: bytes) -> dict[str, Any]:
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


class LastEnd(NamedTuple):
    """How the last run in a directory ended."""

    state: str
    exit_code: int


def forget_end(output_dir: Path) -> None:
    """Strike out how the last run ended: a new one begins."""
    (output_dir / END_NAME).unlink(missing_ok=True)


def note_end(output_dir: Path, end: LastEnd, now: datetime) -> None:
    """Leave word of the end; a disk that does not take it leaves none, and the run is then taken up again."""
    content = {"state": end.state, "exit_code": end.exit_code, "at": now.isoformat()}
    with suppress(OSError):
        write_whole(output_dir / END_NAME, (json.dumps(content) + "\n").encode())


def last_end(output_dir: Path) -> LastEnd | None:
    """Return how the last run ended; None if there was none, it still runs, or it was killed."""
    try:
        content = _object((output_dir / END_NAME).read_bytes())
    except OSError:
        return None
    state, code = content.get("state"), content.get("exit_code")
    return LastEnd(state, code) if isinstance(state, str) and isinstance(code, int) else None
