"""Statements that are put together once and then only executed: for single rows, where putting them together would cost
more than the database takes to answer.

They are written with SQLAlchemy like all others, so that what may be seen is said in one place, and executed on a raw
connection; values come back as the database keeps them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import Any

from sqlalchemy import Select
from sqlalchemy.dialects import postgresql, sqlite

from holdfast.db import connect
from holdfast.db.raw import OpenSqliteFile, RawDatabase, Row, Transaction, sqlite_path

_DIALECTS = {"sqlite": sqlite.dialect, "postgresql": postgresql.dialect}


class PreparedSelect:
    """A question with named parameters; those with a callable of their own are asked at each execution."""

    def __init__(self, statement: Select[*tuple[Any, ...]]) -> None:
        self._statement = statement
        self._compiled: dict[str, tuple[str, tuple[Callable[[dict[str, Any]], Any], ...]]] = {}

    def rows(self, tx: Transaction, dialect: str, **given: Any) -> list[Row]:
        """Return what it finds."""
        compiled = self._compiled.get(dialect)
        if compiled is None:
            compiled = self._compiled[dialect] = self._compile(dialect)
        text, values = compiled
        return tx.execute(text, [value(given) for value in values])

    def _compile(self, dialect: str) -> tuple[str, tuple[Callable[[dict[str, Any]], Any], ...]]:
        compiled = self._statement.compile(
            dialect=_DIALECTS[dialect](paramstyle="qmark"), compile_kwargs={"render_postcompile": True}
        )
        values = []
        for name in compiled.positiontup or ():
            bind = compiled.binds[name]
            if bind.callable is not None:
                values.append(_asked(bind.callable))
            elif bind.required:
                values.append(_given(bind.key))
            else:
                values.append(_fixed(bind.value))
        return str(compiled), tuple(values)


def _asked(ask: Callable[[], Any]) -> Callable[[dict[str, Any]], Any]:
    return lambda _given: ask()


def _given(name: str) -> Callable[[dict[str, Any]], Any]:
    return lambda given: given[name]


def _fixed(value: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda _given: value


class RawConnections:
    """Raw connections to one database that threads take in turn; as many as are used at once."""

    def __init__(self, database_url: str) -> None:
        self._url = database_url
        path = sqlite_path(database_url)
        self._file = OpenSqliteFile(path) if path is not None else None
        self._idle: SimpleQueue[RawDatabase] = SimpleQueue()

    @contextmanager
    def read(self) -> Iterator[tuple[Transaction, str]]:
        """Open a transaction that only reads; give it and the kind of its database. Unavailable if it is away."""
        try:
            raw_db = self._idle.get_nowait()
        except Empty:
            # Another connection would make an empty file where the database was moved away.
            if self._file is not None:
                self._file.demand_same()
            raw_db = connect(self._url)
        try:
            with raw_db.read() as tx:
                yield tx, raw_db.dialect
        except BaseException:
            # It may be broken: the next reader opens another.
            raw_db.close()
            raise
        self._idle.put(raw_db)

    def close(self) -> None:
        """Close those that nothing uses."""
        while True:
            try:
                self._idle.get_nowait().close()
            except Empty:
                return
