"""`holdfast check-db` and `holdfast migrate`: what the database is, what it lacks, and how it gets there.

`holdfast check-env`: whether this machine has what the archive needs.
"""

from __future__ import annotations

import difflib
import json as jsonlib
import os
import platform
import shutil
import sys
import tempfile
import textwrap
from collections.abc import Collection, Iterator
from enum import StrEnum
from typing import Annotated, NamedTuple

import typer

from holdfast import __version__, config
from holdfast.archive_tool.contract import ToolMissing, find_program
from holdfast.archive_tool.docker import Docker, DockerMissing, Times
from holdfast.cli.formatting import fields, table
from holdfast.cli.parameters import AsJson, Home, command_group
from holdfast.config import Settings
from holdfast.config.showing import redacted, walk
from holdfast.coordination.disk import is_low, low_volume
from holdfast.db.migrate import Migration, compare, downgrade, migrations
from holdfast.db.raw import sqlite_path
from holdfast.db.schema import SCHEMA, open_to_others, schema_of
from holdfast.errors import Conflict, Unavailable
from holdfast.wiring import prepare

database = command_group("The database: check, migrate. Example: holdfast database migrate")


@database.command()
def check(json: AsJson = False, home: Home = None) -> None:
    """Ask the database: does it answer, which schema has it, is a table or a column missing; exit 1 if anything is.

    Example: holdfast check-db
    """
    settings = config.load(home=home)
    found = compare(settings.database)
    if json:
        print(
            jsonlib.dumps(
                {
                    "ok": found.is_whole,
                    "database": redacted(settings.database),
                    "dialect": found.dialect,
                    "version": found.version,
                    "schema": found.schema,
                    "expected": found.expected,
                    "missing": found.missing,
                }
            )
        )
    else:
        print(
            fields(
                [
                    ("database", redacted(settings.database)),
                    ("dialect", f"{found.dialect} {found.version}"),
                    ("schema", found.schema or "none"),
                    ("expected", found.expected),
                    *(("missing", name) for name in found.missing if found.schema is not None),
                ]
            )
        )
        print("ok" if found.is_whole else "not as this program expects it; see: holdfast migrate")
    if not found.is_whole:
        raise typer.Exit(1)


class Way(StrEnum):
    """Which way `migrate` goes."""

    STATUS = "status"
    UP = "up"
    DOWN = "down"


@database.command()
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
    for going back to an older program: stop everything first, and keep a copy, because columns and tables are dropped.
    It cannot go below schema 0031: restore a backup instead.
    Example: holdfast migrate up
    """
    settings = config.load(home=home)
    if to is not None and way is not Way.DOWN:
        raise typer.BadParameter("it goes with down: holdfast migrate down --to 0031", param_hint="--to")
    current = _current(settings)
    # An older program does not know what a newer schema needs; going down is the newer program's work.
    if current is not None and current > SCHEMA:
        raise Unavailable(f"the database has schema {current}, newer than this program's {SCHEMA}; upgrade holdfast")
    down, done = way is Way.DOWN, apply or way is Way.UP
    known = migrations()
    target = _target(known, current, to) if down else ""
    steps = [one for one in known if (one.revision > (current or "")) is not down and one.revision > target]
    if down:
        steps.reverse()
    if done and down:
        downgrade(settings.database, target)
    elif done:
        prepare(settings)
    if json:
        print(
            jsonlib.dumps(
                {
                    "current": _current(settings),
                    "latest": SCHEMA,
                    "direction": "down" if down else "up",
                    "applied": done,
                    "migrations": [{"revision": one.revision, "title": one.title} for one in steps],
                }
            )
        )
        return
    print(f"current {current or 'none'}, latest {SCHEMA}")
    _print(steps, down=down, done=done)


def _current(settings: Settings) -> str | None:
    """Return the schema of the database; a file that is not there has none, and is not made by looking."""
    # Opening a SQLite file makes it: a check must leave nothing behind.
    path = sqlite_path(settings.database)
    return None if path is not None and not path.exists() else schema_of(settings.database)


def _target(known: list[Migration], current: str | None, to: str | None) -> str:
    """Return the schema to go back to: `to`, or the one before the current."""
    earlier = [one.revision for one in known if current is not None and one.revision < current]
    if not earlier or (to is not None and to < earlier[0]):
        raise Conflict(
            f"cannot go back below schema {known[0].revision}; restore the backup that was made before the upgrade "
            "(docs/upgrade.md)"
        )
    if to is not None and to not in earlier:
        raise typer.BadParameter(
            f"unknown schema {to[:40]!r}; expected one of: {', '.join(earlier)}", param_hint="--to"
        )
    return to or earlier[-1]


def _print(steps: list[Migration], *, down: bool, done: bool) -> None:
    word = {(False, False): "would run", (False, True): "ran", (True, False): "would undo", (True, True): "undid"}
    for one in steps:
        print(
            textwrap.fill(
                f"{word[down, done]} {one.revision}: {one.title}", 78, initial_indent="  ", subsequent_indent="    "
            )
        )
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


_FILES = 1024
_PREFIX = "HOLDFAST_"
# Variables of the programs that came before this one: set by habit, they would be without effect, silently.
_THEIRS = ("HEALTHARCHIVE_", "CRAWLER_", "FETCHER_", "JOB_LOGS_", "AUTH_JWT_")


class Finding(NamedTuple):
    """One thing that was looked at."""

    what: str
    value: str
    problem: str | None = None
    """What to do about it; None if it is as it should be."""


def check_env(json: AsJson = False, home: Home = None) -> None:
    """Look at the data directory, the disk, the settings that matter and the programs we call; exit 1 for a problem.

    Example: holdfast check-env
    """
    found = list(findings(config.load(home=home)))
    bad = [one for one in found if one.problem]
    if json:
        print(jsonlib.dumps({"ok": not bad, "checks": [one._asdict() for one in found]}))
    else:
        print(table(("", "what", "value"), [("!!" if one.problem else "ok", one.what, one.value) for one in found]))
        for one in bad:
            print(f"{one.what}: {one.problem}")
    if bad:
        raise typer.Exit(1)


def findings(settings: Settings) -> Iterator[Finding]:
    """Yield what was found, one thing after the other."""
    yield Finding("holdfast", __version__)
    yield Finding(
        "python", platform.python_version(), None if sys.version_info >= (3, 11) else "3.11 or later is needed"
    )
    yield _directory(settings)
    yield _disk(settings)
    files = os.sysconf("SC_OPEN_MAX")
    yield Finding("open files", str(files), None if files >= _FILES else f"raise the limit (ulimit -n) to {_FILES}")
    yield Finding("database", redacted(settings.database))
    token = settings.api.admin_token
    # A strict environment refuses to start its API without one.
    lacking = settings.api.strict and token is None
    yield Finding("environment", settings.api.environment)
    yield Finding(
        "admin token",
        "set" if token else "not set",
        "a strict environment needs HOLDFAST_API_ADMIN_TOKEN" if lacking else None,
    )
    yield Finding("contact", settings.contact or "not set: crawls ask for --contact")
    yield _tool(settings.zimit.command)
    yield _docker()
    yield from _variables(settings)


def _tool(command: str) -> Finding:
    try:
        return Finding("archive-tool", find_program(command)[0])
    except ToolMissing as exc:
        return Finding("archive-tool", f"{exc}; only jobs with backend zimit need it")


def _docker() -> Finding:
    program = shutil.which("docker")
    if program is None:
        return Finding("docker", "not found; only archive-tool needs it")
    try:
        return Finding("docker", f"{program}, engine {Docker(Times()).daemon()}")
    except DockerMissing as exc:
        return Finding("docker", program, f"{exc}; no job with backend zimit can run")


def _variables(settings: Settings) -> Iterator[Finding]:
    """Yield what stands in the environment and does nothing there: misspelled, or of an older program."""
    file = os.environ.get("HOLDFAST_CONFIG")
    if file is not None:
        yield Finding("settings file", file)
    known = {name for name, *_ in walk(settings)} | {"HOLDFAST_CONFIG"}
    for name in sorted(os.environ):
        if name.startswith(_PREFIX) and name not in known:
            yield Finding(name, "no setting has this name", f"{_nearest(name, known)}; see: holdfast settings")
        elif name.startswith(_THEIRS):
            yield Finding(name, "is not read; docs/settings.md says what took its place")


def _nearest(name: str, known: Collection[str]) -> str:
    """Return what to do about a variable that no setting is called by: the name that was most likely meant."""
    # Without the beginning that all of them share: with it, any two names would be alike.
    bare = {one.removeprefix(_PREFIX): one for one in known}
    close = difflib.get_close_matches(name.removeprefix(_PREFIX), bare, n=1)
    return f"write {bare[close[0]]} if that is meant" if close else "it does nothing"


def _directory(settings: Settings) -> Finding:
    """Return whether we may write where the archive is, or will be, and other users may not read it."""
    home = settings.home
    place = home.resolve()
    # The data directory is made by the first command; until then its nearest parent is asked.
    while not place.exists():
        place = place.parent
    try:
        # Written, not asked with access(): ACLs, read-only mounts and full quotas show only so.
        with tempfile.TemporaryFile(dir=place):
            return Finding("data directory", str(home.resolve()), open_to_others(settings))
    except OSError as exc:
        return Finding("data directory", str(home.resolve()), f"{place}: {exc.strerror}; choose another with --home")


def _disk(settings: Settings) -> Finding:
    place = settings.home.resolve()
    while not place.exists():
        place = place.parent
    usage = shutil.disk_usage(place)
    share = 100 * usage.free / usage.total if usage.total else 0.0
    low = place if is_low(place, settings.disk) else low_volume(settings)
    trouble = f"{low} is below the mark of HOLDFAST_DISK_*: nothing new starts" if low is not None else None
    return Finding("free disk", f"{usage.free / 1e9:.1f} GB ({share:.0f}%)", trouble)


environment_command = check_env
