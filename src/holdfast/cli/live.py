"""The live table of a crawl on a terminal."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from holdfast.cli.wording import duration, outcomes, size
from holdfast.jobs.status import Status


class LiveTable:
    """Redraws itself on standard error, and leaves nothing behind."""

    def __init__(self) -> None:
        self._live = Live(console=Console(stderr=True), refresh_per_second=4, transient=True)

    def running(self) -> AbstractContextManager[Any]:
        """Hold the screen while the crawl runs."""
        return self._live

    def update(self, status: Status, rate: float, seconds: float) -> None:
        """Show how it stands."""
        self._live.update(panel(status, rate, seconds))


def panel(status: Status, rate: float, seconds: float) -> Group:
    """Return the live table."""
    table = Table.grid(padding=(0, 3))
    table.add_row("pages", "pages/s", "queue", "domains", "requests", "bytes", "time", style="dim")
    table.add_row(f"{status.pages:,}", f"{rate:.1f}", f"{status.queue:,}", str(status.active_domains),
                  f"{status.requests:,}", size(status.bytes), duration(seconds))  # fmt: skip
    rows: list[Any] = [Text(f"{status.source} · execution {status.execution_id} · {status.condition}", "bold"), table]
    rows.append(Text(outcomes(status), "dim"))
    rows += [Text(f"slow: {slow['domain']} {slow['seconds']} s, {slow['why']}", "yellow") for slow in status.slow[:3]]
    rows.append(Text("Ctrl-C drains and seals; again hands back at once", "dim italic"))
    return Group(*rows)
