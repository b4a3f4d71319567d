"""The frontier's view of a raw connection: temporary tables that are there when needed, lists as one parameter."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from holdfast.db.raw import RawDatabase, Row, Transaction
from holdfast.frontier import sql


class FrontierTransaction:
    """A transaction that takes the statements of `sql.py`."""

    __slots__ = ("_loaded", "_tx", "is_postgres")

    def __init__(self, tx: Transaction, *, is_postgres: bool) -> None:
        self._tx, self.is_postgres = tx, is_postgres
        self._loaded: set[str] = set()

    def _text(self, statement: str | sql.Statement) -> str:
        if isinstance(statement, str):
            return statement
        return statement.postgresql if self.is_postgres else statement.sqlite

    def execute(self, statement: str | sql.Statement, values: Sequence[Any] = ()) -> list[Row]:
        """Run one statement and return its rows, if it has any."""
        return self._tx.execute(self._text(statement), values)

    def many(self, statement: str | sql.Statement, rows: Iterable[Sequence[Any]]) -> None:
        """Run one statement for each row of values."""
        self._tx.many(self._text(statement), rows)

    def load(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Fill a temporary table with these rows alone."""
        # PostgreSQL empties temporary tables at each commit; SQLite keeps their rows.
        if not self.is_postgres or table in self._loaded:
            self._tx.execute(sql.CLEAR[table])
        self._loaded.add(table)
        self._tx.load(table, columns, rows)

    def append(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Add rows, none of which is there, to a table of the schema."""
        if rows:
            self._tx.load(table, columns, rows)

    def list(self, values: Collection[int] | Collection[str]) -> Any:
        """Return a list as one parameter: an array, or JSON where the database has no arrays."""
        return list(values) if self.is_postgres else json.dumps(list(values))


class Connection:
    """One raw connection, prepared for the frontier whenever it is new."""

    def __init__(self, raw_db: RawDatabase) -> None:
        self._raw_db = raw_db
        self._prepared = 0

    @property
    def is_postgres(self) -> bool:
        """Whether a round trip costs something, and arrays and LATERAL exist."""
        return self._raw_db.dialect == "postgresql"

    @contextmanager
    def write(self) -> Iterator[FrontierTransaction]:
        """Open a transaction that may write (see `RawDatabase.write`), on a prepared connection."""
        with self._raw_db.write() as tx:
            # A lost connection was opened anew on the way in: what belonged to the session is gone.
            generation = self._raw_db.generation
            if generation != self._prepared:
                for statement in sql.SETUP[self._raw_db.dialect]:
                    tx.execute(statement)
            yield FrontierTransaction(tx, is_postgres=self.is_postgres)
        self._prepared = generation  # only now: a rollback undoes the preparation too

    @contextmanager
    def read(self) -> Iterator[FrontierTransaction]:
        """Open a transaction that only reads."""
        with self._raw_db.read() as tx:
            yield FrontierTransaction(tx, is_postgres=self.is_postgres)
