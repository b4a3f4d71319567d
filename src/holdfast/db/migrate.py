"""Migrates a database to the schema of this code, under a lock: `python -m holdfast.db.migrate`; or back.

It runs as a separate process, so that no other loads Alembic. All steps are one transaction: a process that is
killed halfway leaves the database unchanged, and the command can be repeated.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text
from sqlalchemy.exc import DBAPIError

from holdfast import log
from holdfast.db.engine import Database
from holdfast.db.migrations.baseline import BASELINE, bring_up
from holdfast.db.models import Model
from holdfast.db.raw import damage_of, damaged, sqlite_path
from holdfast.db.schema import MIGRATED, SCHEMA, schema_of
from holdfast.errors import Unavailable

_LOCK = 0x686F6C64  # "hold", for PostgreSQL's advisory lock


@contextmanager
def _alone(database: Database) -> Iterator[None]:
    """Hold the migration lock, so that two processes that start together migrate once."""
    path = sqlite_path(database.url)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Lock a file next to the database: SQLite locks only within a transaction, and some pragmas change outside of
        # one.
        with path.with_suffix(".migrating").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        return
    with database.engine.connect() as connection:
        # The connection holds the lock, so a killed process releases it.
        connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": _LOCK})
        yield


MIGRATIONS = Path(__file__).with_name("migrations")


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    return config


def migrations() -> list[tuple[str, str]]:
    """Return revision and title of all migrations, oldest first."""
    scripts = ScriptDirectory.from_config(_config()).walk_revisions()
    return [(one.revision, (one.doc or "").splitlines()[0]) for one in reversed(list(scripts))]


def upgrade(database_url: str) -> None:
    """Migrate a database to the newest schema: an empty one, a pre-baseline one, or one after the baseline."""
    with _migrating(database_url) as config:
        connection = config.attributes["connection"]
        found = MigrationContext.configure(connection).get_current_revision()
        if found is not None and found >= BASELINE:
            command.upgrade(config, "head")
            return
        scripts = reversed(list(ScriptDirectory.from_config(config).walk_revisions()))
        later = [step for one in scripts if (step := getattr(one.module, "convert", None)) is not None]
        bring_up(connection, found, later)
        command.stamp(config, "head", purge=True)


def downgrade(database_url: str, revision: str) -> None:
    """Undo every migration after this one; the columns and tables that they added are lost."""
    with _migrating(database_url) as config:
        command.downgrade(config, revision)


@contextmanager
def _migrating(database_url: str) -> Iterator[Config]:
    """Hold the lock and one transaction, which commits at the end of the block."""
    with (
        closing(Database(database_url, statement_s=None)) as database,
        _alone(database),
        database.engine.connect() as connection,
    ):
        if database.engine.dialect.name == "sqlite":
            # Rebuilding a table drops it first, while rows still reference it; SQLite changes this pragma only outside
            # a transaction.
            connection.exec_driver_sql("PRAGMA foreign_keys=OFF")
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        config = _config()
        config.attributes["connection"] = connection
        yield config
        connection.commit()


class Parity(NamedTuple):
    """The schema of a database compared with the expected one."""

    dialect: str
    version: str
    """Version of the server, or of the SQLite library."""
    schema: str | None
    expected: str
    missing: tuple[str, ...]
    """Missing tables, and missing columns as `table.column`."""

    @property
    def is_whole(self) -> bool:
        """Whether this code can work with the database."""
        return self.schema == self.expected and not self.missing


def compare(database_url: str) -> Parity:
    """Compare a database with the expected schema; raise Unavailable if it does not answer or the file is missing.

    Reads a SQLite file from end to end, and raises DatabaseDamaged if it is corrupt.
    """
    path = sqlite_path(database_url)
    if path is not None and not path.exists():
        raise Unavailable(f"there is no database at {path} yet; make it with: holdfast migrate --apply")
    schema = schema_of(database_url)
    with closing(Database(database_url)) as database:
        try:
            with database.engine.connect() as connection:
                sqlite = database.engine.dialect.name == "sqlite"
                asked = "SELECT sqlite_version()" if sqlite else "SHOW server_version"
                version = str(connection.execute(text(asked)).scalar_one())
                looked = inspect(connection)
                there = {
                    name: {str(column["name"]) for column in looked.get_columns(name)}
                    for name in looked.get_table_names()
                }
                damage = str(connection.execute(text("PRAGMA quick_check(1)")).scalar_one()) if sqlite else "ok"
        except DBAPIError as exc:
            if (found := damage_of(exc.orig, path)) is not None:
                raise found from exc
            raise Unavailable(f"the database did not answer: {str(exc.orig).splitlines()[0]}") from exc
    if damage != "ok":
        raise damaged(path, " ".join(damage.split()))
    missing = [name for name in Model.metadata.tables if name not in there]
    missing += [
        f"{name}.{column.name}"
        for name, table in Model.metadata.tables.items()
        if name in there
        for column in table.columns
        if column.name not in there[name]
    ]
    return Parity("sqlite" if sqlite else "postgresql", version, schema, SCHEMA, tuple(missing))


if __name__ == "__main__":
    log.configure("WARNING")
    upgrade(os.environ[MIGRATED])
