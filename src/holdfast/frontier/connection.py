"""The frontier's view of a hot connection: statements in our spelling, temporary tables that are there when needed."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from holdfast.db.raw import RawDatabase, Row, Transaction
from holdfast.frontier import sql


class FrontierTransaction:
    """A transaction that takes the statements of `sql.py`."""

    __slots__ = ("_loaded", "_texts", "_tx", "dialect")

    def __init__(self, tx: Transaction, dialect: str, texts: dict[str, str]) -> None:
        self._tx, self.dialect, self._texts = tx, dialect, texts
        self._loaded: set[str] = set()

    def _spelled(self, statement: str) -> str:
        text = self._texts.get(statement)
        if text is None:
            text = self._texts[statement] = sql.spell(statement, self.dialect)
        return text

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run one statement and return its rows, if it has any."""
        return self._tx.execute(self._spelled(statement), values)

    def many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run one statement for each row of values."""
        self._tx.many(self._spelled(statement), rows)

    def load(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Fill a temporary table with these rows alone."""
        if self.dialect == "sqlite" or table in self._loaded:
            self._tx.execute(sql.CLEAR[table])
        self._loaded.add(table)
        self._tx.load(table, columns, rows)

    def append(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Add rows, none of which is there, to a table of the schema."""
        if rows:
            self._tx.load(table, columns, rows)

    def list(self, values: Collection[int] | Collection[str]) -> Any:
        """Return what stands for a list after AMONG: an array, or JSON where the database has no arrays."""
        return list(values) if self.dialect == "postgresql" else json.dumps(list(values))


class Connection:
    """One hot connection, prepared for the frontier whenever it is new."""

    def __init__(self, raw_db: RawDatabase) -> None:
        self._raw_db = raw_db
        self._texts: dict[str, str] = {}
        self._prepared = 0

    @property
    def is_postgres(self) -> bool:
        """Whether a round trip costs something, and arrays and LATERAL exist."""
        return self._raw_db.dialect == "postgresql"

    @contextmanager
    def write(self) -> Iterator[FrontierTransaction]:
        """Open a transaction that may write (see `Hot.write`); a temporary table is loaded before it is read."""
        dialect = self._raw_db.dialect
        with self._raw_db.write() as tx:
            # A lost connection was opened anew on the way in: what belonged to the session is gone.
            generation = self._raw_db.generation
            if generation != self._prepared:
                for statement in sql.SETUP[dialect]:
                    tx.execute(statement)
            yield FrontierTransaction(tx, dialect, self._texts)
        self._prepared = generation  # only now: a rollback undoes the preparation too

    @contextmanager
    def read(self) -> Iterator[FrontierTransaction]:
        """Open a transaction that only reads."""
        with self._raw_db.read() as tx:
            yield FrontierTransaction(tx, self._raw_db.dialect, self._texts)
