"""Reads a database's schema version without loading Alembic, and creates SQLite files from the finished schema."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

from holdfast.config import Settings
from holdfast.db import connect
from holdfast.db.raw import Transaction, is_read_only, note_below, sqlite_path, switch_to_wal
from holdfast.errors import Invalid, NotFound, Unavailable

SCHEMA = "0039"
"""The migration that this code requires; a test compares it with the newest one."""


MIGRATED = "HOLDFAST_MIGRATED_DATABASE"
"""Environment variable with the database URL for the migrating process."""

# Group write permission: several users share such a directory.
_SHARED = 0o020


def schema_of(database_url: str) -> str | None:
    """Return the schema version of a database; None if it is empty."""
    raw_db = connect(database_url)
    try:
        with raw_db.read() as tx:
            # Check first: on PostgreSQL a query of a missing table aborts the transaction.
            there = tx.execute(
                "SELECT 1 FROM information_schema.tables WHERE table_name = 'alembic_version'"
                if raw_db.dialect == "postgresql"
                else "SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'"
            )
            return schema_in(tx) if there else None
    finally:
        raw_db.close()


def schema_in(tx: Transaction) -> str | None:
    rows = tx.execute("SELECT version_num FROM alembic_version")
    return str(rows[0][0]) if rows else None


FRESH = Path(__file__).with_name("fresh.sql")
"""The schema of the models, as a script for an empty SQLite file; `make docs` writes it, a test compares it."""


def make_fresh(database_url: str) -> bool:
    """Create the schema in an empty SQLite file, in one transaction; return False for any other database."""
    path = sqlite_path(database_url)
    if path is None:
        return False
    with closing(sqlite3.connect(path, isolation_level=None, timeout=30.0)) as connection:
        switch_to_wal(connection, timeout_s=30.0)
        # If two commands start together on an empty folder, the second waits here and then finds the tables.
        connection.execute("BEGIN IMMEDIATE")
        empty = not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
        for statement in FRESH.read_text().split(";\n") if empty else ():
            if statement.strip():
                connection.execute(statement)
        connection.execute("COMMIT")
    return empty


def dump(path: Path) -> str:
    """Return a script that creates this file's schema in the same order, which affects SQLite's choice of indexes."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(
            "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid"
        ).fetchall()
        version = connection.execute("SELECT version_num FROM alembic_version").fetchone()[0]
    insert = f"INSERT INTO alembic_version(version_num) VALUES ('{version}')"  # noqa: S608 - our own version
    return "".join(f"{sql};\n" for sql in [*(row[0] for row in rows), insert])


def make_home(home: Path) -> None:
    """Create the data directory for its owner only; restrict an empty one of ours too, unless it is group-writable."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = home.stat()
    is_ours = found.st_uid == os.geteuid() and not found.st_mode & _SHARED
    if is_ours and found.st_mode & 0o077 and not any(home.iterdir()):
        with suppress(OSError):  # some file systems have no modes
            home.chmod(found.st_mode & 0o7700)


def _make_private(settings: Settings) -> None:
    """Create the SQLite file before SQLite does, which would make it world-readable; -wal and -shm inherit its
    mode.
    """
    path = sqlite_path(settings.database)
    if path is not None and not path.exists():
        is_shared = settings.home.stat().st_mode & _SHARED
        # A missing or read-only folder is reported when the database is opened.
        with suppress(OSError):
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o660 if is_shared else 0o600))


def open_to_others(settings: Settings) -> str | None:
    """Return how to restrict a data directory that is world-accessible; None if it is not."""
    if not settings.home.exists() or not settings.home.stat().st_mode & 0o007:
        return None
    return f"every user of this machine may read it; close it with: chmod -R o-rwx {settings.home}"


_only_existing = False


def open_only_existing() -> None:
    """Make `prepare` raise NotFound, in this whole process, for a data directory without an archive."""
    global _only_existing
    _only_existing = True


def prepare(settings: Settings) -> None:
    """Create the data directory and migrate the schema; raise Unavailable with the next step if that fails.

    Raise NotFound if there is no archive and this process may not create one.
    """
    database = sqlite_path(settings.database)
    # On a database server the archive exists, whatever directory another machine uses.
    if _only_existing and database is not None and not database.exists():
        raise NotFound(
            f"there is no archive in {settings.home}; choose another directory with --home or HOLDFAST_HOME, or start "
            f"an archive with: holdfast crawl URL --home {settings.home}"
        )
    try:
        make_home(settings.home)
    except OSError as exc:
        raise Invalid(
            f"cannot use {settings.home} as data directory: {exc.strerror}; choose one with --home or HOLDFAST_HOME"
        ) from exc
    note_below(settings.home, settings.database)
    _make_private(settings)
    _bring_up_to_date(settings)


def _bring_up_to_date(settings: Settings) -> None:
    found = schema_of(settings.database)
    if found == SCHEMA or (found is None and make_fresh(settings.database)):
        return
    # An older program must not write to tables of a newer schema.
    if found is not None and found > SCHEMA:
        raise Unavailable(f"the database has schema {found}, newer than this program's {SCHEMA}; upgrade holdfast")
    path = sqlite_path(settings.database)
    if path is not None and is_read_only(path):
        raise Unavailable(
            f"{path} has schema {found or 'none'} and is read-only here, so it cannot be brought to {SCHEMA}; make it "
            "and its folder writable, or choose another data directory with --home"
        )
    # Run in a child process, so that a crawl does not load Alembic and SQLAlchemy.
    done = subprocess.run(
        [sys.executable, "-P", "-m", f"{__package__}.migrate"],
        capture_output=True,
        text=True,
        check=False,
        # Pass the URL in the environment: arguments are visible to every user of the machine, and it may hold a
        # password.
        env={**os.environ, MIGRATED: settings.database},
    )
    if done.returncode:
        # The last line of a traceback is the error.
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise Unavailable(f"the database could not be brought to schema {SCHEMA}: {last[0]}")
