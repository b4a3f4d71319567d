"""`holdfast check-env`: what this machine gives us, before anything depends on it. Leaves nothing behind."""

from __future__ import annotations

import json as jsonlib
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import typer

from holdfast import __version__, config
from holdfast.archive_tool.docker import Docker, DockerMissing
from holdfast.archive_tool.program import ToolMissing, find_program
from holdfast.archive_tool.times import Times
from holdfast.cli.options import AsJson, Home
from holdfast.cli.settings import redacted, walk
from holdfast.cli.tables import table
from holdfast.config import Settings
from holdfast.coordination.disk import is_low, low_volume

_FILES = 1024
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
    yield Finding("python", platform.python_version(),
                  None if sys.version_info >= (3, 11) else "3.11 or later is needed")  # fmt: skip
    yield _directory(settings.home)
    yield _disk(settings)
    files = os.sysconf("SC_OPEN_MAX")
    yield Finding("open files", str(files), None if files >= _FILES else f"raise the limit (ulimit -n) to {_FILES}")
    yield Finding("database", redacted(settings.database))
    token = settings.api.admin_token
    lacking = settings.api.strict and token is None
    yield Finding("environment", settings.api.environment)
    yield Finding("admin token", "set" if token else "not set",
                  "a strict environment needs HOLDFAST_API_ADMIN_TOKEN" if lacking else None)  # fmt: skip
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
    """Yield what stands in the environment and does nothing there: misspelled, or of a design document."""
    file = os.environ.get("HOLDFAST_CONFIG")
    if file is not None:
        yield Finding("settings file", file)
    known = {name for name, *_ in walk(settings)} | {"HOLDFAST_CONFIG"}
    for name in sorted(os.environ):
        if name.startswith("HOLDFAST_") and name not in known:
            yield Finding(name, "no setting has this name; see: holdfast settings")
        elif name.startswith(_THEIRS):
            yield Finding(name, "is not read; docs/settings.md says what took its place")


def _directory(home: Path) -> Finding:
    """Return whether we may write where the archive is, or will be."""
    place = home.resolve()
    while not place.exists():
        place = place.parent
    try:
        with tempfile.TemporaryFile(dir=place):
            return Finding("data directory", str(home.resolve()))
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


app_command = check_env
