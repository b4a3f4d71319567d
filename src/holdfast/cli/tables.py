"""Rows for a terminal: aligned columns under a heading. Values are shown on one line; control characters never are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return the rows as text; the last column keeps its length, so that nothing is padded in vain."""
    cells = [list(head), *([text(value) for value in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
                     for row in cells)  # fmt: skip


def fields(pairs: Iterable[tuple[str, object]]) -> str:
    """Return names and values, one a line; what has no value is left out."""
    kept = [(name, value) for name, value in pairs if value not in (None, "", [], {}, ())]
    width = max((len(name) for name, _ in kept), default=0)
    return "\n".join(f"{name:<{width}}  {text(value)}" for name, value in kept)


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
