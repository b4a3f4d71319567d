"""The database of a data directory, made and migrated where that is needed; SQLAlchemy is not loaded."""

from __future__ import annotations

import os
import subprocess
import sys

from holdfast.config import Settings
from holdfast.db.connect import sqlite_path
from holdfast.db.room import note_below
from holdfast.db.schema import MIGRATED, SCHEMA, make_fresh, schema_of
from holdfast.db.sqlite_file import is_read_only
from holdfast.errors import Invalid, Unavailable


def prepare(settings: Settings) -> None:
    """Make the data directory and bring the schema up to date; Unavailable says what to do if that is not possible."""
    try:
        settings.home.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise Invalid(
            f"cannot use {settings.home} as data directory: {exc.strerror}; choose one with --home or HOLDFAST_HOME"
        ) from exc
    note_below(settings.home, settings.database)
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
        [sys.executable, "-m", "holdfast.db.migrate"],
        capture_output=True,
        text=True,
        check=False,
        # Not as an argument: those are shown to every user of the machine, and the address may hold a password.
        env={**os.environ, MIGRATED: settings.database},
    )
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise Unavailable(f"the database could not be brought to schema {SCHEMA}: {last[0]}")
