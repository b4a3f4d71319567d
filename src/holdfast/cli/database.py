"""`holdfast check-db` and `holdfast migrate`: what the database is, what it lacks, and how it gets there."""

from __future__ import annotations

import json as jsonlib
import textwrap
from enum import StrEnum
from typing import Annotated

import typer

from holdfast import config
from holdfast.cli.options import AsJson, Home
from holdfast.cli.settings import redacted
from holdfast.cli.tables import fields
from holdfast.config import Settings
from holdfast.db.connect import sqlite_path
from holdfast.db.migrate import Migration, downgrade, migrations
from holdfast.db.parity import compare
from holdfast.db.schema import SCHEMA, schema_of
from holdfast.errors import Conflict, Unavailable
from holdfast.wiring import prepare

app_command = typer.Typer(
    add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None, no_args_is_help=True,
    help="The database: check, migrate. Example: holdfast database migrate",
)  # fmt: skip


@app_command.command()
def check(json: AsJson = False, home: Home = None) -> None:
    """Ask the database: does it answer, which schema has it, is a table or a column missing; exit 1 if anything is.

    Example: holdfast check-db
    """
    settings = config.load(home=home)
    found = compare(settings.database)
    if json:
        print(jsonlib.dumps({"ok": found.is_whole, "database": redacted(settings.database), "dialect": found.dialect,
                             "version": found.version, "schema": found.schema, "expected": found.expected,
                             "missing": found.missing}))  # fmt: skip
    else:
        print(fields([("database", redacted(settings.database)), ("dialect", f"{found.dialect} {found.version}"),
                      ("schema", found.schema or "none"), ("expected", found.expected),
                      *(("missing", name) for name in found.missing if found.schema is not None)]))  # fmt: skip
        print("ok" if found.is_whole else "not as this program expects it; see: holdfast migrate")
    if not found.is_whole:
        raise typer.Exit(1)


class Way(StrEnum):
    """Which way `migrate` goes."""

    STATUS = "status"
    UP = "up"
    DOWN = "down"


@app_command.command()
def migrate(
    way: Annotated[Way, typer.Argument(help="Only look; run what is missing; or undo the newest one.")] = Way.STATUS,
    to: Annotated[str | None, typer.Option("--to", help="Undo all after this one.", metavar="REVISION")] = None,
    apply: Annotated[bool, typer.Option("--apply", help="Run them; `up` needs no --apply, `down` does.")] = False,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Show the schema that the database has, the one this program wants, and the migrations between; run them.

    Every command brings an older database up to date by itself; this one lets you look first. Works on SQLite and on
    PostgreSQL; two processes that migrate at once migrate once, and one that is killed has changed nothing. `down` is
    for going back to an older program: stop everything first, and keep a copy, for columns and tables go.
    Example: holdfast migrate up
    """
    settings = config.load(home=home)
    if to is not None and way is not Way.DOWN:
        raise typer.BadParameter("it goes with down: holdfast migrate down --to 0004", param_hint="--to")
    current = _current(settings)
    if current is not None and current > SCHEMA:
        raise Unavailable(f"the database has schema {current}, newer than this program's {SCHEMA}; upgrade holdfast")
    down, done = way is Way.DOWN, apply or way is Way.UP
    steps = _back(current, to) if down else [one for one in migrations() if current is None or one.revision > current]
    if done and down:
        downgrade(settings.database, _below(steps[-1].revision))
    elif done:
        prepare(settings)
    if json:
        print(jsonlib.dumps({
            "current": _current(settings), "latest": SCHEMA, "direction": "down" if down else "up", "applied": done,
            "migrations": [{"revision": one.revision, "title": one.title} for one in steps],
        }))  # fmt: skip
        return
    print(f"current {current or 'none'}, latest {SCHEMA}")
    _print(steps, down=down, done=done)


def _current(settings: Settings) -> str | None:
    """Return the schema of the database; a file that is not there has none, and is not made by looking."""
    path = sqlite_path(settings.database)
    return None if path is not None and not path.exists() else schema_of(settings.database)


def _back(current: str | None, to: str | None) -> list[Migration]:
    """Return the migrations to undo, newest first; the first one of all stays."""
    there = [one for one in migrations() if current is not None and one.revision <= current]
    if len(there) < 2:
        raise Conflict("there is nothing to undo: the first migration made the database")
    target = there[-2].revision if to is None else to
    if target not in [one.revision for one in there[:-1]]:
        known = ", ".join(one.revision for one in there[:-1])
        raise typer.BadParameter(f"{target[:40]!r} is none of {known}", param_hint="--to")
    return [one for one in reversed(there) if one.revision > target]


def _below(revision: str) -> str:
    return [one.revision for one in migrations() if one.revision < revision][-1]


def _print(steps: list[Migration], *, down: bool, done: bool) -> None:
    word = {(False, False): "would run", (False, True): "ran", (True, False): "would undo", (True, True): "undid"}
    for one in steps:
        print(textwrap.fill(f"{word[down, done]} {one.revision}: {one.title}", 78, initial_indent="  ",
                            subsequent_indent="    "))  # fmt: skip
    if not steps:
        print("nothing to run")
    elif not done:
        print(
            "nothing was changed; add --apply to do it"
            if down
            else "nothing was changed; run them with: holdfast migrate up"
        )
    elif down:
        print("the next command of this program runs it again: install the older one first")
