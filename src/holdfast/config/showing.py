"""Effective settings for display: name, value without secrets, and where each was set."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Any

from holdfast.config import PREFIX, Settings
from holdfast.config.model import Secret, Setting, SettingGroup
from holdfast.records import Operator, record

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


class SettingOrigin(StrEnum):
    DEFAULT = "default"
    FILE = "file"
    DOTENV = "dotenv"
    ENVIRONMENT = "environment"
    COMMAND = "command"


@record
class SettingRecord:
    """An effective setting."""

    name: Operator[str]
    """The variable that sets it."""
    value: Operator[bool | int | float | str | None]
    """Secrets are masked."""
    origin: Operator[SettingOrigin]
    is_secret: Operator[bool]
    description: Operator[str]


def settings_in_force(settings: Settings) -> Iterator[SettingRecord]:
    for name, group, key, field in walk(settings):
        value = getattr(group, key)
        dotted = name.removeprefix(PREFIX).lower()
        inner = f"{dotted.removesuffix(key).rstrip('_')}.{key}" if group is not settings else key
        set_at = settings.origins.get(inner) or ("command" if key in group.model_fields_set else "default")
        yield SettingRecord(
            name=name,
            # Booleans are ints to Python, and shown as they are.
            value=value if value is None or isinstance(value, int | float) else shown_text(value),
            origin=_origin(set_at),
            is_secret=isinstance(value, Secret) or "Secret" in str(field.annotation),
            description=field.description,
        )


def _origin(word: str) -> SettingOrigin:
    """Return where a setting was set; any unknown word is the path of a file."""
    known = {one.value: one for one in SettingOrigin}
    return SettingOrigin.DOTENV if word == ".env" else known.get(word, SettingOrigin.FILE)
