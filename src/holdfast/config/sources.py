"""Where settings are read from: variables, a `.env` file and a TOML file, each as a table of names and values."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from holdfast.config.model import Group, Setting

PREFIX = "HOLDFAST_"


def gather(fields: Mapping[str, Setting], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is set: what is given wins over variables, variables over `.env`, and `.env` over the TOML file."""
    env_file, named = Path(".env"), os.environ.get(f"{PREFIX}CONFIG")
    toml = Path(named or "holdfast.toml")
    values: dict[str, Any] = {}
    # What reads a file is loaded by its name, where there is one: with both, settings would take twice as long.
    if toml.is_file():
        with _naming(toml):
            values = importlib.import_module("tomllib").loads(toml.read_text("utf-8"))
    elif named:  # without it an archive might be looked for, and made, in another place
        raise ValueError(f"there is no file {toml}, which {PREFIX}CONFIG names: mend the variable, or unset it")
    if env_file.is_file():
        with _naming(env_file):
            found = importlib.import_module("dotenv").dotenv_values(env_file)
        values = _merged(values, _table(fields, found))
    values = _merged(values, _table(fields, os.environ))
    return {**values, **_merged(values, given)}


@contextmanager
def _naming(file: Path) -> Iterator[None]:
    """Say in which file it is that something cannot be read."""
    try:
        yield
    except ValueError as exc:
        raise ValueError(f"{file}: {exc}") from exc


def _table(fields: Mapping[str, Setting], variables: Mapping[str, str | None]) -> dict[str, Any]:
    """Return the settings among variables; one that begins with a group's name is of that group, known there or not."""
    prefix, table = PREFIX.lower(), dict[str, Any]()
    for variable, value in variables.items():
        name = variable.lower()
        if value is None or not name.startswith(prefix):
            continue
        name = name.removeprefix(prefix)
        if name in fields:
            is_group = isinstance(fields[name].default, Group)
            # A whole group may stand in one variable, as JSON; single variables of it win.
            table[name] = _merged(_group(variable, value), table.get(name, {})) if is_group else value
            continue
        group, _, key = name.partition("_")
        if key and group in fields and isinstance(fields[group].default, Group):
            table[group] = _merged(table.get(group, {}), {key: value})
    return table


def _group(variable: str, value: str) -> dict[str, Any]:
    """Return the group that a variable spells as JSON."""
    try:
        found = json.loads(value)
    except (ValueError, RecursionError) as exc:
        raise ValueError(f"{variable} is no JSON: {exc}") from exc
    if not isinstance(found, dict):  # passed over, its settings would silently be the defaults
        raise ValueError(f"{variable} should be a JSON object of settings, as in {{}}")
    return found


def _merged(below: Any, above: Any) -> Any:
    """Return two tables as one; where both say something, the second does."""
    if not isinstance(below, Mapping) or not isinstance(above, Mapping):
        return above
    return {**below, **{name: _merged(below.get(name), value) for name, value in above.items()}}
