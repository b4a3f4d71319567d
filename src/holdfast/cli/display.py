"""How a crawl looks while it runs: a live table on a terminal, plain lines elsewhere, and the summary at the end."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from holdfast.clock import Clock
from holdfast.jobs.status import Status

_LINE_S = 5.0


def size(count: float) -> str:
    """Return a number of bytes in words."""
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def duration(seconds: float) -> str:
    """Return a time span in words."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes:02d}m" if hours else f"{minutes}m {rest:02d}s" if minutes else f"{seconds:.1f} s"


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

    def __init__(self, clock: Clock, *, quiet: bool = False) -> None:
        self._clock, self._quiet = clock, quiet
        self._console = Console(stderr=True)
        self._live = Live(console=self._console, refresh_per_second=4, transient=True) if self._is_terminal else None
        self._rate = Rate()
        self._started = clock.monotonic()
        self._said_at = -_LINE_S

    @property
    def _is_terminal(self) -> bool:
        return self._console.is_terminal and not self._quiet

    def running(self) -> AbstractContextManager[Any]:
        """Hold the screen while the crawl runs."""
        return self._live if self._live is not None else nullcontext()

    def show(self, status: Status) -> None:
        """Show how it stands."""
        now = self._clock.monotonic()
        rate = self._rate.add(now, status.pages)
        if self._live is not None:
            self._live.update(panel(status, rate, now - self._started))
        elif not self._quiet and now - self._said_at >= _LINE_S:
            self._said_at = now
            print(line(status, rate), file=sys.stderr, flush=True)


def line(status: Status, rate: float) -> str:
    """Return a status as one line."""
    slow = f"; slow: {status.slow[0]['domain']} ({status.slow[0]['why']})" if status.slow else ""
    condition = "" if status.condition == "running" else f" [{status.condition}]"
    return (
        f"{status.pages} pages, {rate:.1f}/s, {status.queue} queued, {status.active_domains} domains, "
        f"{size(status.bytes)}, {outcomes(status)}{condition}{slow}"
    )


def outcomes(status: Status) -> str:
    """Return the outcomes in words."""
    return ", ".join(f"{name} {count}" for name, count in sorted(status.outcomes.items())) or "nothing settled yet"


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


Show = Callable[[Status], None]
