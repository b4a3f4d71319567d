"""The raw connection to PostgreSQL, through psycopg 3."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import psycopg
from psycopg.pq import PipelineStatus

from holdfast.clock import Clock
from holdfast.db.raw import STATEMENT_S, Row, StatementTimeout, Transaction, connect_arguments, taken, want_of_room
from holdfast.errors import Unavailable


class _PostgresTransaction:
    __slots__ = ("_cursor", "_texts")

    def __init__(self, cursor: psycopg.Cursor[Row], texts: dict[str, str]) -> None:
        self._cursor, self._texts = cursor, texts

    def _text(self, statement: str) -> Any:
        text = self._texts.get(statement)
        if text is None:
            # The only SQL translation: statements use SQLite's `?`, psycopg needs `%s`. No statement has any other `?`.
            # Cached per statement, so that psycopg sees the same text and keeps it prepared.
            text = self._texts[statement] = statement.replace("%", "%%").replace("?", "%s")
        return text

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        self._cursor.execute(self._text(statement), values)
        return self._cursor.fetchall() if self._cursor.description else []

    def many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        self._cursor.executemany(self._text(statement), rows)

    def load(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        statement: Any = f"COPY {table} ({','.join(columns)}) FROM STDIN"
        # Use COPY: a round trip per row would cost more than the row.
        with self._cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(row)


class PostgresRawDatabase:
    """PostgreSQL through psycopg 3; a lost connection is reopened at the next transaction."""

    dialect = "postgresql"

    def __init__(self, url: str, *, statement_s: float = STATEMENT_S) -> None:
        self._url, self._statement_s = url, statement_s
        self._texts: dict[str, str] = {}
        self._connection = self._connect()
        self.generation = 1
        """Counts up with each new connection: temporary tables are gone then."""

    def _connect(self) -> psycopg.Connection[Row]:
        try:
            return psycopg.connect(
                # Autocommit: transactions are explicit, so none stays open between two calls. Prepare after three uses:
                # a crawl sends few statements thousands of times.
                self._url,
                autocommit=True,
                prepare_threshold=3,
                **connect_arguments(statement_s=self._statement_s),
            )
        except psycopg.Error as exc:
            raise Unavailable("cannot reach PostgreSQL; check HOLDFAST_DATABASE_URL and that the server runs") from exc

    def _usable(self) -> psycopg.Connection[Row]:
        # A server restart ends all connections; the crawl's next transaction opens a new one. A connection lost during
        # a pipeline may stay in it and refuse every statement without being marked broken.
        if not self._connection.closed and self._connection.pgconn.pipeline_status != PipelineStatus.OFF:
            self._connection.close()
        if self._connection.closed or self._connection.broken:
            self._connection = self._connect()
            self.generation += 1
        return self._connection

    @contextmanager
    def _transaction(self, *, writes: bool = False) -> Iterator[_PostgresTransaction]:
        try:
            connection = self._usable()
            with connection.transaction(), connection.cursor() as cursor:
                yield _PostgresTransaction(cursor, self._texts)
        except psycopg.errors.DiskFull as exc:
            raise want_of_room(self._url) from exc
        except psycopg.errors.QueryCanceled as exc:
            raise StatementTimeout from exc
        # The driver raises InternalError if the server ended a transaction that was idle for too long.
        except (psycopg.OperationalError, psycopg.InterfaceError, psycopg.InternalError) as exc:
            raise Unavailable(f"the database did not take the transaction: {exc}") from exc
        if writes:
            taken(self._url)

    def write(self) -> AbstractContextManager[Transaction]:
        return self._transaction(writes=True)

    def read(self) -> AbstractContextManager[Transaction]:
        return self._transaction()

    def now_micros(self, machine: Clock) -> int:
        with self._transaction() as tx:
            return int(tx.execute("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")[0][0])

    def close(self) -> None:
        self._connection.close()
