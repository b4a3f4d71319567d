"""Status of a running crawl: a live table on a terminal, plain lines elsewhere; and indexing during a crawl."""

from __future__ import annotations

import importlib
import json as jsonlib
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from holdfast.cli.formatting import line
from holdfast.clock import Clock
from holdfast.config import Settings
from holdfast.jobs.views.status import ExecutionStatus
from holdfast.processes.runfile import own_command
from holdfast.sources.plan import CrawlPlan

_LINE_S = 5.0


class Display:
    """Shows statuses on standard error, so that the output of `--json` stays clean."""

    def __init__(self, clock: Clock, *, quiet: bool = False, plan: CrawlPlan | None = None) -> None:
        """Create a display; it has progress bars for the limits that the plan sets."""
        self._clock, self._quiet = clock, quiet
        self._table: Any = None
        if sys.stderr.isatty() and not quiet:
            # Import it by name: rich costs a tenth of a second that a crawl without a terminal does not need.
            self._table = importlib.import_module(".progress", __package__).LiveTable(plan)
        self._printed_at = -_LINE_S

    def running(self) -> AbstractContextManager[Any]:
        """Occupy the screen while the crawl runs."""
        return self._table.running() if self._table is not None else nullcontext()

    def show(self, status: ExecutionStatus) -> None:
        now = self._clock.monotonic()
        if self._table is not None:
            self._table.update(status)
        # In a log of systemd or cron a line every five seconds is enough.
        elif not self._quiet and now - self._printed_at >= _LINE_S:
            self._printed_at = now
            print(line(status), file=sys.stderr, flush=True)


def indexing(settings: Settings, *arguments: str) -> subprocess.Popen[bytes]:
    """Start a process that indexes files meanwhile; it can be stopped between two batches."""
    # Use a separate process: reading files needs a core, and must not compete with the crawl for Python's lock.
    command = own_command("index", "--json", "--home", str(settings.home), *arguments)
    return subprocess.Popen(command, stdout=subprocess.PIPE)


@contextmanager
def followed(settings: Settings) -> Iterator[list[dict[str, Any]]]:
    """Index files as they are sealed, during the block and after it; yield the list of indexed files."""
    files: list[dict[str, Any]] = []
    follower = indexing(settings, "--follow")
    try:
        yield files
    finally:
        follower.terminate()
        # Run a second pass: the crawl seals its last files after the follower was asked to end.
        for process in (follower, indexing(settings)):
            output, _ = process.communicate()
            files += jsonlib.loads(output or b'{"files": []}')["files"]
