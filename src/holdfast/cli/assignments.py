"""`--set FIELD=VALUE`: words turned into fields, with the types that JSON gives them: 5, true, null, ["a"], or text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import typer


def read_assignments(words: Iterable[str], option: str = "--set") -> dict[str, Any]:
    """Return the fields that are named, those with dots one below the other; exit code 2 for what is no assignment."""
    made: dict[str, Any] = {}
    for word in words:
        name, equals, written = word.partition("=")
        *above, last = name.strip().split(".")
        if not equals or not last or not all(above):
            raise typer.BadParameter(f"{word[:80]!r}: write FIELD=VALUE, for example max_depth=5", param_hint=option)
        place = made
        for part in above:
            place = place.setdefault(part, {})
            if not isinstance(place, dict):
                raise typer.BadParameter(f"{name!r} is given as a value and as a group", param_hint=option)
        place[last] = read_value(written)
    return made


def read_value(written: str) -> Any:
    """Return what was written as JSON has it, or the text itself where it is none."""
    try:
        return json.loads(written)
    except ValueError:
        return written


def leaves(fields: dict[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every field by the name that `--set` knows, those of a group with a dot."""
    for name, value in fields.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value
