"""The commands and settings of the program, as people type them."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any


def commands() -> Iterator[str]:
    """Yield every command as it is typed, those below a group included; a module that is missing is an error."""
    main = importlib.import_module("holdfast.cli.main")
    for name, command in main.COMMANDS.items():
        inner = main.load(command.module)
        below = (getattr(inner, "registered_commands", None) or []) if command.subcommand is None else []
        for registered in below:
            yield f"holdfast {name} {registered.name or registered.callback.__name__.replace('_', '-')}"
        if not below:
            yield f"holdfast {name}"


def variables() -> Iterator[str]:
    """Yield the name of the variable behind every setting."""
    config = importlib.import_module("holdfast.config")
    yield from _variables(config.Settings, config.PREFIX)


def _variables(model: Any, prefix: str) -> Iterator[str]:
    for name, field in model.model_fields.items():
        inner = field.annotation
        if hasattr(inner, "model_fields"):
            yield from _variables(inner, f"{prefix}{name}_")
        else:
            yield f"{prefix}{name}".upper()
