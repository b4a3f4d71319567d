"""`K=V` words for a job's tool options and execution policy, turned into the types that are declared. Pure.

Keys that do not exist and values that do not fit are refused before anything is looked up.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import fields
from typing import Any, NamedTuple

from holdfast.archive_tool.contract import ExecutionPolicy, ToolOptions
from holdfast.archive_tool.refusals import ToolConfigRefused

_YES, _NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


class ConfigPatch(NamedTuple):
    """Values to set in a job's configuration; None takes one away."""

    tool_options: dict[str, Any]
    execution_policy: dict[str, Any]


def read_patch(options: Iterable[str], policy: Iterable[str]) -> ConfigPatch:
    """Return what the two options ask for; ToolConfigRefused names the word at fault."""
    return ConfigPatch(
        _read(ToolOptions, "tool_options", options), _read(ExecutionPolicy, "execution_policy", policy)
    )  # fmt: skip


def _read(kind: type[ToolOptions] | type[ExecutionPolicy], group: str, words: Iterable[str]) -> dict[str, Any]:
    declared = {one.name: str(one.type) for one in fields(kind)}
    made: dict[str, Any] = {}
    for word in words:
        name, equals, written = word.partition("=")
        name = name.strip()
        if not equals or not name:
            raise ToolConfigRefused(group, f"{word[:80]!r} is no KEY=VALUE")
        if name not in declared:
            raise ToolConfigRefused(f"{group}.{name[:80]}", f"there is no such option; known: {', '.join(declared)}")
        try:
            made[name] = _typed(declared[name], written.strip())
        except ValueError as exc:
            raise ToolConfigRefused(f"{group}.{name}", f"{written[:80]!r} is no {_wanted(declared[name])}") from exc
    return made


def _wanted(declared: str) -> str:
    return {"bool": "true or false", "int": "whole number", "dict": "JSON object"}.get(_plain(declared), "value")


def _plain(declared: str) -> str:
    return declared.split(" ")[0].split("[")[0]


def _typed(declared: str, written: str) -> Any:
    """Return a value of the declared type; ValueError if it is none."""
    if written.lower() in ("null", "none") and "None" in declared:
        return None
    kind = _plain(declared)
    if kind == "bool":
        if written.lower() not in (*_YES, *_NO):
            raise ValueError(written)
        return written.lower() in _YES
    if kind == "int":
        return int(written)
    if kind == "dict":
        made = json.loads(written)
        if not isinstance(made, dict):
            raise ValueError(written)
        return made
    return written
