"""Engine and sessions for ordinary queries: who opens a session ends it; a query function never commits."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

from sqlalchemy import Engine, create_engine
from sqlalchemy.exc import DatabaseError, DBAPIError, InternalError, OperationalError
from sqlalchemy.orm import Session

from holdfast.config import Settings
from holdfast.db.connect import sqlite_path
from holdfast.db.opening import prepare
from holdfast.db.room import refused as out_of_room
from holdfast.db.room import sqlite_refusal, taken
from holdfast.db.server import STATEMENT_S, connect_arguments
from holdfast.db.sqlite_file import OpenFile, damage_of, is_read_only, open_sqlite, refused
from holdfast.db.text import to_json
from holdfast.errors import Unavailable

_KEPT = 5
_DISK_FULL = "53100"
_BUSY_S = 30.0
_CONNECTIONS = 20
"""At once, for all threads of a serving process (api/deps.py): none of them ever waits for a connection."""


def _engine(database_url: str, statement_s: float | None, file: OpenFile | None) -> Engine:
    if file is None:
        _, _, rest = database_url.partition("://")
        return create_engine(
            f"postgresql+psycopg://{rest}", json_serializer=to_json, pool_pre_ping=True, pool_size=_KEPT,
            max_overflow=_CONNECTIONS - _KEPT, connect_args=connect_arguments(statement_s=statement_s),
        )  # fmt: skip
    path = sqlite_path(database_url)
    assert path is not None

    def connect() -> sqlite3.Connection:
        connection = open_sqlite(path, timeout_s=_BUSY_S)  # we say BEGIN ourselves: IMMEDIATE for writers
        pragmas = ["synchronous=FULL", "foreign_keys=ON"]
        for pragma in pragmas if is_read_only(path) else ["journal_mode=WAL", *pragmas]:
            connection.execute(f"PRAGMA {pragma}")
        file.note()
        return connection

    return create_engine(
        f"sqlite:///{path}",
        creator=connect,
        json_serializer=to_json,
        pool_size=_KEPT,
        max_overflow=_CONNECTIONS - _KEPT,
    )


class Database:
    """One database, whichever kind it is."""

    def __init__(self, database_url: str, *, statement_s: float | None = STATEMENT_S) -> None:
        """Connect at the first session; no statement on a server takes longer than that, None lifts the limit."""
        self.url = database_url
        self._path = sqlite_path(database_url)
        self._file = None if self._path is None else OpenFile(self._path)
        self.engine = _engine(database_url, statement_s, self._file)

    @contextmanager
    def write(self) -> Iterator[Session]:
        """Open a session that commits at the end of the block; SQLite takes its one writer's lock at the start.

        Unavailable if the database does not answer, NoSpace if its disk is full.
        """
        with self._session("BEGIN IMMEDIATE") as session:
            yield session
        taken(self.url)

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
            if (damage := damage_of(exc.orig, self._path)) is not None:
                raise damage from exc
            if not isinstance(exc, OperationalError | InternalError):
                raise
            if getattr(exc.orig, "sqlstate", None) == _DISK_FULL:
                raise out_of_room(self.url) from exc
            if self._path is not None and isinstance(exc.orig, sqlite3.Error):
                if (full := sqlite_refusal(self._path, exc.orig)) is not None:
                    raise full from exc
                code = exc.orig.sqlite_errorcode & 0xFF
                if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
                    raise refused(self._path, exc.orig) from exc
            # InternalError where the server ended an idle transaction.
            raise Unavailable(f"the database did not answer: {_plain(exc)}") from exc

    def is_in_place(self) -> bool:
        """Return whether the file that is open is still at its path; a database server always is."""
        return self._file is None or self._file.is_same()

    def close(self) -> None:
        """Let go of all connections."""
        self.engine.dispose()


@contextmanager
def open_database(settings: Settings) -> Iterator[Database]:
    """Open the database of a data directory, migrated where that is needed and safe, for a command that only reads."""
    prepare(settings)
    with closing(Database(settings.database)) as database:
        yield database


def _plain(exc: DBAPIError) -> str:
    return str(exc.orig).splitlines()[0] if exc.orig else "no detail"
