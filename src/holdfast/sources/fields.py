"""Reads one field after the other from what somebody wrote; the first wrong one is named, unknown ones are refused."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.sources.refusals import SourceRefused

MAX_LIST = 10_000
MAX_NESTED = 32
_MAX_WHOLE = 1 << 63
_NAME_CHARS = 60


def demand_plain(value: object, place: str, *, nested: int = 0) -> None:
    """Raise SourceRefused with the place of the first value that cannot be kept or written out again.

    Plain are text that any database holds, finite numbers, true, false, null, lists, and objects whose names are text.
    """
    if nested > MAX_NESTED:
        raise SourceRefused(place, f"it is nested more than {MAX_NESTED} deep")
    if isinstance(value, Mapping):
        for name, one in value.items():
            if not isinstance(name, str):  # YAML has such names, JSON and TOML do not
                raise SourceRefused(place, f"{str(name)[:_NAME_CHARS]} is no name; names are text")
            inner = f"{place}.{ascii(name[:_NAME_CHARS])[1:-1]}"
            demand_plain(name, inner)
            demand_plain(one, inner, nested=nested + 1)
    elif isinstance(value, list | tuple):
        for number, one in enumerate(value):
            demand_plain(one, f"{place}[{number}]", nested=nested + 1)
    elif (reason := _why_not_plain(value)) is not None:
        raise SourceRefused(place, reason)


def _why_not_plain(value: object) -> str | None:
    if isinstance(value, str):
        if "\x00" in value:
            return "it holds a NUL character"
        half = any("\ud800" <= char <= "\udfff" for char in value)
        return "it holds half of a character (a lone surrogate)" if half else None
    if isinstance(value, float) and not math.isfinite(value):
        return "it is no finite number"
    if isinstance(value, int) and not -_MAX_WHOLE <= value < _MAX_WHOLE:
        return "it is a larger number than we keep"
    plain = value is None or isinstance(value, int | float)
    return None if plain else "it must be a plain value: text, a number, true, false, a list or an object"


class Fields:
    """A mapping from outside, read field by field under one prefix."""

    def __init__(self, content: object, *, prefix: str = "") -> None:
        if not isinstance(content, Mapping):
            raise SourceRefused(prefix.rstrip(".") or "config", "it must be an object with named fields")
        self._content: dict[Any, Any] = dict(content)
        self._prefix = prefix

    def named(self, name: str) -> str:
        """Return a field's name as its writer knows it."""
        return f"{self._prefix}{name}"

    def refuse(self, name: str, reason: str) -> SourceRefused:
        """Return the refusal of a field."""
        return SourceRefused(self.named(name), reason)

    def _take(self, name: str) -> Any:
        return self._content.pop(name, None)

    def text(self, name: str, *, limit: int = 2048) -> str | None:
        """Return a string on one line, or None if it is left out or empty."""
        value = self._take(name)
        if value is None or value == "":
            return None
        if not isinstance(value, str) or not value.isprintable() or len(value) > limit:
            raise self.refuse(name, f"it must be a line of at most {limit} printable characters")
        return value

    def choice(self, name: str, allowed: Sequence[str], default: str) -> str:
        """Return one of a few words."""
        value = self._take(name)
        if value is None:
            return default
        if not isinstance(value, str) or value not in allowed:
            raise self.refuse(name, f"it must be one of {', '.join(allowed)}")
        return value

    def switch(self, name: str, default: bool) -> bool:
        """Return true or false."""
        value = self._take(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.refuse(name, "it must be true or false")
        return value

    def whole(self, name: str, *, least: int, most: int) -> int | None:
        """Return a whole number within bounds, or None if it is left out."""
        value = self._take(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.refuse(name, f"it must be a whole number from {least} to {most}")
        return value

    def wholes(self, name: str, *, least: int, most: int) -> tuple[int, ...]:
        """Return a list of whole numbers within bounds, each once and in order."""
        value = self._take(name)
        if value is None:
            return ()
        is_list = isinstance(value, list | tuple) and len(value) <= MAX_LIST
        if not is_list or any(isinstance(one, bool) or not isinstance(one, int) for one in value):
            raise self.refuse(name, "it must be a list of whole numbers")
        if any(not least <= one <= most for one in value):
            raise self.refuse(name, f"each must be from {least} to {most}")
        return tuple(sorted(set(value)))

    def number(self, name: str, *, least: float, most: float) -> float | None:
        """Return a number within bounds, or None if it is left out."""
        value = self._take(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise self.refuse(name, f"it must be a number from {least:g} to {most:g}")
        return float(value)

    def texts(self, name: str, *, limit: int, most: int = MAX_LIST) -> tuple[str, ...]:
        """Return a list of strings, each on one line."""
        value = self._take(name)
        if value is None:
            return ()
        if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
            raise self.refuse(name, "it must be a list of strings")
        if len(value) > most:
            raise self.refuse(name, f"{len(value)} entries are more than {most}")
        for one in value:
            if not one.isprintable() or not one.strip() or len(one) > limit:
                raise self.refuse(name, f"{one[:60]!r} is empty, has control characters, or is over {limit} characters")
        return tuple(value)

    def mapping(self, name: str) -> dict[str, Any]:
        """Return an object whose fields somebody else will check."""
        value = self._take(name)
        if value is None:
            return {}
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            raise self.refuse(name, "it must be an object with named fields")
        return dict(value)

    def scalars(self, name: str) -> dict[str, Any]:
        """Return a flat object of plain values."""
        value = self._take(name)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise self.refuse(name, "it must be an object with named fields")
        for key, one in value.items():
            if not isinstance(key, str) or not isinstance(one, str | int | float | bool | dict | None):
                raise self.refuse(f"{name}.{str(key)[:80]}", "it must be a plain value")
        demand_plain(value, self.named(name))
        return dict(value)

    def inner(self, name: str) -> Fields:
        """Return the fields of an object below this one."""
        value = self._take(name)
        return Fields({} if value is None else value, prefix=f"{self.named(name)}.")

    def done(self) -> None:
        """Refuse what nobody asked for: a misspelled field would be silently without effect."""
        for name in self._content:
            raise self.refuse(str(name)[:80], "there is no such field")
