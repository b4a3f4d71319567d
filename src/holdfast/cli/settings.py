"""`holdfast settings`: what is in force, and what each setting means. Secrets are never printed."""

from __future__ import annotations

import json as jsonlib
import re
from collections.abc import Iterator
from typing import Any

from holdfast import config
from holdfast.cli.parameters import AsJson, Home
from holdfast.config.model import Setting, SettingGroup

# What follows an address's scheme, with its password or without: taken in either case, so that it is read once.
_LOGIN = re.compile(r"(://[^:/@\s]*+)(?::[^@\s]*+(@)?)?")
_NAMED = re.compile(r"((?:password|token|secret|key)=)[^&\s]++", re.I)


def settings(json: AsJson = False, home: Home = None) -> None:
    """Print the settings in force.

    Example: holdfast settings --json
    """
    values = config.load(home=home)
    rows = [(name, getattr(group, key), field) for name, group, key, field in walk(values)]
    if json:
        # Text is redacted in both forms: a database address may carry a password.
        plain = {name: value if isinstance(value, int | float) else _text(value) for name, value, _ in rows}
        print(jsonlib.dumps(plain))
        return
    for name, value, field in rows:
        print(f"{name} = {_text(value)}\n    {field.description}")


def walk(values: SettingGroup, prefix: str = "HOLDFAST") -> Iterator[tuple[str, SettingGroup, str, Setting]]:
    """Yield every setting: its variable's name, the group that holds it, its key there, and its description."""
    for key, field in type(values).model_fields.items():
        value: Any = getattr(values, key)
        if isinstance(value, SettingGroup):
            yield from walk(value, f"{prefix}_{key.upper()}")
        else:
            yield f"{prefix}_{key.upper()}", values, key, field


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ",".join(redacted(str(one)) for one in value)
    return "" if value is None else redacted(str(value))


def redacted(text: str) -> str:
    """Return a text without the password in an address, or behind a name that says so."""
    without = _LOGIN.sub(lambda found: f"{found[1]}:***@" if found[2] else found[0], text)
    return _NAMED.sub(r"\1***", without)


app_command = settings
