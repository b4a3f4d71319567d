"""The live table of a crawl on a terminal."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from holdfast.cli.wording import duration, outcomes, size
from holdfast.crawl.plan import CrawlPlan
from holdfast.jobs.status import Status


class LiveTable:
    """Redraws itself on standard error, and leaves nothing behind."""

    def __init__(self, plan: CrawlPlan | None = None) -> None:
        self._plan = plan
        self._live = Live(console=Console(stderr=True), refresh_per_second=4, transient=True)

    def running(self) -> AbstractContextManager[Any]:
        """Hold the screen while the crawl runs."""
        return self._live

    def update(self, status: Status, rate: float) -> None:
        """Show how it stands."""
        self._live.update(panel(status, rate, self._plan))


def panel(status: Status, rate: float, plan: CrawlPlan | None = None) -> Group:
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


def _bars(status: Status, plan: CrawlPlan) -> list[Table]:
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
