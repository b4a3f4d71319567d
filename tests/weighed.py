"""A connection that counts the rows of each write transaction: how long it holds the database, as a number of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from holdfast.db.raw import RawDatabase, Row, Transaction

MOST_ROWS = 60_000
"""About half a second of SQLite at 8 microseconds a row with its indexes: no write transaction may hold more."""


class _WeighedTransaction:
    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self.rows = 0

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        self.rows += 1
        return self._tx.execute(statement, values)

    def many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        taken = list(rows)
        self.rows += len(taken)
        self._tx.many(statement, taken)

    def load(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        self.rows += len(rows)
        self._tx.load(table, columns, rows)


class WeighedRawDatabase:
    """Like the connection that it wraps; `rows` has one number for each write transaction."""

    def __init__(self, raw_db: RawDatabase) -> None:
        self._raw_db = raw_db
        self.rows: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw_db, name)

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """Open a transaction that may write."""
        with self._raw_db.write() as tx:
            weighed = _WeighedTransaction(tx)
            yield weighed
        self.rows.append(weighed.rows)
