"""Rows for a terminal: aligned columns under a heading. Values are shown on one line; control characters never are.

On a terminal a table is as wide as that, its widest columns cut; in a pipe nothing is cut.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.jobs.views.status import ExecutionStatus


_GAP = "  "
# No column is cut below this many letters.
_LEAST = 8


def table(head: Sequence[str], rows: Iterable[Sequence[object]], *, columns: int | None = None) -> str:
    """Return the rows as text, in so many columns if they are given, else as the terminal has them."""
    rows = list(rows)
    cells = [list(head), *([text(value) for value in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    words = [column for column in range(len(head)) if any(isinstance(row[column], str) for row in rows)]
    # In a pipe nothing is cut: grep and cut want whole values.
    _fit(widths, words, columns or terminal_columns())
    return "\n".join(
        _GAP.join(_cut(cell, width).ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    )


def terminal_columns() -> int | None:
    """Return how wide the terminal is; None where output goes to a file or a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _fit(widths: list[int], words: Sequence[int], columns: int | None) -> None:
    """Take letters from the widest column of words, one by one, until the row has room; numbers and moments stay."""
    while columns is not None and sum(widths) + len(_GAP) * (len(widths) - 1) > columns:
        widest = max(words, key=lambda column: widths[column], default=None)
        # A terminal of twenty columns: better a wrapped line than a table of dots.
        if widest is None or widths[widest] <= _LEAST:
            return
        widths[widest] -= 1


def _cut(cell: str, width: int) -> str:
    return cell if len(cell) <= width else f"{cell[: width - 1]}…"


def fields(pairs: Iterable[tuple[str, object]]) -> str:
    """Return names and values, one a line; what has no value is left out."""
    kept = [(name, value) for name, value in pairs if value not in (None, "", [], {}, ())]
    width = max((len(name) for name, _ in kept), default=0)
    return "\n".join(f"{name:<{width}}  {text(value)}" for name, value in kept)


def lines(value: object) -> str:
    """Return what others wrote with its lines kept and, as in tables, nothing that a terminal would obey."""
    return "\n".join(map(text, str(value).expandtabs().split("\n")))


def text(value: object) -> str:
    """Return a value as people read it."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    if isinstance(value, list | tuple):
        return ", ".join(text(one) for one in value)
    # A title may carry an escape sequence that clears the screen or turns text around: none reaches the terminal.
    # Spaces of other kinds (a no-break space) are shown as one, though Python does not call them printable.
    return "".join(c if c.isprintable() else " " if c.isspace() and c > "\x9f" else "\ufffd" for c in str(value))


def one_line(value: object) -> str:
    """Return what a page says about itself on one line: its line ends become spaces, the rest as in tables."""
    return text("".join(" " if c.isspace() else c for c in str(value)))


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


def line(status: ExecutionStatus, rate: float) -> str:
    """Return a status as one line."""
    slow = f"; slow: {status.slow[0]['domain']} ({status.slow[0]['why']})" if status.slow else ""
    trouble = f": {status.trouble}" if status.trouble else ""
    condition = "" if status.condition == "running" else f" [{status.condition}{trouble}]"
    if (waits := paused(status)) is not None:
        condition = f" [{waits}]"
    seeds = f" and {counted(status.seeds_left, 'seed')} to read" if status.seeds_left else ""
    return (
        f"{counted(status.pages, 'page')}, {rate:.1f}/s, {status.queue:,} queued{seeds}, "
        f"{counted(status.active_domains, 'domain')}, "
        f"{size(status.bytes)}, {outcomes(status)}{condition}{slow}"
    )


def paused(status: ExecutionStatus) -> str | None:
    """Return since when an operator lets a run wait, and how it goes on; None if it is not paused, or ends."""
    if status.condition != "paused" or status.paused_at is None:
        return None
    return (
        f"paused since {status.paused_at:%Y-%m-%d %H:%M} UTC by {text(status.paused_by)}; "
        f"go on with: holdfast resume {status.execution_id}"
    )


def outcomes(status: ExecutionStatus) -> str:
    """Return the outcomes in words."""
    return ", ".join(f"{name} {count}" for name, count in sorted(status.outcomes.items())) or "nothing settled yet"


def dumps(value: Any) -> str:
    """Return a value as one line of JSON; TypeError for what has no place in it."""
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat().removesuffix("+00:00") + "Z"
    if isinstance(value, Path):
        return str(value)
    # default=str would print an object's repr as if it were data.
    raise TypeError(f"{type(value).__name__} has no place in JSON")
