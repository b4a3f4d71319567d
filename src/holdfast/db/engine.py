"""Engine and sessions for ordinary queries: who opens a session ends it; a query function never commits."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.exc import DBAPIError, InternalError, OperationalError
from sqlalchemy.orm import Session

from holdfast.db.connect import sqlite_path
from holdfast.db.server import STATEMENT_S, connect_arguments
from holdfast.db.text import to_json
from holdfast.errors import Unavailable


def _engine(database_url: str, statement_s: float | None) -> Engine:
    path = sqlite_path(database_url)
    if path is None:
        _, _, rest = database_url.partition("://")
        return create_engine(
            f"postgresql+psycopg://{rest}", json_serializer=to_json, pool_pre_ping=True, pool_size=5, max_overflow=10,
            connect_args=connect_arguments(statement_s=statement_s),
        )  # fmt: skip
    engine = create_engine(f"sqlite:///{path}", json_serializer=to_json)

    @event.listens_for(engine, "connect")
    def _prepare(connection: sqlite3.Connection, _record: Any) -> None:
        connection.isolation_level = None  # we say BEGIN ourselves: IMMEDIATE for writers
        for pragma in ("busy_timeout=30000", "journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")

    return engine


class Database:
    """One database, whichever kind it is."""

    def __init__(self, database_url: str, *, statement_s: float | None = STATEMENT_S) -> None:
        """Connect at the first session; no statement on a server takes longer than that, None lifts the limit."""
        self.url = database_url
        self.engine = _engine(database_url, statement_s)

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
        try:
            with Session(self.engine, expire_on_commit=False) as session, session.begin():
                if self.engine.dialect.name == "sqlite":
                    session.connection().exec_driver_sql(begin)
                yield session
        except (OperationalError, InternalError) as exc:  # the latter where the server ended an idle transaction
            raise Unavailable(f"the database did not answer: {_plain(exc)}") from exc

    def close(self) -> None:
        """Let go of all connections."""
        self.engine.dispose()


def _plain(exc: DBAPIError) -> str:
    return str(exc.orig).splitlines()[0] if exc.orig else "no detail"
