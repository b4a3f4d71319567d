"""`holdfast`: finds the command's module by its name and runs it, so that `--help` imports nothing else."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import Any, NoReturn

from holdfast import __version__
from holdfast.cli.catalogue import APART, COMMANDS, FOR_STRANGERS, STARTS_ARCHIVE, noun_of, usage

_HELP = ("-h", "--help", "help")


def main() -> None:
    """Run the command that the arguments name."""
    # With LANG=C a title with an accent would end the command with UnicodeEncodeError.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # write the number of a letter that the terminal cannot show
            stream.reconfigure(errors="backslashreplace")
    try:
        try:
            _run(sys.argv[1:])
        finally:
            sys.stdout.flush()  # flush here, or the interpreter complains while it ends
    except KeyboardInterrupt:
        sys.exit(130)
    # `holdfast … | head`: the reader has closed the pipe. Without another stdout the interpreter complains again while
    # it ends.
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _run(arguments: list[str]) -> None:
    if arguments[:1] == ["help"] and len(arguments) > 1 and arguments[1] in COMMANDS:
        arguments = [*arguments[1:], "--help"]
    if not arguments or arguments[0] in _HELP:
        _help(arguments[1:])
        sys.exit(0 if arguments else 2)
    if arguments[0] == "--version":
        print(f"holdfast {__version__}")
        return
    command = COMMANDS.get(arguments[0])
    if command is None:
        _refuse(arguments[0])
    name, rest, subcommand = arguments[0], arguments[1:], command.subcommand
    below = subcommand or (rest[0] if rest else "")
    apart = APART.get((command.module, below))
    if apart is not None and subcommand is None:
        name, rest = f"{name} {below}", rest[1:]
    gc.disable()  # garbage collection takes a tenth of the loading time and finds nothing
    loaded = load(apart or command.module)
    run, prepare = load("runner:run"), load("preparing:prepare")
    starts_archive = not STARTS_ARCHIVE.isdisjoint((name, f"{noun_of(command)} {below}"))
    prepare(sees_everything=command.module not in FOR_STRANGERS, starts_archive=starts_archive)
    gc.freeze()
    gc.enable()
    try:
        # A Typer application with one command acts as that command.
        run(loaded, f"holdfast {name}", rest, subcommand=None if apart else subcommand)
    finally:
        gc.freeze()  # otherwise the interpreter scans all objects once more before it ends: 0.28 s after a crawl


def load(where: str) -> Any:
    """Return the function or Typer that the catalogue names: `module`, or `module:name`."""
    module, _, name = where.partition(":")
    loaded = importlib.import_module(f"holdfast.cli.{module}")
    return getattr(loaded, name or "app_command", None) or getattr(loaded, name or module)


def words() -> dict[str, list[str]]:
    """Return the completions of each command and subcommand: subcommands or options. Imports every command."""
    tree: dict[str, list[str]] = {}
    build, options = load("runner:built"), load("runner:options")
    for name, command in COMMANDS.items():
        built = build(load(command.module), command.subcommand)
        below = getattr(built, "commands", {})
        tree[name] = [*below] or options(built)
        tree |= {f"{name} {inner}": options(one) for inner, one in below.items()}
    return tree


def _help(asked: Sequence[str]) -> None:
    everything = any(word in ("all", "--all") for word in asked)
    unknown = [word for word in asked if not everything and word not in _HELP]
    if unknown:
        _refuse(unknown[0])
    print(usage(everything=everything))


def _refuse(name: str) -> NoReturn:
    """Print suggestions for an unknown command, and exit with 2."""
    # Import it by name: only a mistyped command needs it.
    difflib = importlib.import_module("difflib")
    near = difflib.get_close_matches(name, COMMANDS, n=3, cutoff=0.65)
    hint = f"did you mean {' or '.join(near)}?" if near else "see: holdfast --help"
    print(f"holdfast: there is no command {name!r}; {hint}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
