"""Groups of settings: fields with a default, a description and limits, validated on creation, then immutable.

Not pydantic, because every process reads its settings first: building the same groups with pydantic takes
0.35 s of CPU, which is more than the rest of a crawl process takes to start.
"""

from __future__ import annotations

import importlib
import inspect
import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

Network = IPv4Network | IPv6Network
Nameserver = str
"""The address of a DNS server, with or without a port: 192.0.2.53, 192.0.2.53:5353, [2001:db8::53]:5353."""
Proxy = str
"""An address or network (CIDR) of a trusted reverse proxy, or `*` for any."""
RATES = {
    "general": 120,
    "search": 60,
    "cdx": 120,
    "exports": 10,
    "packages": 60,
    "reports": 5,
    "replay": 3000,
    "admin": 500,
    "member": 100,
    "intruder": 10,
    "seeds": 10,
}
"""Requests per minute of each kind, for one address; `admin`, `member` and `seeds` count one user or token.

`packages` are pages opened in ReplayWeb.page, `replay` archived resources, `intruder` requests to admin
routes without a valid sign-in, `seeds` requests that add to the frontier.
"""
_TRUE, _FALSE = ("1", "on", "t", "true", "y", "yes"), ("0", "off", "f", "false", "n", "no")
_LIMITS: tuple[tuple[str, str, Callable[[Any, Any], bool]], ...] = (
    ("ge", "greater than or equal to", lambda value, limit: value >= limit),
    ("gt", "greater than", lambda value, limit: value > limit),
    ("le", "less than or equal to", lambda value, limit: value <= limit),
)


class SettingRefused(ValueError):
    """An invalid value of a setting, with its path and the reason."""

    def __init__(self, path: tuple[str, ...], message: str) -> None:
        super().__init__(f"{'.'.join(path)}: {message}")
        self.path, self.message = path, message


class Rate(NamedTuple):
    kind: str
    per_minute: int

    def __str__(self) -> str:
        return f"{self.kind}={self.per_minute}"


class Secret:
    """A string that is masked when the object that contains it is printed."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def get_secret_value(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return "Secret('**********')" if self._text else "Secret('')"

    def __str__(self) -> str:
        return "**********" if self._text else ""

    def __len__(self) -> int:
        return len(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)


class Setting:
    __slots__ = ("annotation", "convert", "default", "description", "limits", "min_length", "pattern")

    def __init__(self, default: Any, *, description: str, **limits: Any) -> None:
        self.default, self.description = default, description
        self.pattern: str | None = limits.pop("pattern", None)
        self.min_length: int = limits.pop("min_length", 0)
        self.limits = limits
        self.annotation: Any = None
        """What it is: a group's class, or a type as it is written."""
        self.convert: Callable[[Any], Any] = _same

    def read(self, value: Any) -> Any:
        """Return the validated value; raise SettingRefused if it is invalid."""
        value = self.convert(value)
        if value is None:
            return None
        for name, words, holds in _LIMITS:
            if name in self.limits and not holds(value, self.limits[name]):
                raise SettingRefused((), f"Input should be {words} {self.limits[name]}")
        if self.pattern is not None and not re.fullmatch(self.pattern, value):  # `$` would let a last line break pass
            raise SettingRefused((), f"String should match pattern '{self.pattern}'")
        if self.min_length and len(value) < self.min_length:
            raise SettingRefused((), f"Value should have at least {self.min_length} item")
        return value


def setting(default: Any, *, description: str, **limits: Any) -> Any:
    """Declare a field of a group: default, description and limits.

    `ge`, `gt` and `le` bound numbers, `pattern` must match the whole string, `min_length` counts characters.
    """
    return Setting(default, description=description, **limits)


class SettingGroup:
    """A group of related settings; fields that are not passed by name have their defaults."""

    model_fields: ClassVar[dict[str, Setting]] = {}
    extra: ClassVar[str] = "forbid"
    """Whether unknown names are rejected (`forbid`) or skipped (`ignore`)."""
    model_fields_set: frozenset[str]
    """The names that were set explicitly."""

    def __init_subclass__(cls) -> None:
        fields = dict(cls.model_fields)
        for name, annotation in inspect.get_annotations(cls).items():
            default = cls.__dict__.get(name)
            if isinstance(default, SettingGroup):
                fields[name] = Setting(default, description=(type(default).__doc__ or "").partition("\n")[0])
                fields[name].annotation, fields[name].convert = type(default), type(default).made_of
            elif isinstance(default, Setting):
                default.annotation, default.convert = annotation, _CONVERTERS[annotation]
                fields[name] = default
        cls.model_fields = fields

    def __init__(self, **values: Any) -> None:
        fields = type(self).model_fields
        if self.extra == "forbid" and (unknown := values.keys() - fields.keys()):
            raise SettingRefused((min(unknown),), "Extra inputs are not permitted")
        # Past `__setattr__`, which refuses every change.
        made = self.__dict__
        for name, field in fields.items():
            if name not in values:
                made[name] = field.default
                continue
            try:
                made[name] = field.read(values[name])
            except SettingRefused as exc:
                raise SettingRefused((name, *exc.path), exc.message) from None
        made["model_fields_set"] = frozenset(fields.keys() & values.keys())

    @classmethod
    def made_of(cls, value: Any) -> Self:
        if isinstance(value, cls):
            return value
        if not isinstance(value, Mapping):
            raise SettingRefused((), "Input should be a table of settings")
        return cls(**value)

    def model_copy(self, *, update: Mapping[str, Any]) -> Self:
        """Return a copy with some values replaced; the new values are not validated."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__, **update)
        copy.__dict__["model_fields_set"] = self.model_fields_set | update.keys()
        return copy

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"settings do not change: {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"settings do not change: {name}")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and all(
            getattr(self, name) == getattr(other, name) for name in self.model_fields
        )

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, name) for name in self.model_fields))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.model_fields)
        return f"{type(self).__name__}({shown})"


def _same(value: Any) -> Any:
    return value


def _int(value: Any) -> int:
    try:
        if isinstance(value, str):
            text = value.strip()
            # `5.0` is five: TOML and JSON writers turn whole numbers into that.
            whole, point, zeros = text.partition(".")
            return int(whole if point and zeros and not zeros.strip("0") else text)
        if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
            return int(value)
    except ValueError:
        pass
    raise SettingRefused((), "Input should be a valid integer")


def _float(value: Any) -> float:
    try:
        # Neither endless nor no number: what waits for such a time, or compares with it, fails far from here.
        if isinstance(value, (str, int, float)) and math.isfinite(number := float(value)):
            return number
    except (ValueError, OverflowError):
        pass
    raise SettingRefused((), "Input should be a valid number")


def _bool(value: Any) -> bool:
    text = value.lower() if isinstance(value, str) else str(int(value)) if value in (0, 1) else ""
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise SettingRefused((), "Input should be a valid boolean")


def _str(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise SettingRefused((), "Input should be a valid string")


def _path(value: Any) -> Path:
    if isinstance(value, (str, Path)):
        return Path(value)
    raise SettingRefused((), "Input should be a path")


def _secret(value: Any) -> Secret:
    return value if isinstance(value, Secret) else Secret(_str(value))


def _parts(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if isinstance(value, (list, tuple)):
        return tuple(map(_str, value))
    raise SettingRefused((), "Input should be a list, or a text with commas")


def _networks(value: Any) -> tuple[Network, ...]:
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, (list, tuple)):
        raise SettingRefused((), "Input should be a list, or a text with commas")
    try:
        return tuple(ip_network(part.strip()) if isinstance(part, str) else ip_network(part) for part in parts if part)
    except ValueError as exc:
        raise SettingRefused((), f"Value error, {exc}") from None


def _nameservers(value: Any) -> tuple[Nameserver, ...]:
    """Return valid nameservers. With an invalid one, a crawl would close pages as if their sites had failed."""
    servers = _parts(value)
    for server in servers:
        named = re.fullmatch(r"\[([^\]]+)\](?::([0-9]{1,5}))?", server) or re.fullmatch(r"([^:]+):([0-9]{1,5})", server)
        host, port = (str(named[1]), int(named[2] or 53)) if named else (server, 53)
        try:
            ip_address(host)
        except ValueError:
            raise SettingRefused((), f"Value error, {server!r} is no IP address of a DNS server") from None
        if not 0 < port < 65536:
            raise SettingRefused((), f"Value error, {server!r} has no port from 1 to 65535")
    return servers


def _proxies(value: Any) -> tuple[Proxy, ...]:
    """Return valid proxy addresses. A host name, or a network with host bits, would match no connection."""
    proxies = _parts(value)
    for proxy in proxies:
        try:
            if proxy != "*":
                ip_network(proxy)
        except ValueError as exc:
            raise SettingRefused((), f"Value error, {exc}") from None
    return proxies


def _rates(value: Any) -> tuple[Rate, ...]:
    rates = []
    for part in _parts(value):
        kind, _, number = part.partition("=")
        if kind not in RATES:
            raise SettingRefused((), f"unknown kind {kind!r}; expected one of: {', '.join(RATES)}")
        if (per_minute := _int(number)) < 1:
            raise SettingRefused((), f"{part!r} should allow at least 1 request a minute")
        rates.append(Rate(kind, per_minute))
    return tuple(rates)


def _or_none(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else convert(value)


# What makes a value of each type that a setting may have, by the type as it is written.
_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "int": _int,
    "float": _float,
    "bool": _bool,
    "str": _str,
    "Path": _path,
    "tuple[str, ...]": _parts,
    "tuple[Network, ...]": _networks,
    "tuple[Nameserver, ...]": _nameservers,
    "tuple[Proxy, ...]": _proxies,
    "tuple[Rate, ...]": _rates,
    "str | None": _or_none(_str),
    "Path | None": _or_none(_path),
    "Secret | None": _or_none(_secret),
}


PREFIX = "HOLDFAST_"


REMOVED_GROUPS = frozenset({"lease", "parse", "traps"})
"""Groups that have no settings any more; `removed.py` lists their replacements."""


Origins = dict[str, str]
"""Where settings were set, by dotted name: a file, `.env`, or `environment`."""


def gather(fields: Mapping[str, Setting], given: Mapping[str, Any], origins: Origins | None = None) -> dict[str, Any]:
    """Merge settings: `given` wins over variables, variables over `.env`, and `.env` over the TOML file.

    `origins` receives where each one was set.
    """
    env_file, named = Path(".env"), os.environ.get(f"{PREFIX}CONFIG")
    toml = Path(named or f"{PREFIX.strip('_').lower()}.toml")
    values: dict[str, Any] = {}
    # What reads a file is loaded by its name, where there is one: with both, settings would take twice as long.
    if toml.is_file():
        with _naming(toml):
            values = importlib.import_module("tomllib").loads(toml.read_text("utf-8"))
        _note(origins, values, toml.name)
    elif named:  # without it an archive might be looked for, and made, in another place
        raise ValueError(f"there is no file {toml}, which {PREFIX}CONFIG names: mend the variable, or unset it")
    if env_file.is_file():
        with _naming(env_file):
            found = importlib.import_module("dotenv").dotenv_values(env_file)
        table = _table(fields, found)
        _note(origins, table, env_file.name)
        values = _merged(values, table)
    # Variables last: what an operator sets for one run wins over the files.
    table = _table(fields, os.environ)
    _note(origins, table, "environment")
    _note(origins, given, "command")
    values = _merged(values, table)
    return {**values, **_merged(values, given)}


def _note(origins: Origins | None, table: Mapping[str, Any], where: str, prefix: str = "") -> None:
    for name, value in table.items() if origins is not None else ():
        if isinstance(value, Mapping):
            _note(origins, value, where, f"{prefix}{name}.")
        elif origins is not None:
            origins[f"{prefix}{name}"] = where


@contextmanager
def _naming(file: Path) -> Iterator[None]:
    """Add the file's name to errors raised while reading it."""
    try:
        yield
    except ValueError as exc:
        raise ValueError(f"{file}: {exc}") from exc


def _table(fields: Mapping[str, Setting], variables: Mapping[str, str | None]) -> dict[str, Any]:
    """Return the settings among variables; the prefix selects the group, even if the group does not have that name."""
    prefix, table = PREFIX.lower(), dict[str, Any]()
    for variable, value in variables.items():
        name = variable.lower()
        if value is None or not name.startswith(prefix):
            continue
        name = name.removeprefix(prefix)
        if name in fields:
            is_group = isinstance(fields[name].default, SettingGroup)
            # A whole group may stand in one variable, as JSON; single variables of it win.
            table[name] = _merged(_group(variable, value), table.get(name, {})) if is_group else value
            continue
        group, _, key = name.partition("_")
        is_group = group in REMOVED_GROUPS or (group in fields and isinstance(fields[group].default, SettingGroup))
        if key and is_group:
            table[group] = _merged(table.get(group, {}), {key: value})
    return table


def _group(variable: str, value: str) -> dict[str, Any]:
    try:
        found = json.loads(value)
    except (ValueError, RecursionError) as exc:
        raise ValueError(f"{variable} is no JSON: {exc}") from exc
    if not isinstance(found, dict):  # passed over, its settings would silently be the defaults
        raise ValueError(f"{variable} should be a JSON object of settings, as in {{}}")
    return found


def _merged(below: Any, above: Any) -> Any:
    """Merge two tables recursively; `above` wins."""
    if not isinstance(below, Mapping) or not isinstance(above, Mapping):
        return above
    return {**below, **{name: _merged(below.get(name), value) for name, value in above.items()}}
