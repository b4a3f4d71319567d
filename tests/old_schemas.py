"""Databases of the schemas before the baseline, made by the migrations that were used then, and what is in them."""

from __future__ import annotations

import re
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, MetaData, Table, insert, inspect, select, text
from sqlalchemy.schema import ColumnCollectionConstraint

from holdfast.db.engine import Database
from holdfast.db.migrate import MIGRATIONS

_VERSIONS = Path(__file__).parent / "migrations" / "versions"


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("version_locations", str(_VERSIONS))
    config.set_main_option("path_separator", "os")
    return config


def old_revisions() -> list[str]:
    """Return every old schema, oldest first."""
    return [one.revision for one in ScriptDirectory.from_config(_config()).walk_revisions()][::-1]


def make_old(database_url: str, revision: str) -> None:
    """Bring an empty or old database to an old schema, as the programs of then did."""
    with closing(Database(database_url)) as database, database.engine.connect() as connection:
        if database.engine.dialect.name == "sqlite":
            connection.exec_driver_sql("PRAGMA foreign_keys=OFF")
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        config = _config()
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
        connection.commit()


_LATER = """
from alembic import op
import sqlalchemy as sa

revision, down_revision, branch_labels, depends_on = "9001", {head!r}, None, None


def upgrade():
    op.add_column("sources", sa.Column("motto", sa.String(), nullable=True))
    convert(op.get_bind())


def convert(connection):
    connection.execute(sa.text("UPDATE sources SET name = upper(name)"))


def downgrade():
    op.drop_column("sources", "motto")
"""


def add_migration(folder: Path, *, head: str) -> Path:
    """Copy the migrations of the program to a folder, with one more that has data to convert; return the copy."""
    copied = shutil.copytree(MIGRATIONS, folder / "migrations")
    (copied / "versions" / "9001_later.py").write_text(f'"""A later change"""{_LATER.format(head=head)}')
    return copied


def insert_rows(database_url: str, rows: dict[str, list[dict[str, Any]]]) -> None:
    """Insert rows; tables and columns that the schema does not have yet are left out."""
    with closing(Database(database_url)) as database, database.engine.begin() as connection:
        known = MetaData()
        known.reflect(connection)
        for name, given in rows.items():
            if name in known.tables:
                table = known.tables[name]
                for row in given:
                    fitting = {key: value for key, value in row.items() if key in table.c}
                    connection.execute(insert(table), fitting)


def contents(database_url: str) -> dict[str, list[dict[str, Any]]]:
    """Return all rows of all tables, in the order of their primary key."""
    found = {}
    with closing(Database(database_url)) as database, database.engine.connect() as connection:
        known = MetaData()
        known.reflect(connection)
        for name, table in known.tables.items():
            if name != "alembic_version":
                rows = connection.execute(select(table).order_by(*table.primary_key.columns)).mappings()
                found[name] = [dict(row) for row in rows]
    return found


def schema_catalogue(database_url: str) -> dict[str, Any]:
    """Return columns, constraints and indexes by name, in a form that two databases of one kind share."""
    with closing(Database(database_url)) as database, database.engine.connect() as connection:
        read = _postgres_catalogue if database.engine.dialect.name == "postgresql" else _sqlite_catalogue
        return read(connection)


_POSTGRES = {
    "columns": """
SELECT c.relname || '.' || a.attname, format_type(a.atttypid, a.atttypmod), a.attcollation::regcollation::text,
    a.attnotnull, pg_get_expr(d.adbin, d.adrelid)
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace""",
    "constraints": """
SELECT conrelid::regclass || '.' || conname, pg_get_constraintdef(oid) FROM pg_constraint
WHERE connamespace = 'public'::regnamespace""",
    "indexes": "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
    "sequences": "SELECT sequencename, data_type::text FROM pg_sequences WHERE schemaname = 'public'",
}


def _postgres_catalogue(connection: Connection) -> dict[str, Any]:
    return {
        kind: {row[0]: tuple(row[1:]) for row in connection.execute(text(asked))} for kind, asked in _POSTGRES.items()
    }


def _sqlite_catalogue(connection: Connection) -> dict[str, Any]:
    looked = inspect(connection)
    found: dict[str, Any] = {"indexes": {}}
    for name, sql in connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE type = 'index'"):
        if sql is not None:
            found["indexes"][name] = re.sub(r'["\s]+', " ", sql)
    for name in looked.get_table_names():
        made = connection.exec_driver_sql("SELECT sql FROM sqlite_master WHERE name = ?", (name,)).scalar_one()
        table = Table(name, MetaData(), autoload_with=connection)
        found[name] = {
            "columns": {
                str(row[1]): (_affinity(row[2]), row[3], str(row[4]).strip("()"), row[5])
                for row in connection.exec_driver_sql(f"PRAGMA table_xinfo({name})")
            },
            "constraints": sorted(
                f"{type(one).__name__} {one.name} {[column.name for column in one.columns]}"
                for one in table.constraints
                if isinstance(one, ColumnCollectionConstraint) and one.name is not None
            ),
            "references": sorted(
                row[2:] for row in map(tuple, connection.exec_driver_sql(f"PRAGMA foreign_key_list({name})"))
            ),
            "without rowid": "WITHOUT ROWID" in made,
        }
    return found


def _affinity(declared: str) -> str:
    """Return how SQLite stores a column: it makes no difference between INTEGER and BIGINT, or FLOAT and DOUBLE."""
    for part, affinity in (("INT", "integer"), ("DOUBLE", "real"), ("FLOAT", "real")):
        if part in declared:
            return affinity
    return declared
