"""What `--json` prints: one object on one line, its moments written as the API writes them."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any


def dumps(value: Any) -> str:
    """Return a value as one line of JSON; TypeError for what has no place in it."""
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat().removesuffix("+00:00") + "Z"
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no place in JSON")
