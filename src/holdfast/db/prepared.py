"""Statements that are compiled once: for single rows, compiling would take longer than the database's answer.

They are written with SQLAlchemy like all others, so that visibility rules exist once, and executed on a raw
connection; values are returned as the database stores them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from queue import Empty, SimpleQueue
from typing import Any

from sqlalchemy import BindParameter, Select, bindparam
from sqlalchemy.dialects import postgresql, sqlite

from holdfast.db import connect
from holdfast.db.raw import OpenSqliteFile, RawDatabase, Row, Transaction, is_driver_error, sqlite_path
from holdfast.errors import Unavailable

_DIALECTS = {"sqlite": sqlite.dialect, "postgresql": postgresql.dialect}


class PreparedSelect:
    """A query with named parameters; parameters with a callable are evaluated at each execution."""

    def __init__(self, statement: Select[*tuple[Any, ...]]) -> None:
        self._statement = statement
        self.names: tuple[str, ...] = tuple(str(column.key) for column in statement.selected_columns)
        """The columns of a row, in order."""
        self._compiled: dict[str, tuple[str, tuple[Callable[[dict[str, Any]], Any], ...]]] = {}

    def rows(self, tx: Transaction, dialect: str, **given: Any) -> list[Row]:
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
            values.append(_value_of(bind))
        return str(compiled), tuple(values)


class PreparedLookup:
    """A query with a list of keys, compiled once for each of a few lengths."""

    def __init__(
        self, asked: Callable[[Sequence[BindParameter[Any]]], Select[*tuple[Any, ...]]], lengths: tuple[int, ...]
    ) -> None:
        """`asked` builds the query for a number of keys; `lengths` are ascending."""
        self._asked, self._lengths = asked, lengths
        self._prepared: dict[int, PreparedSelect] = {}

    def rows(self, tx: Transaction, dialect: str, keys: Sequence[Any]) -> list[Row]:
        """Return the rows of these keys; long lists are split into queries of the greatest length."""
        found: list[Row] = []
        most = self._lengths[-1]
        for first in range(0, len(keys), most):
            part = keys[first : first + most]
            length = next(one for one in self._lengths if one >= len(part))
            # Repeating the last key adds no rows.
            filled = [*part, *[part[-1]] * (length - len(part))]
            found += self._for(length).rows(tx, dialect, **dict(zip(_NAMES[:length], filled, strict=True)))
        return found

    def _for(self, length: int) -> PreparedSelect:
        prepared = self._prepared.get(length)
        if prepared is None:
            made = self._asked([bindparam(name, required=True) for name in _NAMES[:length]])
            prepared = self._prepared[length] = PreparedSelect(made)
        return prepared


_NAMES = tuple(f"key{number}" for number in range(100))


def _value_of(bind: BindParameter[Any]) -> Callable[[dict[str, Any]], Any]:
    """Return a function from the given values to the value of a parameter."""
    evaluated = bind.callable
    if evaluated is not None:
        return lambda _given: evaluated()
    return (lambda given: given[bind.key]) if bind.required else (lambda _given: bind.value)


class RawConnections:
    """A pool of raw connections to one database for threads; it has as many as are in use simultaneously."""

    def __init__(self, database_url: str) -> None:
        self._url = database_url
        path = sqlite_path(database_url)
        self._file = OpenSqliteFile(path) if path is not None else None
        self._idle: SimpleQueue[RawDatabase] = SimpleQueue()

    @contextmanager
    def read(self) -> Iterator[tuple[Transaction, str]]:
        """Open a read-only transaction; yield it with its dialect. Raise Unavailable if the database is down."""
        ending = ExitStack()
        raw_db, tx = self._begin(ending)
        try:
            with ending:
                yield tx, raw_db.dialect
        except BaseException as exc:
            # The connection may be broken: the next reader opens another.
            raw_db.close()
            if not is_driver_error(exc):
                raise
            first_line = str(exc).partition("\n")[0]
            raise Unavailable(f"the database did not answer: {first_line}") from exc
        self._idle.put(raw_db)

    def _begin(self, ending: ExitStack) -> tuple[RawDatabase, Transaction]:
        while True:
            try:
                raw_db, is_idle = self._idle.get_nowait(), True
            except Empty:
                # A new connection would create an empty file if the database was moved away.
                if self._file is not None:
                    self._file.demand_same()
                raw_db, is_idle = connect(self._url), False
            try:
                return raw_db, ending.enter_context(raw_db.read())
            except BaseException as exc:
                raw_db.close()
                # An idle connection may have been lost since, for example by a server restart.
                if not (is_idle and isinstance(exc, Unavailable)):
                    raise

    def close(self) -> None:
        """Close the idle connections."""
        while True:
            try:
                self._idle.get_nowait().close()
            except Empty:
                return
