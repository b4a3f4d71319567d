"""Progress on a terminal: the live table of a crawl, one line for everything else.

Imports rich, which takes a tenth of a second; `display` imports this by name, so crawls without a terminal skip
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from holdfast.cli.formatting import duration, outcomes, paused, size
from holdfast.cli.formatting import text as plain
from holdfast.clock import Clock

if TYPE_CHECKING:
    from holdfast.index.leases import FileToIndex, ReadProgress
    from holdfast.jobs.views.status import ExecutionStatus
    from holdfast.sources.plan import CrawlPlan
    from holdfast.steps import FileStep

_LINE_S = 5.0
_LIVE_S = 0.2


class LiveTable:
    """A live table on standard error that is erased at the end."""

    def __init__(self, plan: CrawlPlan | None = None) -> None:
        self._plan = plan
        self._live = Live(console=Console(stderr=True), refresh_per_second=4, transient=True)

    def running(self) -> AbstractContextManager[Any]:
        return self._live

    def update(self, status: ExecutionStatus) -> None:
        self._live.update(panel(status, self._plan))


def panel(status: ExecutionStatus, plan: CrawlPlan | None = None) -> Group:
    """Return the live table, with a bar towards each limit that the plan sets."""
    table = Table.grid(padding=(0, 3))
    table.add_row("pages", "pages/s", "queue", "domains", "requests", "bytes", "time", style="dim")
    table.add_row(
        f"{status.pages:,}",
        f"{status.pages_s:.1f}",
        f"{status.queue:,}",
        str(status.active_domains),
        f"{status.requests:,}",
        size(status.bytes),
        duration(status.run_seconds),
    )
    rows: list[Any] = [Text(f"{status.source} · execution {status.execution_id} · {status.condition}", "bold"), table]
    rows += [Text(f"{status.seeds_left:,} more seeds are being read", "dim")] if status.seeds_left else []
    rows += [] if plan is None else _bars(status, plan)
    rows += [Text(waits, "bold yellow")] if (waits := paused(status)) is not None else []
    rows += [Text(status.trouble, "bold red")] if status.trouble else []
    rows.append(Text(outcomes(status), "dim"))
    rows += [Text(f"slow: {slow['domain']} {slow['seconds']} s, {slow['why']}", "yellow") for slow in status.slow[:3]]
    rows.append(Text("Ctrl-C drains and seals; again hands back at once", "dim italic"))
    return Group(*rows)


def _bars(status: ExecutionStatus, plan: CrawlPlan) -> list[Table]:
    """Return progress bars for the limits of a crawl; a resumed crawl counts its earlier work."""
    used_s = status.run_seconds
    towards: list[tuple[str, float, float | None, str, str]] = [
        ("pages", status.pages, plan.max_pages, f"{status.pages:,}", f"{plan.max_pages or 0:,}"),
        ("bytes", status.bytes, plan.max_bytes, size(status.bytes), size(plan.max_bytes or 0)),
        ("time", used_s, plan.max_time_s, duration(used_s), duration(plan.max_time_s or 0)),
    ]
    made = Table.grid(padding=(0, 1))
    for name, done, limit, shown, most in towards:
        if limit:
            # The work before a resumption counts, too: min() keeps the bar within its frame.
            bar = ProgressBar(total=limit, completed=min(done, limit), width=40)
            made.add_row(name, bar, f"{min(100, int(100 * done / limit))}%", f"{shown} of {most}")
    return [made] if made.row_count else []


class ProgressLine:
    """Prints progress on standard error, at most five times a second on a terminal, every five seconds elsewhere."""

    def __init__(self, clock: Clock, *, quiet: bool = False) -> None:
        self._clock, self._quiet = clock, quiet
        self._console = Console(stderr=True, highlight=False)
        self._is_live = self._console.is_terminal and not quiet
        # Without a terminal, print nothing for work that ends within five seconds.
        self._printed_at = clock.monotonic() if not self._is_live else -_LINE_S
        # The prefix is: file n of m.
        self.before = ""

    def step(self, step: FileStep) -> None:
        self.before = f"file {step.number} of {step.of}: "
        of = f" of {size(step.total)}" if step.total else ""
        self.say(f"{step.name}: {step.phase} {size(step.done)}{of}" if step.done else f"{step.name}: {step.phase}")

    def progress(self, file: FileToIndex, progress: ReadProgress) -> None:
        name = file.file_key.name
        self.say(
            f"{name}: {progress.phase.replace('_', ' ')}, {progress.records:,} records, {progress.pages:,} pages, "
            f"{size(progress.bytes_done)} of {size(progress.bytes_total)}"
        )

    def say(self, text: str) -> None:
        now = self._clock.monotonic()
        if self._quiet or now - self._printed_at < (_LIVE_S if self._is_live else _LINE_S):
            return
        self._printed_at = now
        line = plain(f"{self.before}{text}")
        if self._is_live:
            # Cut one letter below the width: a full line wraps, and the next \r would leave its first half behind.
            self._console.file.write(f"\r\x1b[2K{line[: self._console.width - 1]}")
            self._console.file.flush()
        else:
            self._console.print(line, soft_wrap=True, markup=False)

    def clear(self) -> None:
        """Erase the progress line before a permanent line is printed."""
        if self._is_live:
            self._console.file.write("\r\x1b[2K")
            self._console.file.flush()


@contextmanager
def byte_bar(word: str, total: int, *, is_shown: bool = True) -> Iterator[Callable[[int], None]]:
    """Show a progress bar of bytes on a terminal; yield a function that is called with the bytes done so far."""
    columns = (TextColumn(word), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    hidden = not (is_shown and console.is_terminal)
    with Progress(*columns, console=console, transient=True, disable=hidden) as progress:
        task = progress.add_task(word, total=total)
        yield lambda count: progress.advance(task, count)
