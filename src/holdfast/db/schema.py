"""Which schema a database has, asked without loading Alembic."""

from __future__ import annotations

from holdfast.db.hot import connect

SCHEMA = "0001"
"""The migration that this code is written for; a test compares it with the newest one."""


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
