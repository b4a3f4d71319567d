"""Text in a table that people open with a spreadsheet: no cell of it is taken for a formula (faults H05). Pure."""

from __future__ import annotations

from typing import Final

_FORMULA: Final = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What begins a formula; the last four are the wide ones."""
_SKIPPED: Final = ("\t", "\r")
"""What some spreadsheets drop before they look."""


def guarded(text: str) -> str:
    """Return a cell's text with an apostrophe before it, if a spreadsheet would run it otherwise."""
    return f"'{text}" if text.lstrip().startswith(_FORMULA) or text.startswith(_SKIPPED) else text
