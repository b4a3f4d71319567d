"""`holdfast settings`: what is in force, and what each setting means."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from holdfast import config
from holdfast.cli.options import AsJson, Home


def settings(json: AsJson = False, home: Home = None) -> None:
    """Print the settings in force.

    Example: holdfast settings --json
    """
    values = config.load(home=home)
    rows = [(name, getattr(group, key), field) for name, group, key, field in walk(values)]
    if json:
        plain = {name: value if isinstance(value, int | float) else _text(value) for name, value, _ in rows}
        print(jsonlib.dumps(plain))
        return
    for name, value, field in rows:
        print(f"{name} = {_text(value)}\n    {field.description}")


def walk(values: BaseModel, prefix: str = "HOLDFAST") -> Iterator[tuple[str, BaseModel, str, FieldInfo]]:
    """Yield every setting: its variable's name, the group that holds it, its key there, and its description."""
    for key, field in type(values).model_fields.items():
        value: Any = getattr(values, key)
        if isinstance(value, BaseModel):
            yield from walk(value, f"{prefix}_{key.upper()}")
        else:
            yield f"{prefix}_{key.upper()}", values, key, field


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return "" if value is None else str(value)


app_command = settings
