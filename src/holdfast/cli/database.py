"""`holdfast check-db` and `holdfast migrate`: what the database is, what it lacks, and how it gets there."""

from __future__ import annotations

import json as jsonlib
from typing import Annotated

import typer

from holdfast import config
from holdfast.cli.options import AsJson, Home
from holdfast.cli.settings import redacted
from holdfast.cli.tables import fields
from holdfast.db.connect import sqlite_path
from holdfast.db.migrate import Migration, migrations
from holdfast.db.parity import compare
from holdfast.db.schema import SCHEMA, schema_of
from holdfast.errors import Unavailable
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
                      ("missing", found.missing)]))  # fmt: skip
        print("ok" if found.is_whole else "not as this program expects it; see: holdfast migrate")
    if not found.is_whole:
        raise typer.Exit(1)


@app_command.command()
def migrate(
    apply: Annotated[bool, typer.Option("--apply", help="Run them; without this, only say which would run.")] = False,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Show the schema that the database has, the one this program wants, and the migrations between; run them.

    Every command brings an older database up to date by itself; this one lets you look first. Works on SQLite and on
    PostgreSQL; two processes that migrate at once migrate once.
    Example: holdfast migrate --apply
    """
    settings = config.load(home=home)
    path = sqlite_path(settings.database)
    current = None if path is not None and not path.exists() else schema_of(settings.database)
    if current is not None and current > SCHEMA:
        raise Unavailable(f"the database has schema {current}, newer than this program's {SCHEMA}; upgrade holdfast")
    waiting = [one for one in migrations() if current is None or one.revision > current]
    if apply:
        prepare(settings)
    if json:
        print(jsonlib.dumps({
            "current": schema_of(settings.database) if apply else current, "latest": SCHEMA, "applied": apply,
            "migrations": [{"revision": one.revision, "title": one.title} for one in waiting],
        }))  # fmt: skip
        return
    print(f"current {current or 'none'}, latest {SCHEMA}")
    _print(waiting, apply=apply)


def _print(waiting: list[Migration], *, apply: bool) -> None:
    for one in waiting:
        print(f"  {'ran' if apply else 'would run'} {one.revision}: {one.title}")
    if not waiting:
        print("nothing to run")
    elif not apply:
        print("nothing was changed; add --apply to run them")
