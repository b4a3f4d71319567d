"""Effective settings for display: name, value without secrets, and where each was set."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from holdfast.config import PREFIX, Settings
from holdfast.config.model import Secret, Setting, SettingGroup

# What follows an address's scheme, with its password or without: taken in either case, so that it is read once.
_LOGIN = re.compile(r"(://[^:/@\s]*+)(?::[^@\s]*+(@)?)?")
_NAMED = re.compile(r"((?:password|token|secret|key)=)[^&\s]++", re.I)


def walk(values: SettingGroup, prefix: str = "HOLDFAST") -> Iterator[tuple[str, SettingGroup, str, Setting]]:
    """Yield each setting: variable name, the group object that holds it, its key there, and its field."""
    for key, field in type(values).model_fields.items():
        value: Any = getattr(values, key)
        if isinstance(value, SettingGroup):
            yield from walk(value, f"{prefix}_{key.upper()}")
        else:
            yield f"{prefix}_{key.upper()}", values, key, field


def shown_text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ",".join(redacted(str(one)) for one in value)
    return "" if value is None else redacted(str(value))


def redacted(text: str) -> str:
    """Mask passwords in URLs and values after names that look like secrets."""
    without = _LOGIN.sub(lambda found: f"{found[1]}:***@" if found[2] else found[0], text)
    return _NAMED.sub(r"\1***", without)


class ShownSetting(NamedTuple):
    name: str
    value: str | int | float | bool | None
    origin: str
    """`default`, a file, `environment`, or `command`."""
    is_secret: bool
    description: str


def settings_in_force(settings: Settings) -> Iterator[ShownSetting]:
    for name, group, key, field in walk(settings):
        value = getattr(group, key)
        dotted = name.removeprefix(PREFIX).lower()
        inner = f"{dotted.removesuffix(key).rstrip('_')}.{key}" if group is not settings else key
        set_at = settings.origins.get(inner) or ("command" if key in group.model_fields_set else "default")
        is_secret = isinstance(value, Secret) or "Secret" in str(field.annotation)
        # Booleans are ints to Python, and shown as they are.
        plain = value if value is None or isinstance(value, int | float) else shown_text(value)
        yield ShownSetting(name, plain, set_at, is_secret, field.description)
