"""Rows for a terminal: aligned columns under a heading, each value on one line, without control characters.

A table is cut to the width of a terminal, widest columns first; in a pipe nothing is cut.
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
# Columns are not cut below this many letters.
_LEAST = 8


def table(head: Sequence[str], rows: Iterable[Sequence[object]], *, columns: int | None = None) -> str:
    """Return the rows as text, cut to `columns` if given, else to the terminal's width."""
    rows = list(rows)
    cells = [list(head), *([text(value) for value in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    words = [column for column in range(len(head)) if any(isinstance(row[column], str) for row in rows)]
    # Cut nothing in a pipe: grep and cut need whole values.
    _fit(widths, words, columns or terminal_columns())
    return "\n".join(
        _GAP.join(
            cell.ljust(width) if len(cell) <= width else f"{cell[: width - 1]}…"
            for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in cells
    )


def terminal_columns() -> int | None:
    """Return the width of the terminal; None if the output is a file or a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _fit(widths: list[int], words: Sequence[int], columns: int | None) -> None:
    """Shrink the widest text column, one letter at a time, until the row fits; numbers and times are not cut."""
    while columns is not None and sum(widths) + len(_GAP) * (len(widths) - 1) > columns:
        widest = max(words, key=lambda column: widths[column], default=None)
        # On a terminal of twenty columns, a wrapped line is better than a table of dots.
        if widest is None or widths[widest] <= _LEAST:
            return
        widths[widest] -= 1


def fields(pairs: Iterable[tuple[str, object]]) -> str:
    """Return names and values, one per line; empty values are left out."""
    kept = [(name, value) for name, value in pairs if value not in (None, "", [], {}, ())]
    width = max((len(name) for name, _ in kept), default=0)
    # Indent the lines of a value, so that none of them looks like another field.
    indent = "\n" + " " * (width + 2)
    shown = ((name, lines(value) if isinstance(value, str) else text(value)) for name, value in kept)
    return "\n".join(f"{name:<{width}}  {indent.join(value.splitlines())}" for name, value in shown)


def lines(value: object) -> str:
    """Return untrusted text with its lines preserved, without control characters, as in tables."""
    return "\n".join(map(text, str(value).expandtabs().split("\n")))


def text(value: object) -> str:
    """Return a value as readable text."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    if isinstance(value, list | tuple):
        return ", ".join(text(one) for one in value)
    if isinstance(value, dict):
        value = json.dumps(value)
    # A title may contain an escape sequence that clears the screen or reverses text: none may reach the terminal. Print
    # other kinds of spaces (such as a no-break space) as a space, although Python does not call them printable.
    return "".join(c if c.isprintable() else " " if c.isspace() and c > "\x9f" else "\ufffd" for c in str(value))


def one_line(value: object) -> str:
    """Return untrusted text on one line: line ends become spaces, control characters are removed as in tables."""
    return text("".join(" " if c.isspace() else c for c in str(value)))


def size(count: float) -> str:
    """Return a number of bytes in readable units."""
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: 1 run, 2 runs."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    """Return a time span in readable units."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes:02d}m" if hours else f"{minutes}m {rest:02d}s" if minutes else f"{seconds:.1f} s"


def line(status: ExecutionStatus) -> str:
    """Return a status as one line."""
    slow = f"; slow: {status.slow[0]['domain']} ({status.slow[0]['why']})" if status.slow else ""
    trouble = f": {status.trouble}" if status.trouble else ""
    condition = "" if status.condition == "running" else f" [{status.condition}{trouble}]"
    if (waits := paused(status)) is not None:
        condition = f" [{waits}]"
    seeds = f" and {counted(status.seeds_left, 'seed')} to read" if status.seeds_left else ""
    return (
        f"{counted(status.pages, 'page')}, {status.pages_s:.1f}/s, {status.queue:,} queued{seeds}, "
        f"{counted(status.active_domains, 'domain')}, "
        f"{size(status.bytes)}, {outcomes(status)}{condition}{slow}"
    )


def paused(status: ExecutionStatus) -> str | None:
    """Return since when a run has been paused, and how to resume it; None if it is not paused, or is ending."""
    if status.condition != "paused" or status.paused_at is None:
        return None
    return (
        f"paused since {status.paused_at:%Y-%m-%d %H:%M} UTC by {text(status.paused_by)}; "
        f"go on with: holdfast resume {status.execution_id}"
    )


def outcomes(status: ExecutionStatus) -> str:
    """Return the outcomes as text."""
    return ", ".join(f"{name} {count}" for name, count in sorted(status.outcomes.items())) or "nothing settled yet"


def dumps(value: Any) -> str:
    """Return a value as one line of JSON; raise TypeError for unsupported types."""
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat().removesuffix("+00:00") + "Z"
    if isinstance(value, Path):
        return str(value)
    # default=str would print an object's repr as if it were data.
    raise TypeError(f"{type(value).__name__} has no place in JSON")
