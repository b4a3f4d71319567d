"""The one room where choices are made: settings in, open parts out."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from holdfast.clock import Clock, SystemClock
from holdfast.config import Settings
from holdfast.db.connect import connect, sqlite_path
from holdfast.db.dbclock import DatabaseClock
from holdfast.db.hot import Hot
from holdfast.db.schema import MIGRATED, SCHEMA, make_fresh, schema_of
from holdfast.db.sqlite_file import is_read_only
from holdfast.errors import Invalid, Unavailable
from holdfast.frontier import Frontier, FrontierSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What every process stands on."""

    settings: Settings
    hot: Hot
    clock: Clock
    frontier: Frontier

    @property
    def run_folder(self) -> Path:
        """Where the run files of this machine's processes lie."""
        return self.settings.home / "run"


@contextmanager
def open_ground(settings: Settings) -> Iterator[Ground]:
    """Open the data directory and its database; migrate it first where that is needed and safe."""
    prepare(settings)
    hot = connect(settings.database)
    try:
        # Ownership is decided by one clock: the database's where it is another machine's, ours otherwise.
        clock: Clock = DatabaseClock(hot) if hot.dialect == "postgresql" else SystemClock()
        frontier = Frontier(hot, clock, FrontierSettings(lease_s=settings.lease.seconds))
        yield Ground(settings=settings, hot=hot, clock=clock, frontier=frontier)
    finally:
        hot.close()


def prepare(settings: Settings) -> None:
    """Make the data directory and bring the schema up to date; Unavailable says what to do if that is not possible."""
    try:
        settings.home.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise Invalid(
            f"cannot use {settings.home} as data directory: {exc.strerror}; choose one with --home or HOLDFAST_HOME"
        ) from exc
    found = schema_of(settings.database)
    if found == SCHEMA or (found is None and make_fresh(settings.database)):
        return
    if found is not None and found > SCHEMA:
        raise Unavailable(f"the database has schema {found}, newer than this program's {SCHEMA}; upgrade holdfast")
    path = sqlite_path(settings.database)
    if path is not None and is_read_only(path):
        raise Unavailable(
            f"{path} has schema {found or 'none'} and is read-only here, so it cannot be brought to {SCHEMA}; make it "
            "and its folder writable, or choose another data directory with --home"
        )
    done = subprocess.run(
        [sys.executable, "-m", "holdfast.db.migrate"], capture_output=True, text=True, check=False,
        # Not as an argument: those are shown to every user of the machine, and the address may hold a password.
        env={**os.environ, MIGRATED: settings.database},
    )  # fmt: skip
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise Unavailable(f"the database could not be brought to schema {SCHEMA}: {last[0]}")
