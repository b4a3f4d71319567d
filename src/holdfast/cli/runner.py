"""Runs one command under Typer and turns our errors into one line and an exit code: 0 done, 1 failed, 2 your input."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import typer

from holdfast.errors import HoldfastError


def run(command: Callable[..., Any] | typer.Typer, name: str, arguments: Sequence[str]) -> None:
    """Run a command, or a group of them, with these arguments, and exit."""
    if isinstance(command, typer.Typer):
        app = command
    else:
        app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
        app.command()(command)
    try:
        app(list(arguments), prog_name=name)
    except HoldfastError as exc:
        print(f"holdfast: {exc}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("holdfast: interrupted", file=sys.stderr)
        sys.exit(130)
