"""How a crawl looks while it runs: a live table on a terminal, plain lines elsewhere; and its index, kept up beside."""

from __future__ import annotations

import importlib
import json as jsonlib
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from holdfast.cli.formatting import line
from holdfast.clock import Clock
from holdfast.config import Settings
from holdfast.crawl.plan import CrawlPlan
from holdfast.jobs.views.status import ExecutionStatus

_LINE_S = 5.0


class Rate:
    """Pages a second over the last ten seconds."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque()

    def add(self, now: float, pages: int) -> float:
        """Take a sample and return the rate."""
        self._samples.append((now, pages))
        while len(self._samples) > 2 and now - self._samples[0][0] > 10.0:
            self._samples.popleft()
        (first_at, first), (last_at, last) = self._samples[0], self._samples[-1]
        return (last - first) / (last_at - first_at) if last_at > first_at else 0.0


class Display:
    """Shows statuses as they come; on standard error, so that `--json` stays clean."""

    def __init__(self, clock: Clock, *, quiet: bool = False, plan: CrawlPlan | None = None) -> None:
        """Show bars towards the limits of a plan, if it is given and sets any."""
        self._clock, self._quiet = clock, quiet
        self._table: Any = None
        if sys.stderr.isatty() and not quiet:
            # Loaded by name: rich costs a tenth of a second that a crawl without a terminal need not pay.
            self._table = importlib.import_module("holdfast.cli.progress").LiveTable(plan)
        self._rate = Rate()
        self._printed_at = -_LINE_S

    def running(self) -> AbstractContextManager[Any]:
        """Hold the screen while the crawl runs."""
        return self._table.running() if self._table is not None else nullcontext()

    def show(self, status: ExecutionStatus) -> None:
        """Show how it stands."""
        now = self._clock.monotonic()
        rate = self._rate.add(now, status.pages)
        if self._table is not None:
            self._table.update(status, rate)
        # In a log of systemd or cron a line every five seconds is enough.
        elif not self._quiet and now - self._printed_at >= _LINE_S:
            self._printed_at = now
            print(line(status, rate), file=sys.stderr, flush=True)


def indexing(settings: Settings, *arguments: str) -> subprocess.Popen[bytes]:
    """Start a process that reads files beside this one; it ends between two batches when it is told to."""
    # A process of its own: reading files needs a core, and must not take turns with the crawl for Python's lock.
    command = [
        sys.executable,
        "-P",
        "-m",
        "holdfast.cli.main",
        "index",
        "--json",
        "--home",
        str(settings.home),
        *arguments,
    ]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


@contextmanager
def followed(settings: Settings) -> Iterator[list[dict[str, Any]]]:
    """Have files read as they are sealed, while the block runs, and the last ones after it; what was read is listed."""
    files: list[dict[str, Any]] = []
    follower = indexing(settings, "--follow")
    try:
        yield files
    finally:
        follower.terminate()
        # A second pass: the last files are sealed after the follower was told to end.
        for process in (follower, indexing(settings)):
            output, _ = process.communicate()
            files += jsonlib.loads(output or b'{"files": []}')["files"]
