"""Runs one command under Typer and turns our errors into one line and an exit code: 0 done, 1 failed, 2 your input."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from holdfast.errors import HoldfastError

EXIT_CODES = "Exit: 0 done, 1 refused, not found or failed, 2 arguments that do not parse."


def run(
    command: Callable[..., Any] | typer.Typer, name: str, arguments: Sequence[str], *, subcommand: str | None = None
) -> None:
    """Run a command, a group of them, or one named out of the group, with these arguments, and exit."""
    if isinstance(command, typer.Typer):
        app = command
    else:
        app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
        app.command()(command)
    built = typer.main.get_command(app)
    if isinstance(built, TyperGroup):
        for one in built.commands.values():
            one.epilog = one.epilog or EXIT_CODES
        if subcommand is not None:
            built = built.commands[subcommand]
    built.epilog = built.epilog or EXIT_CODES
    try:
        built.main(list(arguments), prog_name=name)
    except HoldfastError as exc:
        print(f"holdfast: {exc}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("holdfast: interrupted", file=sys.stderr)
        sys.exit(130)
