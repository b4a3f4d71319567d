"""Whether a database has what this code expects: its schema version, its tables and their columns. Changes nothing."""

from __future__ import annotations

from contextlib import closing
from typing import NamedTuple

from sqlalchemy import inspect, text
from sqlalchemy.exc import DBAPIError

from holdfast.db.connect import sqlite_path
from holdfast.db.engine import Database
from holdfast.db.models import Model
from holdfast.db.schema import SCHEMA, schema_of
from holdfast.db.sqlite_file import damage_of, damaged
from holdfast.errors import Unavailable


class Parity(NamedTuple):
    """What was found, beside what is expected."""

    dialect: str
    version: str
    """Of the server, or of the SQLite library."""
    schema: str | None
    expected: str
    missing: tuple[str, ...]
    """Tables, and columns as `table.column`, that are not there."""

    @property
    def is_whole(self) -> bool:
        """Whether this code can work with it."""
        return self.schema == self.expected and not self.missing


def compare(database_url: str) -> Parity:
    """Return how a database compares; Unavailable if it does not answer, or is a file that is not there.

    A SQLite file is read from end to end: DatabaseDamaged if it is not whole.
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
                there = {name: {str(column["name"]) for column in looked.get_columns(name)}
                         for name in looked.get_table_names()}  # fmt: skip
                damage = str(connection.execute(text("PRAGMA quick_check(1)")).scalar_one()) if sqlite else "ok"
        except DBAPIError as exc:
            if (found := damage_of(exc.orig, path)) is not None:
                raise found from exc
            raise Unavailable(f"the database did not answer: {str(exc.orig).splitlines()[0]}") from exc
    if damage != "ok":
        raise damaged(path, " ".join(damage.split()))
    missing = [name for name in Model.metadata.tables if name not in there]
    missing += [f"{name}.{column.name}" for name, table in Model.metadata.tables.items() if name in there
                for column in table.columns if column.name not in there[name]]  # fmt: skip
    return Parity("sqlite" if sqlite else "postgresql", version, schema, SCHEMA, tuple(missing))
