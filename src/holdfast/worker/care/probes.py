"""Whether paths answer, asked by processes that may be left behind: a dead mount can hold whoever touches it for ever.

Nothing here touches the paths itself; where they are mounted is read from the kernel's own list.
"""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from holdfast.archive_tool.outcome import is_storage_errno
from holdfast.clock import Clock

MOUNTS = Path("/proc/self/mountinfo")
_ASK = """
import os, stat, sys
try:
    if stat.S_ISDIR(os.stat(sys.argv[1]).st_mode):
        with os.scandir(sys.argv[1]) as names:
            next(names, None)
except OSError as exc:
    sys.exit(exc.errno if exc.errno and exc.errno < 256 else 255)
"""
_END_S = 0.5
_OCTAL = re.compile(r"\\([0-7]{3})")
_GONE = (errno.ENOENT, errno.ENOTDIR)


class Health(StrEnum):
    """How a path answers."""

    ALIVE = "alive"
    MISSING = "missing"
    """There is nothing of this name; the disk below answers."""
    DEAD = "dead"
    """The storage itself does not work: its endpoint is gone, stale or broken."""
    HANGS = "hangs"


class Probe(NamedTuple):
    """How one path answered."""

    health: Health
    errno: int = 0

    @property
    def is_dead(self) -> bool:
        """Whether work on this path cannot go on."""
        return self.health in (Health.DEAD, Health.HANGS)

    def describe(self) -> str:
        """Return it in words."""
        return f"{self.health.value} (errno {self.errno})" if self.errno else self.health.value


def probe(paths: Iterable[Path], clock: Clock, *, deadline_s: float) -> dict[Path, Probe]:
    """Ask all paths at once, each by a process of its own, and return how they answered within the time."""
    asked = {
        path: subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _ASK, os.fsencode(path)], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )
        for path in dict.fromkeys(paths)
    }  # fmt: skip
    deadline = clock.monotonic() + deadline_s
    return {path: _answer(process, deadline - clock.monotonic()) for path, process in asked.items()}


def _answer(process: subprocess.Popen[bytes], seconds: float) -> Probe:
    try:
        return judge(process.wait(timeout=max(0.0, seconds)))
    except subprocess.TimeoutExpired:
        process.kill()
        with suppress(subprocess.TimeoutExpired):  # stuck in the kernel: it ends when the mount lets go of it
            process.wait(timeout=_END_S)
        return Probe(Health.HANGS)


def judge(code: int) -> Probe:
    """Return what the errno of a look at a path says about it; trouble with permissions is not the storage's."""
    if is_storage_errno(code):
        return Probe(Health.DEAD, code)
    return Probe(Health.MISSING, code) if code in _GONE else Probe(Health.ALIVE, max(0, code))


def mount_point(path: Path, table: str) -> Path | None:
    """Return where the storage of a path is mounted, by the kernel's list; None for the root of the machine."""
    points = {Path(_OCTAL.sub(lambda found: chr(int(found[1], 8)), line.split()[4]))
              for line in table.splitlines() if len(line.split()) > 4}  # fmt: skip
    above = [point for point in points if path.is_relative_to(point)]
    best = max(above, key=lambda point: len(point.parts), default=None)
    return None if best is None or best == Path(best.anchor) else best
