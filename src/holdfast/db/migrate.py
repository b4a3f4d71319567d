"""Bring a database to the schema of this code, once, under a lock: `python -m holdfast.db.migrate URL`.

It runs as a process of its own, so that nobody else pays for loading Alembic.
"""

from __future__ import annotations

import fcntl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import text

from holdfast.db.connect import sqlite_path
from holdfast.db.engine import Database

_LOCK = 0x686F6C64  # "hold", for PostgreSQL's advisory lock


@contextmanager
def _alone(database: Database) -> Iterator[None]:
    """Hold the migration lock: two processes that start at once migrate once."""
    path = sqlite_path(database.url)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.with_suffix(".migrating").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        return
    with database.engine.connect() as connection:
        connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": _LOCK})
        yield


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    return config


class Migration(NamedTuple):
    """One step of the schema."""

    revision: str
    title: str


def migrations() -> list[Migration]:
    """Return every migration that ships with this code, oldest first."""
    scripts = ScriptDirectory.from_config(_config()).walk_revisions()
    return [Migration(one.revision, (one.doc or "").splitlines()[0]) for one in reversed(list(scripts))]


def upgrade(database_url: str) -> None:
    """Run every migration that this database has not seen."""
    database = Database(database_url)
    try:
        with _alone(database), database.engine.connect() as connection:
            config = _config()
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
            connection.commit()
    finally:
        database.close()


if __name__ == "__main__":
    upgrade(sys.argv[1])
