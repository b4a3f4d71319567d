"""Engine and sessions for ordinary queries: who opens a session ends it; a query function never commits."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.exc import DatabaseError, DBAPIError, InternalError, OperationalError
from sqlalchemy.orm import Session

from holdfast.db.connect import sqlite_path
from holdfast.db.server import STATEMENT_S, connect_arguments
from holdfast.db.sqlite_file import OpenFile, damage_of
from holdfast.db.text import to_json
from holdfast.errors import Unavailable

_KEPT = 5
_CONNECTIONS = 20
"""At once, for all threads of a serving process (api/deps.py): none of them ever waits for a connection."""


def _engine(database_url: str, statement_s: float | None, file: OpenFile | None) -> Engine:
    if file is None:
        _, _, rest = database_url.partition("://")
        return create_engine(
            f"postgresql+psycopg://{rest}", json_serializer=to_json, pool_pre_ping=True, pool_size=_KEPT,
            max_overflow=_CONNECTIONS - _KEPT, connect_args=connect_arguments(statement_s=statement_s),
        )  # fmt: skip
    engine = create_engine(
        f"sqlite:///{sqlite_path(database_url)}", json_serializer=to_json, pool_size=_KEPT,
        max_overflow=_CONNECTIONS - _KEPT,
    )  # fmt: skip

    @event.listens_for(engine, "connect")
    def _prepare(connection: sqlite3.Connection, _record: Any) -> None:
        connection.isolation_level = None  # we say BEGIN ourselves: IMMEDIATE for writers
        for pragma in ("busy_timeout=30000", "journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")
        file.note()

    return engine


class Database:
    """One database, whichever kind it is."""

    def __init__(self, database_url: str, *, statement_s: float | None = STATEMENT_S) -> None:
        """Connect at the first session; no statement on a server takes longer than that, None lifts the limit."""
        self.url = database_url
        path = sqlite_path(database_url)
        self._file = None if path is None else OpenFile(path)
        self.engine = _engine(database_url, statement_s, self._file)

    @contextmanager
    def write(self) -> Iterator[Session]:
        """Open a session that commits at the end of the block; SQLite takes its one writer's lock at the start."""
        with self._session("BEGIN IMMEDIATE") as session:
            yield session

    @contextmanager
    def read(self) -> Iterator[Session]:
        """Open a session for reading."""
        with self._session("BEGIN") as session:
            yield session

    @contextmanager
    def _session(self, begin: str) -> Iterator[Session]:
        if self._file is not None:
            self._file.demand_same()
        try:
            with Session(self.engine, expire_on_commit=False) as session, session.begin():
                if self.engine.dialect.name == "sqlite":
                    session.connection().exec_driver_sql(begin)
                yield session
        except DatabaseError as exc:
            if (damage := damage_of(exc.orig, sqlite_path(self.url))) is not None:
                raise damage from exc
            if not isinstance(exc, OperationalError | InternalError):
                raise
            # InternalError where the server ended an idle transaction.
            raise Unavailable(f"the database did not answer: {_plain(exc)}") from exc

    def is_in_place(self) -> bool:
        """Return whether the file that is open is still at its path; a database server always is."""
        return self._file is None or self._file.is_same()

    def close(self) -> None:
        """Let go of all connections."""
        self.engine.dispose()


def _plain(exc: DBAPIError) -> str:
    return str(exc.orig).splitlines()[0] if exc.orig else "no detail"
