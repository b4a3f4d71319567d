"""The plain connection that hot statements use: one thread, explicit transactions, rows loaded in bulk.

Statements are written once, with `?`; what the two databases do differently (bulk load, transaction start, how errors
are named) is here. SQLAlchemy is not imported, so that a crawl process stays small.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

from holdfast.db.room import sqlite_refusal, taken
from holdfast.db.sqlite_file import OpenFile, damage_of, is_read_only, open_sqlite, refused
from holdfast.errors import Unavailable

Row = tuple[Any, ...]


class Transaction(Protocol):
    """What a statement runs on, inside `Hot.write` or `Hot.read`."""

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run one statement and return its rows, if it has any."""
        ...

    def many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run one statement for each row of values."""
        ...

    def load(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Append rows to a (temporary) table by the fastest way the database has."""
        ...


class Hot(Protocol):
    """One connection, used by one thread at a time."""

    @property
    def dialect(self) -> str:
        """`sqlite` or `postgresql`."""
        ...

    @property
    def generation(self) -> int:
        """Counts up with each new connection: temporary tables and session settings are gone then."""
        ...

    def write(self) -> AbstractContextManager[Transaction]:
        """Open a transaction that may write; commits at the end of the block, rolls back on an error.

        Unavailable if the database does not answer, is busy for too long, or undid the transaction (deadlock): it may
        or may not have been committed, so repeat only what is harmless twice. NoSpace if its disk is full.
        """
        ...

    def read(self) -> AbstractContextManager[Transaction]:
        """Open a transaction that only reads."""
        ...

    def now_micros(self) -> int | None:
        """Return the database server's clock, or None where the database is this machine."""
        ...

    def close(self) -> None:
        """Let go of the connection."""
        ...


_ROWS_AT_ONCE = 50
"""Rows of one SQLite insert: binding dominates, so 3.0 us a row of eight columns fall to 1.9; 250 give 1.8."""


class _SqliteTransaction:
    __slots__ = ("_connection",)

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        return self._connection.execute(statement, values).fetchall()

    def many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        self._connection.executemany(statement, rows)

    def load(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        # Names come from our own constants, never from data.
        insert = f"INSERT INTO {table}({','.join(columns)}) VALUES "  # noqa: S608
        marks = f"({','.join('?' * len(columns))})"
        whole = len(rows) - len(rows) % _ROWS_AT_ONCE
        wide = insert + ",".join([marks] * _ROWS_AT_ONCE)
        for start in range(0, whole, _ROWS_AT_ONCE):
            self._connection.execute(wide, tuple(chain.from_iterable(rows[start : start + _ROWS_AT_ONCE])))
        if whole < len(rows):
            self._connection.executemany(insert + marks, rows[whole:])


class SqliteHot:
    """SQLite in WAL mode; `synchronous=FULL` is free at one commit for some hundred pages (measurements, section 3)."""

    dialect = "sqlite"
    generation = 1

    def __init__(self, path: Path, *, busy_timeout_s: float = 30.0) -> None:
        self._path = path
        # Before it is opened: a writer that begins in between is noticed.
        self._file = OpenFile(path)
        try:
            self._connection = open_sqlite(path, timeout_s=busy_timeout_s, cached_statements=256)
            # A checkpoint each 16 MB of log, not 4: a batch of 5,000 links writes 2 MB, and pages that two batches
            # touch are copied once (13.9 against 13.1 us of CPU a link).
            pragmas = ["synchronous=FULL", "foreign_keys=ON", "temp_store=MEMORY", "cache_size=-16000"]
            pragmas += ["mmap_size=268435456", "journal_size_limit=67108864", "wal_autocheckpoint=4000"]
            for pragma in pragmas if is_read_only(path) else ["journal_mode=WAL", *pragmas]:
                self._connection.execute(f"PRAGMA {pragma}")
            self._file.note()
        except sqlite3.Error as exc:
            if (damage := damage_of(exc, path)) is not None:
                raise damage from exc
            raise refused(path, exc) from exc

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[_SqliteTransaction]:
        self._file.demand_same()
        try:
            self._connection.execute(begin)
            try:
                yield _SqliteTransaction(self._connection)
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")
        except sqlite3.DatabaseError as exc:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            if (damage := damage_of(exc, self._path)) is not None:
                raise damage from exc
            if not isinstance(exc, sqlite3.OperationalError):
                raise
            if (full := sqlite_refusal(self._path, exc)) is not None:
                raise full from exc
            if exc.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
                raise refused(self._path, exc) from exc
            raise Unavailable(f"the database did not take the transaction: {exc}") from exc
        if begin != "BEGIN":
            taken(f"sqlite:///{self._path}")

    def write(self) -> AbstractContextManager[Transaction]:
        return self._transaction("BEGIN IMMEDIATE")

    def read(self) -> AbstractContextManager[Transaction]:
        return self._transaction("BEGIN")

    def now_micros(self) -> int | None:
        return None

    def close(self) -> None:
        self._connection.close()
