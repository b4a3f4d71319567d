"""Which schema a database has, asked without loading Alembic; and a fresh SQLite file made from the finished schema."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from holdfast.db.connect import connect, sqlite_path

SCHEMA = "0009"
"""The migration that this code is written for; a test compares it with the newest one."""


MIGRATED = "HOLDFAST_MIGRATED_DATABASE"
"""The variable that tells the migrating process its database."""


def schema_of(database_url: str) -> str | None:
    """Return the schema version of a database, or None if it is empty."""
    hot = connect(database_url)
    try:
        with hot.read() as tx:
            there = tx.execute(
                "SELECT 1 FROM information_schema.tables WHERE table_name = 'alembic_version'"
                if hot.dialect == "postgresql"
                else "SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'"
            )
            rows = tx.execute("SELECT version_num FROM alembic_version") if there else []
        return str(rows[0][0]) if rows else None
    finally:
        hot.close()


FRESH = Path(__file__).with_name("fresh.sql")
"""All migrations, as one script for an empty SQLite file; a test compares it with what they make."""


def make_fresh(database_url: str) -> bool:
    """Create the schema in an empty SQLite file, in one transaction; False if that is not what this database is."""
    path = sqlite_path(database_url)
    if path is None:
        return False
    with closing(sqlite3.connect(path, isolation_level=None, timeout=30.0)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("BEGIN IMMEDIATE")
        empty = not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
        for statement in FRESH.read_text().split(";\n") if empty else ():
            if statement.strip():
                connection.execute(statement)
        connection.execute("COMMIT")
    return empty


def dump(path: Path) -> str:
    """Return the script that makes a schema like this file's."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(
            "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid"
        ).fetchall()
        version = connection.execute("SELECT version_num FROM alembic_version").fetchone()[0]
    insert = f"INSERT INTO alembic_version(version_num) VALUES ('{version}')"  # noqa: S608 - our own version
    return "".join(f"{sql};\n" for sql in [*(row[0] for row in rows), insert])
