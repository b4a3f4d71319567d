"""External text for database columns: replaces characters that no database stores, and truncates long text.

PostgreSQL rejects NUL in text and JSON, and NaN in JSON; neither database stores lone surrogates.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final

# What may stand for a NUL or for half a character in JSON. Whole pairs match too: those are only looked at again.
_ODD = re.compile(r"\\u0000|\\ud[89a-f]", re.I)


def clean(text: str | None, limit: int) -> str | None:
    """Return text that both databases store: no NUL (PostgreSQL), no lone surrogate (either), at most `limit` long."""
    if text is None:
        return None
    if len(text) > limit:
        text = text[:limit]
    return _clean(text)


def _clean(text: str) -> str:
    if "\x00" in text:
        text = text.replace("\x00", "\ufffd")
    # Half a character (a lone surrogate) becomes a question mark: neither database stores it.
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def to_json(value: Any) -> str:
    """Return a value as JSON that both databases store; raise TypeError for values that JSON does not support."""
    try:
        text = json.dumps(value, allow_nan=False)
    except ValueError:
        # NaN and infinities: JSON has none, and PostgreSQL refuses them.
        return json.dumps(_cleaned(value))
    return json.dumps(_cleaned(value)) if _ODD.search(text) else text


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return _clean(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {_cleaned(name): _cleaned(one) for name, one in value.items()}
    return [_cleaned(one) for one in value] if isinstance(value, list | tuple) else value


# What begins a formula; the last four are the wide ones.
_FORMULA: Final = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
# What some spreadsheets drop before they look.
_SKIPPED: Final = ("\t", "\r")


def guarded(text: str) -> str:
    """Return a cell's text with an apostrophe before it if a spreadsheet would run it as a formula."""
    return f"'{text}" if text.lstrip().startswith(_FORMULA) or text.startswith(_SKIPPED) else text
