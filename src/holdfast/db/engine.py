"""Engine and sessions for ordinary queries. The code that opens a session ends it; query functions never commit."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DatabaseError, InternalError, OperationalError
from sqlalchemy.orm import Session

from holdfast.clock import Clock, SystemClock, from_micros
from holdfast.config import Settings
from holdfast.db.models.base import Model
from holdfast.db.prepared import RawConnections
from holdfast.db.raw import (
    STATEMENT_S,
    DatabaseClock,
    OpenSqliteFile,
    connect_arguments,
    damage_of,
    is_read_only,
    last_refusal,
    open_sqlite,
    refused,
    sqlite_path,
    sqlite_refusal,
    switch_to_wal,
    taken,
)
from holdfast.db.raw import want_of_room as out_of_room
from holdfast.db.schema import prepare
from holdfast.db.sqlite import DatabaseLocked, boot_micros, is_locked
from holdfast.errors import Unavailable
from holdfast.outside_text import to_json

_KEPT = 5
# Twice as long as any of our write transactions.
_LOCK_S = 1.0
_DISK_FULL = "53100"
_BUSY_S = 30.0
# Limit for all threads of a serving process (api/dependencies.py), so that none waits for a connection.
_CONNECTIONS = 20


def _engine(database_url: str, statement_s: float | None, file: OpenSqliteFile | None) -> Engine:
    if file is None:
        _, _, rest = database_url.partition("://")
        return create_engine(
            f"postgresql+psycopg://{rest}",
            json_serializer=to_json,
            # Replace dead connections of the pool: after a server restart they would fail requests.
            pool_pre_ping=True,
            pool_size=_KEPT,
            max_overflow=_CONNECTIONS - _KEPT,
            connect_args=connect_arguments(statement_s=statement_s),
        )
    path = sqlite_path(database_url)
    assert path is not None

    def connect() -> sqlite3.Connection:
        connection = open_sqlite(path, timeout_s=_BUSY_S)
        # This writes to the file, so skip it for a read-only one.
        if not is_read_only(path):
            switch_to_wal(connection, timeout_s=_BUSY_S)
        for pragma in ("synchronous=FULL", "foreign_keys=ON"):
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
    """One database, SQLite or PostgreSQL."""

    def __init__(self, database_url: str, *, statement_s: float | None = STATEMENT_S) -> None:
        """Connect at the first session. `statement_s` limits each statement on a server; None means no limit."""
        self.url = database_url
        self._path = sqlite_path(database_url)
        self._file = None if self._path is None else OpenSqliteFile(self._path)
        self.engine = _engine(database_url, statement_s, self._file)
        self.raw_reads = RawConnections(database_url)
        """For prepared statements, which need no session."""

    @contextmanager
    def write(self) -> Iterator[Session]:
        """Open a session that commits at the end of the block; on SQLite it takes the write lock at the start.

        Raise Unavailable if the database does not answer, NoSpace if its disk is full.
        """
        with self._session("BEGIN IMMEDIATE") as session:
            yield session
        taken(self.url)

    @contextmanager
    def read(self) -> Iterator[Session]:
        with self._session("BEGIN") as session:
            yield session

    @contextmanager
    def _session(self, begin: str) -> Iterator[Session]:
        if self._file is not None:
            self._file.demand_same()
        try:
            # Keep rows readable after the commit: responses are built from them then.
            with Session(self.engine, expire_on_commit=False) as session, session.begin():
                # The driver starts no transaction (`isolation_level=None`): writers use IMMEDIATE and then never fail
                # halfway.
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
                if is_locked(exc.orig):
                    raise DatabaseLocked(self._path) from exc
            # The driver raises InternalError if the server ended an idle transaction.
            raise Unavailable(
                f"the database did not answer: {str(exc.orig).splitlines()[0] if exc.orig else 'no detail'}"
            ) from exc

    def takes_writes(self, home: Path) -> bool:
        """Return whether writes work: the last one was not rejected, and no process holds SQLite's lock."""
        if last_refusal(home) is not None:
            return False
        if self._path is None or is_read_only(self._path):
            return True
        with closing(open_sqlite(self._path, timeout_s=_LOCK_S)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as exc:
                return not is_locked(exc)
        return True

    def is_in_place(self) -> bool:
        """Return whether the open file is still at its path; always true for a database server."""
        return self._file is None or self._file.is_same()

    def close(self) -> None:
        self.engine.dispose()
        self.raw_reads.close()


@contextmanager
def open_database(settings: Settings) -> Iterator[Database]:
    """Open a data directory's database for a read-only command, migrating it if that is needed and safe."""
    prepare(settings)
    with closing(Database(settings.database)) as database:
        yield database


# SQLite VM steps between two checks: about a millisecond.
_STEPS = 20_000
_DEADLINE = "statement_deadline"
_UNLIMITED = "statement_unlimited"


def limit_statements(engine: Engine, *, seconds: float) -> None:
    """Set statement and idle-transaction timeouts for connections opened from now on.

    A timeout looks as if the database did not answer. Close open connections first: `engine.dispose()`.
    """
    if engine.dialect.name == "postgresql":
        _limit_postgres(engine, seconds)
    else:
        _limit_sqlite(engine, seconds, SystemClock())
    # Existing connections have no limit, so close them.
    engine.dispose()


def take_time(session: Session) -> None:
    """Lift the statement timeout for this transaction: for work that no request waits for."""
    connection = session.connection()
    if connection.dialect.name == "postgresql":
        connection.execute(text("SET LOCAL statement_timeout = 0"))
    else:
        connection.info[_UNLIMITED] = True


def _limit_postgres(engine: Engine, seconds: float) -> None:
    @event.listens_for(engine, "connect")
    def limit(connection: Any, _record: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"SET statement_timeout = {int(seconds * 1000)}")
            cursor.execute("SET idle_in_transaction_session_timeout = 30000")
        connection.commit()


def _limit_sqlite(engine: Engine, seconds: float, clock: Clock) -> None:
    @event.listens_for(engine, "connect")
    def watch(connection: sqlite3.Connection, record: Any) -> None:
        def is_late() -> int:
            deadline = record.info.get(_DEADLINE)
            return int(deadline is not None and clock.monotonic() > deadline)

        # SQLite has no statement timeout: a handler that returns 1 interrupts the statement.
        connection.set_progress_handler(is_late, _STEPS)

    @event.listens_for(engine, "before_cursor_execute")
    def begin(connection: Connection, *_: Any) -> None:
        unlimited = connection.info.get(_UNLIMITED, False)
        connection.info[_DEADLINE] = None if unlimited else clock.monotonic() + seconds

    @event.listens_for(engine, "checkin")
    def forget(_connection: Any, record: Any) -> None:
        # Reset it before the connection returns to the pool: the next request must not be unlimited.
        record.info.pop(_UNLIMITED, None)
        record.info.pop(_DEADLINE, None)


_SERVER = text("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")


class SessionClock:
    """The database's clock for many threads: each transaction reads it first, without a connection of its own."""

    def __init__(self, base: Clock) -> None:
        self.base = base
        """The clock of this machine."""
        self._read: tuple[datetime, float] = (base.now(), base.monotonic())

    def look(self, session: Session) -> datetime:
        at = _database_time(session, self.base)
        self._read = (at, self.base.monotonic())
        return at

    def now(self) -> datetime:
        """Return the last reading plus the time elapsed since, aware and in UTC."""
        at, mark = self._read
        return at + timedelta(seconds=self.base.monotonic() - mark)

    def monotonic(self) -> float:
        return self.base.monotonic()


def machine_clock(clock: Clock) -> Clock:
    """Return the machine's clock, which file timestamps use; do not compare those with the database's clock."""
    return clock.base if isinstance(clock, DatabaseClock | SessionClock) else clock


def server_clock(clock: Clock) -> Clock:
    """Replace the machine's clock by the clock of the database server; return any other clock unchanged."""
    return SessionClock(clock) if isinstance(clock, SystemClock) else clock


def moment_in(session: Session, clock: Clock) -> datetime:
    """Return the server's time at this step of a transaction, not a stored reading.

    Read after a row was locked, it is never earlier than the time that the row's previous transaction read, in any
    process. A clock that does not represent the database's (a test's) is read as it is.
    """
    if isinstance(clock, SessionClock):
        return clock.look(session)
    return _database_time(session, clock.base) if isinstance(clock, DatabaseClock) else clock.now()


def _database_time(session: Session, machine: Clock) -> datetime:
    if session.get_bind().dialect.name == "postgresql":
        return from_micros(int(session.execute(_SERVER).scalar_one()))
    connection = session.connection()
    return from_micros(boot_micros(lambda query, values: connection.exec_driver_sql(query, values).all(), machine))


def insert_into(session: Session, model: type[Model]) -> Any:
    """Return an insert that supports `on_conflict_do_nothing` and `on_conflict_do_update`."""
    if session.get_bind().dialect.name == "postgresql":
        return postgresql.insert(model)
    return sqlite.insert(model)
