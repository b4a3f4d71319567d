"""Write docs/api.md, openapi.json, fields.md, cli.md, settings.md, operators of search.md and db/fresh.sql."""

from __future__ import annotations

import io
import os
import tempfile
from contextlib import redirect_stdout, suppress
from pathlib import Path

from api_page import api_page, openapi_text
from fields_page import fields_page

from holdfast.cli import runner
from holdfast.cli.catalogue import COMMANDS, HelpGroup, noun_of
from holdfast.cli.main import load
from holdfast.config import Settings
from holdfast.config.removed import REMOVED, UNSAFE
from holdfast.config.showing import walk
from holdfast.db import schema
from holdfast.db.migrate import upgrade
from holdfast.search.operators import as_markdown

DOCS = Path(__file__).resolve().parent.parent / "docs"
SETTINGS_INTRO = """# Settings

From `HOLDFAST_*` variables, a `.env` file in the working directory, or a TOML file (`holdfast.toml`, or where
`HOLDFAST_CONFIG` points): `[politeness] delay_s = 2`. Arguments of a command win over variables, variables over
`.env`, `.env` over TOML. `holdfast settings` prints the settings in force. Written by `make docs`; do not edit.
"""
DOCUMENTS = Path(__file__).with_name("settings_documents.md")
"""Each variable of the documents and what took its place, written by hand."""
CLI_INTRO = """# The command line

Exit 0: done. Exit 1: refused, not found or failed, with one line that names the next step. Exit 2: arguments that
do not parse. A crawl that ended and sealed is 0, whatever single pages did. Written by `make docs`; do not edit.
"""
OPERATORS_START, OPERATORS_END = "<!-- operators -->", "<!-- end of operators -->"
ALIASES_INTRO = "The documents' names of commands work as they are written there; each takes the same options."


def settings_page() -> str:
    """Return the page of all settings."""
    rows = [
        f"| `{name}` | {_default(getattr(group, key))} | {field.description} |"
        for name, group, key, field in walk(Settings(_env_file=None))  # type: ignore[call-arg]
    ]
    head = "| variable | default | meaning |\n|---|---|---|"
    return "\n".join([SETTINGS_INTRO, head, *rows, "", *_removed(), "", DOCUMENTS.read_text()])


def _removed() -> list[str]:
    """Return the table of settings of earlier versions."""
    head = [
        "## Removed settings",
        "",
        "Settings of earlier versions. A start with one of them prints one line and ignores it; where that would",
        "loosen a limit against abuse or delete data earlier (*refused*), the start fails until it is unset.",
        "",
        "| variable | now |",
        "|---|---|",
    ]
    rows = [*REMOVED.items(), *((name, f"*refused*; {text}") for name, text in UNSAFE.items())]
    return [*head, *(f"| `HOLDFAST_{name.replace('.', '_').upper()}` | {text} |" for name, text in sorted(rows))]


def _default(value: object) -> str:
    if value is None or value in ((), []):
        return ""
    return f"`{value}`"


def cli_page() -> str:
    """Return the page of all commands, with the help that they print."""
    parts = [CLI_INTRO]
    for name, command in COMMANDS.items():
        if command.subcommand is not None:
            continue
        parts += [f"## holdfast {name}", "", command.summary, "", "```", _help(name), "```", ""]
        inner = load(command.module)
        for registered in getattr(inner, "registered_commands", None) or []:
            below = registered.name or registered.callback.__name__.replace("_", "-")
            parts += [f"### holdfast {name} {below}", "", "```", _help(name, below), "```", ""]
    return "\n".join([*parts, *_aliases()])


def _aliases() -> list[str]:
    """Return the table of flat names that the documents use, and what each stands for."""
    rows = [
        f"| `holdfast {name}` | `holdfast {noun_of(command)} {command.subcommand}` | {command.summary} |"
        for name, command in COMMANDS.items()
        if command.group is HelpGroup.FLAT and command.subcommand is not None
    ]
    return ["## Flat names", "", ALIASES_INTRO, "", "| flat | the same as | what it does |", "|---|---|---|", *rows, ""]


def with_operators(page: str) -> str:
    """Return docs/search.md with the table of operators as the code has it."""
    before, _, rest = page.partition(OPERATORS_START)
    _, _, after = rest.partition(OPERATORS_END)
    return f"{before}{OPERATORS_START}\n{as_markdown()}\n{OPERATORS_END}{after}"


def _help(name: str, *below: str) -> str:
    """Return what a command prints with `--help`, asked in this process: there are many."""
    said = io.StringIO()
    with redirect_stdout(said), suppress(SystemExit):
        runner.run(load(COMMANDS[name].module), f"holdfast {name}", [*below, "--help"])
    return "\n".join(line.rstrip() for line in said.getvalue().strip().splitlines())


def fresh_schema() -> str:
    """Return the script that makes the schema of the models in an empty SQLite file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "holdfast.db"
        upgrade(f"sqlite:///{path}")
        return schema.dump(path)


if __name__ == "__main__":
    for name in [name for name in os.environ if name.startswith("HOLDFAST_")]:
        del os.environ[name]  # the page tells defaults, not what this machine has set
    os.environ.update({"COLUMNS": "110", "TERM": "dumb", "NO_COLOR": "1"})
    schema.FRESH.write_text(fresh_schema())
    (DOCS / "api.md").write_text(api_page())
    (DOCS / "openapi.json").write_text(openapi_text())
    (DOCS / "fields.md").write_text(fields_page())
    (DOCS / "settings.md").write_text(settings_page())
    (DOCS / "cli.md").write_text(cli_page())
    (DOCS / "search.md").write_text(with_operators((DOCS / "search.md").read_text()))
