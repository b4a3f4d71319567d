"""`holdfast check-db` and `holdfast migrate`: the state of the database, what it lacks, and its migrations.

`holdfast check-env`: whether this machine has what the archive needs.
"""

from __future__ import annotations

import difflib
import os
import platform
import shutil
import sys
import tempfile
import textwrap
from collections.abc import Collection, Iterator
from contextlib import nullcontext
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from holdfast import __version__
from holdfast.cli.formatting import fields, table
from holdfast.cli.parameters import command_group
from holdfast.cli.printing import DRY_RUN, Done, command, picked, runnable
from holdfast.config import Settings
from holdfast.config.showing import redacted, walk
from holdfast.config.timings import PREFIX as TIMINGS
from holdfast.db.migrate import compare, downgrade, migrations
from holdfast.db.raw import sqlite_path
from holdfast.db.schema import SCHEMA, open_to_others, schema_of
from holdfast.errors import Conflict, Unavailable
from holdfast.processes.disk import is_low, low_volume
from holdfast.wiring import prepare
from holdfast.zimit.docker import Docker, Times, find_program
from holdfast.zimit.errors import DockerMissing, ToolMissing

database = command_group("The database: check, migrate. Example: holdfast database migrate")


_command = partial(command, database, opened=nullcontext)


@_command(example="check-db")
def check(settings: Settings) -> Done:
    """Check that the database responds, which schema it has, and that no table or column is missing; else exit 1."""
    found, address = compare(settings.database), redacted(settings.database)
    shown = [
        ("database", address),
        ("dialect", f"{found.dialect} {found.version}"),
        ("schema", found.schema or "none"),
        ("expected", found.expected),
        *(("missing", name) for name in found.missing if found.schema is not None),
    ]
    facts = picked(found, "dialect version schema expected missing", ok=found.is_whole, database=address)
    verdict = "ok" if found.is_whole else "not as this program expects it; see: holdfast migrate"
    return Done(facts, f"{fields(shown)}\n{verdict}", found.is_whole)


class Way(StrEnum):
    STATUS = "status"
    UP = "up"
    DOWN = "down"


@_command(example="migrate up")
def migrate(
    settings: Settings,
    way: Annotated[Way, typer.Argument(help="Only look; run the missing ones; or undo the newest one.")] = Way.STATUS,
    to: Annotated[str | None, typer.Option(help="Undo all after this one.", metavar="REVISION")] = None,
    acts: Annotated[bool, typer.Option("--apply", help="Run them; `up` needs no --apply, `down` does.")] = False,
) -> Done:
    """Show the schema that the database has, the one this program wants, and the migrations between; run them.

    Every command updates an older database by itself; this one shows the changes first. Works on SQLite and on
    PostgreSQL; if two processes migrate at the same time, each migration runs once, and a killed one changes
    nothing. `down` is for returning to an older program: stop everything first, and make a backup, because it drops
    columns and tables. It cannot go below schema 0031: restore a backup instead.
    """
    if to is not None and way is not Way.DOWN:
        raise typer.BadParameter("it goes with down: holdfast migrate down --to 0031", param_hint="--to")
    current = _current(settings)
    # An older program does not know what a newer schema needs; only the newer program can downgrade it.
    if current is not None and current > SCHEMA:
        raise Unavailable(f"the database has schema {current}, newer than this program's {SCHEMA}; upgrade holdfast")
    down, done = way is Way.DOWN, acts or way is Way.UP
    known = migrations()
    target = _target([revision for revision, _ in known], current, to) if down else ""
    steps = [one for one in known if (one[0] > (current or "")) is not down and one[0] > target]
    if down:
        steps.reverse()
    if done and down:
        downgrade(settings.database, target)
    elif done:
        prepare(settings)
    facts = {
        "current": _current(settings),
        "latest": SCHEMA,
        "direction": "down" if down else "up",
        "applied": done,
        "migrations": [{"revision": revision, "title": title} for revision, title in steps],
    }
    return Done(facts, f"current {current or 'none'}, latest {SCHEMA}\n{_described(steps, down=down, done=done)}")


def _current(settings: Settings) -> str | None:
    """Return the database's schema version; None for a missing file, which is not created."""
    # Opening a SQLite file creates it: a check must leave nothing behind.
    path = sqlite_path(settings.database)
    return None if path is not None and not path.exists() else schema_of(settings.database)


def _target(known: list[str], current: str | None, to: str | None) -> str:
    earlier = [one for one in known if current is not None and one < current]
    if not earlier or (to is not None and to < earlier[0]):
        raise Conflict(
            f"cannot go back below schema {known[0]}; restore the backup that was made before the upgrade "
            "(docs/upgrade.md)"
        )
    if to is not None and to not in earlier:
        raise typer.BadParameter(
            f"unknown schema {to[:40]!r}; expected one of: {', '.join(earlier)}", param_hint="--to"
        )
    return to or earlier[-1]


def _described(steps: list[tuple[str, str]], *, down: bool, done: bool) -> str:
    words = {(False, False): "would run", (False, True): "ran", (True, False): "would undo", (True, True): "undid"}
    lines = [
        textwrap.fill(f"{words[down, done]} {revision}: {title}", 78, initial_indent="  ", subsequent_indent="    ")
        for revision, title in steps
    ]
    if not steps:
        lines.append("nothing to run")
    elif not done:
        lines.append(DRY_RUN if down else "nothing was changed; run them with: holdfast migrate up")
    elif down:
        lines.append("the next command of this program runs it again: install the older one first")
    return "\n".join(lines)


_FILES = 1024
_PREFIX = "HOLDFAST_"
# Variables of predecessor programs: if still set, they would silently have no effect.
_THEIRS = ("HEALTHARCHIVE_", "CRAWLER_", "FETCHER_", "JOB_LOGS_", "AUTH_JWT_")


Finding = tuple[str, str, str | None]
"""A check by name, its value, and how to fix it; None if there is no problem."""


@runnable(opened=nullcontext, example="check-env")
def check_env(settings: Settings) -> Done:
    """Check the data directory, the disk, important settings and the programs we call; exit 1 for a problem."""
    found = list(findings(settings))
    bad = [f"{what}: {problem}" for what, _, problem in found if problem]
    rows = [("!!" if problem else "ok", what, value) for what, value, problem in found]
    checks = [{"what": what, "value": value, "problem": problem} for what, value, problem in found]
    facts = {"ok": not bad, "checks": checks}
    return Done(facts, [table(("", "what", "value"), rows), *bad], not bad)


def findings(settings: Settings) -> Iterator[Finding]:
    """Yield the result of each check."""
    yield "holdfast", __version__, None
    yield "python", platform.python_version(), None if sys.version_info >= (3, 11) else "3.11 or later is needed"
    yield _directory(settings)
    yield _disk(settings)
    files = os.sysconf("SC_OPEN_MAX")
    yield "open files", str(files), None if files >= _FILES else f"raise the limit (ulimit -n) to {_FILES}"
    yield "database", redacted(settings.database), None
    token = settings.api.admin_token
    # A strict environment refuses to start its API without one.
    lacking = settings.api.strict and token is None
    yield "environment", settings.api.environment, None
    problem = "a strict environment needs HOLDFAST_API_ADMIN_TOKEN" if lacking else None
    yield "admin token", "set" if token else "not set", problem
    yield "contact", settings.contact or "not set: crawls ask for --contact", None
    yield _tool(settings.zimit.command)
    yield _docker()
    yield from _variables(settings)


def _tool(command: str) -> Finding:
    try:
        return "archive-tool", find_program(command)[0], None
    except ToolMissing as exc:
        return "archive-tool", f"{exc}; only jobs with backend zimit need it", None


def _docker() -> Finding:
    program = shutil.which("docker")
    if program is None:
        return "docker", "not found; only archive-tool needs it", None
    try:
        return "docker", f"{program}, engine {Docker(Times()).daemon()}", None
    except DockerMissing as exc:
        return "docker", program, f"{exc}; no job with backend zimit can run"


def _variables(settings: Settings) -> Iterator[Finding]:
    """Yield environment variables that have no effect: misspelled, or of an older program."""
    file = os.environ.get("HOLDFAST_CONFIG")
    if file is not None:
        yield "settings file", file, None
    known = {name for name, *_ in walk(settings)} | {"HOLDFAST_CONFIG", "HOLDFAST_FAILPOINT"}
    for name in sorted(os.environ):
        if name.startswith(_PREFIX) and name not in known and not name.startswith(TIMINGS):
            yield name, "no setting has this name", f"{_nearest(name, known)}; see: holdfast settings"
        elif name.startswith(_THEIRS):
            yield name, "is not read; docs/settings.md names its replacement", None


def _nearest(name: str, known: Collection[str]) -> str:
    # Compare without the common prefix: with it, any two names would be similar.
    bare = {one.removeprefix(_PREFIX): one for one in known}
    close = difflib.get_close_matches(name.removeprefix(_PREFIX), bare, n=1)
    return f"write {bare[close[0]]} if you mean that" if close else "it does nothing"


def _existing(home: Path) -> Path:
    """Return the data directory; until the first command creates it, its nearest parent."""
    place = home.resolve()
    return next(one for one in (place, *place.parents) if one.exists())


def _directory(settings: Settings) -> Finding:
    """Return whether the archive's directory is, or can be made, writable, and other users cannot read it."""
    home, place = settings.home, _existing(settings.home)
    try:
        # Test by writing instead of access(): only that reveals ACLs, read-only mounts and full quotas.
        with tempfile.TemporaryFile(dir=place):
            return "data directory", str(home.resolve()), open_to_others(settings)
    except OSError as exc:
        return "data directory", str(home.resolve()), f"{place}: {exc.strerror}; choose another with --home"


def _disk(settings: Settings) -> Finding:
    place = _existing(settings.home)
    usage = shutil.disk_usage(place)
    share = 100 * usage.free / usage.total if usage.total else 0.0
    low = place if is_low(place, settings.disk) else low_volume(settings)
    trouble = f"{low} is below the mark of HOLDFAST_DISK_*: nothing new starts" if low is not None else None
    return "free disk", f"{usage.free / 1e9:.1f} GB ({share:.0f}%)", trouble
