"""How a crawl looks while it runs: a live table on a terminal, plain lines elsewhere, and the summary at the end."""

from __future__ import annotations

import importlib
import json as jsonlib
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from holdfast.cli.formatting import duration, line, outcomes, size
from holdfast.clock import Clock
from holdfast.config import Settings
from holdfast.crawl.plan import CrawlPlan
from holdfast.errors import NotFound
from holdfast.jobs import execution_queries
from holdfast.jobs.views.status import ExecutionStatus
from holdfast.wiring import Runtime

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
            self._table = importlib.import_module("holdfast.cli.display").LiveTable(plan)
        self._rate = Rate()
        self._said_at = -_LINE_S

    def running(self) -> AbstractContextManager[Any]:
        """Hold the screen while the crawl runs."""
        return self._table.running() if self._table is not None else nullcontext()

    def show(self, status: ExecutionStatus) -> None:
        """Show how it stands."""
        now = self._clock.monotonic()
        rate = self._rate.add(now, status.pages)
        if self._table is not None:
            self._table.update(status, rate)
        elif not self._quiet and now - self._said_at >= _LINE_S:
            self._said_at = now
            print(line(status, rate), file=sys.stderr, flush=True)


class LiveTable:
    """Redraws itself on standard error, and leaves nothing behind."""

    def __init__(self, plan: CrawlPlan | None = None) -> None:
        self._plan = plan
        self._live = Live(console=Console(stderr=True), refresh_per_second=4, transient=True)

    def running(self) -> AbstractContextManager[Any]:
        """Hold the screen while the crawl runs."""
        return self._live

    def update(self, status: ExecutionStatus, rate: float) -> None:
        """Show how it stands."""
        self._live.update(panel(status, rate, self._plan))


def panel(status: ExecutionStatus, rate: float, plan: CrawlPlan | None = None) -> Group:
    """Return the live table, with a bar towards each limit that the plan sets."""
    table = Table.grid(padding=(0, 3))
    table.add_row("pages", "pages/s", "queue", "domains", "requests", "bytes", "time", style="dim")
    table.add_row(
        f"{status.pages:,}",
        f"{rate:.1f}",
        f"{status.queue:,}",
        str(status.active_domains),
        f"{status.requests:,}",
        size(status.bytes),
        duration(status.run_seconds),
    )
    rows: list[Any] = [Text(f"{status.source} · execution {status.execution_id} · {status.condition}", "bold"), table]
    rows += [Text(f"{status.seeds_left:,} more seeds are being read", "dim")] if status.seeds_left else []
    rows += [] if plan is None else _bars(status, plan)
    rows += [Text(status.trouble, "bold red")] if status.trouble else []
    rows.append(Text(outcomes(status), "dim"))
    rows += [Text(f"slow: {slow['domain']} {slow['seconds']} s, {slow['why']}", "yellow") for slow in status.slow[:3]]
    rows.append(Text("Ctrl-C drains and seals; again hands back at once", "dim italic"))
    return Group(*rows)


def _bars(status: ExecutionStatus, plan: CrawlPlan) -> list[Table]:
    """Return how far a crawl is towards where it stops; a crawl that goes on counts what it did before."""
    used_s = status.run_seconds
    towards: list[tuple[str, float, float | None, str, str]] = [
        ("pages", status.pages, plan.max_pages, f"{status.pages:,}", f"{plan.max_pages or 0:,}"),
        ("bytes", status.bytes, plan.max_bytes, size(status.bytes), size(plan.max_bytes or 0)),
        ("time", used_s, plan.max_time_s, duration(used_s), duration(plan.max_time_s or 0)),
    ]
    made = Table.grid(padding=(0, 1))
    for name, done, limit, shown, most in towards:
        if limit:
            bar = ProgressBar(total=limit, completed=min(done, limit), width=40)
            made.add_row(name, bar, f"{min(100, int(100 * done / limit))}%", f"{shown} of {most}")
    return [made] if made.row_count else []


def find_execution(runtime: Runtime, wanted: int | None) -> int:
    """Return the execution that is meant: this one, or the newest; NotFound if there is none."""
    with runtime.raw_db.read() as tx:
        ids = execution_queries.latest_executions(tx, limit=1)
        found = execution_queries.execution(tx, wanted) if wanted is not None else None
    if not ids:
        raise NotFound("no executions yet; start one with: holdfast crawl https://example.org")
    if wanted is not None and found is None:
        raise NotFound(f"there is no execution {wanted}; see them with: holdfast status")
    return ids[0] if wanted is None else wanted


def indexing(settings: Settings, *arguments: str) -> subprocess.Popen[bytes]:
    """Start a process that reads files beside this one; it ends between two batches when it is told to."""
    command = [sys.executable, "-m", "holdfast.cli.main", "index", "--json", "--home", str(settings.home), *arguments]
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
        for process in (follower, indexing(settings)):
            said, _ = process.communicate()
            files += jsonlib.loads(said or b'{"files": []}')["files"]
