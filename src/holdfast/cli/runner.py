"""Runs one command under Typer and turns our errors into one line and an exit code: 0 done, 1 failed, 2 bad input."""

from __future__ import annotations

import errno
import inspect
import math
import os
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar, cast

import typer
from typer.core import TyperCommand, TyperGroup

from holdfast.cli.formatting import lines
from holdfast.errors import READ_ONLY, HoldfastError

C = TypeVar("C", bound=Callable[..., Any])
Built = TyperCommand | TyperGroup
# The exit code of shells for a program that Ctrl-C ended.
INTERRUPTED = 130
_MESSAGE_CHARS = 300
_LARGEST = 2**63 - 1
_MANY = 1_000_000
EXIT_CODES = "Exit: 0 done, 1 refused, not found or failed, 2 arguments that do not parse."


def run(
    command: Callable[..., Any] | typer.Typer, name: str, arguments: Sequence[str], *, subcommand: str | None = None
) -> None:
    """Run a command, a group, or one subcommand of a group, with these arguments, and exit; 130 for Ctrl-C."""
    try:
        built(command, subcommand).main(list(arguments), prog_name=name)
    except HoldfastError as exc:
        print(f"holdfast: {lines(exc)}", file=sys.stderr)
        # Shells and systemd distinguish "stopped by Ctrl-C" from "failed" by this number.
        sys.exit(INTERRUPTED if exc.code == "interrupted" else 1)
    except OSError as exc:
        place = f"cannot use {exc.filename}: " if exc.filename is not None else ""
        print(f"holdfast: {place}{exc.strerror or exc}{_next_step(exc)}", file=sys.stderr)
        sys.exit(1)
    # Only here: print an unexpected error as one line for an operator, and in full with HOLDFAST_LOG_LEVEL=debug.
    except Exception as exc:
        if os.environ.get("HOLDFAST_LOG_LEVEL", "").lower() == "debug":
            raise
        message = f"{type(exc).__name__}: {' '.join(str(exc).split())[:_MESSAGE_CHARS]}"
        print(
            f"holdfast: a fault of this program, please report it: {message}; HOLDFAST_LOG_LEVEL=debug shows where",
            file=sys.stderr,
        )
        sys.exit(1)


def example(line: str) -> Callable[[C], C]:
    """Add an example to the help of a command that prints by itself."""

    def added(function: C) -> C:
        function.__doc__ = with_example(function.__doc__, line)
        return function

    return added


def with_example(about: str | None, line: str, note: str = "") -> str:
    return "\n\n".join(filter(None, (inspect.cleandoc(about or ""), note, f"Example: holdfast {line}")))


def _next_step(exc: OSError) -> str:
    if exc.errno in READ_ONLY:
        return "; mend its permissions for this user, or choose another data directory with --home"
    return "; free some space, then type it again" if exc.errno in (errno.ENOSPC, errno.EDQUOT) else ""


@cache
def built(command: Callable[..., Any] | typer.Typer, subcommand: str | None = None) -> Built:
    """Return Typer's command, with exit codes added to its help; raise KeyError if the group has no such
    subcommand.
    """
    if isinstance(command, typer.Typer):
        app = command
    else:
        app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
        app.command()(command)
    made = typer.main.get_command(app)
    if isinstance(made, TyperGroup):
        for one in made.commands.values():
            # Add them here instead of in each docstring: 90 commands have the same three.
            one.epilog = one.epilog or EXIT_CODES
            one.callback = _bounded(one.callback) if one.callback is not None else None
        if subcommand is not None:
            return cast(Built, made.commands[subcommand])
    made.epilog = made.epilog or EXIT_CODES
    if made.callback is not None:
        made.callback = _bounded(made.callback)
    assert isinstance(made, TyperGroup | TyperCommand)
    return made


def _bounded(callback: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the callback so that it rejects values that cannot be stored: huge numbers, bytes that are not text."""

    def checked(**values: Any) -> Any:
        for name, value in values.items():
            for one in value if isinstance(value, list | tuple) else (value,):
                if (wrong := _unusable(one)) is not None:
                    raise typer.BadParameter(wrong, param_hint=name)
        try:
            return callback(**values)
        # Not only the option can overflow: later date arithmetic with it can, too.
        except OverflowError as exc:
            # The time is too far away for the calendar.
            large = [name for name, value in values.items() if isinstance(value, int | float) and abs(value) > _MANY]
            if not large:
                raise
            raise typer.BadParameter("the number is too large here", param_hint=large[0]) from exc

    return checked


def _unusable(value: object) -> str | None:
    # Python has numbers of any length; both databases raise an error of their own for more than 64 bits.
    if isinstance(value, int) and abs(value) > _LARGEST:
        return "the number is larger than any that is kept here"
    if isinstance(value, float) and not math.isfinite(value):
        return "it is no number that can be used"
    if isinstance(value, str):
        try:
            # Arguments that are not UTF-8 arrive as surrogates, which no database and no JSON accepts.
            value.encode()
        except UnicodeEncodeError:
            return "it holds bytes that are not UTF-8"
    return None


def options(made: Built) -> list[str]:
    """Return the long options of a command."""
    return [name for one in made.params for name in (*one.opts, *one.secondary_opts) if name.startswith("--")]
