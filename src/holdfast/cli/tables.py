"""Rows for a terminal: aligned columns under a heading. Values are shown on one line; control characters never are.

On a terminal a table is as wide as that, its widest columns cut; in a pipe nothing is cut.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime

_GAP = "  "
_LEAST = 8
"""No column is cut below this many letters."""


def table(head: Sequence[str], rows: Iterable[Sequence[object]], *, columns: int | None = None) -> str:
    """Return the rows as text, in so many columns if they are given, else as the terminal has them."""
    rows = list(rows)
    cells = [list(head), *([text(value) for value in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    words = [column for column in range(len(head)) if any(isinstance(row[column], str) for row in rows)]
    _fit(widths, words, columns or terminal_columns())
    return "\n".join(
        _GAP.join(_cut(cell, width).ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    )


def terminal_columns() -> int | None:
    """Return how wide the terminal is; None if nobody looks at one."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _fit(widths: list[int], words: Sequence[int], columns: int | None) -> None:
    """Take letters from the widest column of words, one by one, until the row has room; numbers and moments stay."""
    while columns is not None and sum(widths) + len(_GAP) * (len(widths) - 1) > columns:
        widest = max(words, key=lambda column: widths[column], default=None)
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
    return "".join(c if c.isprintable() else "\ufffd" for c in str(value))
