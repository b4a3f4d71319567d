"""Sizes, times and statuses in words, as every command says them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a word for `1 page` should not load what a crawl is made of
    from holdfast.jobs.status import Status


def size(count: float) -> str:
    """Return a number of bytes in words."""
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: 1 run, 2 runs."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    """Return a time span in words."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes:02d}m" if hours else f"{minutes}m {rest:02d}s" if minutes else f"{seconds:.1f} s"


def line(status: Status, rate: float) -> str:
    """Return a status as one line."""
    slow = f"; slow: {status.slow[0]['domain']} ({status.slow[0]['why']})" if status.slow else ""
    trouble = f": {status.trouble}" if status.trouble else ""
    condition = "" if status.condition == "running" else f" [{status.condition}{trouble}]"
    seeds = f" and {counted(status.seeds_left, 'seed')} to read" if status.seeds_left else ""
    return (
        f"{counted(status.pages, 'page')}, {rate:.1f}/s, {status.queue:,} queued{seeds}, "
        f"{counted(status.active_domains, 'domain')}, "
        f"{size(status.bytes)}, {outcomes(status)}{condition}{slow}"
    )


def outcomes(status: Status) -> str:
    """Return the outcomes in words."""
    return ", ".join(f"{name} {count}" for name, count in sorted(status.outcomes.items())) or "nothing settled yet"
