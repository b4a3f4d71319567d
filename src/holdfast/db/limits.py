"""How long a statement of a serving process may take, on either database.

PostgreSQL ends a statement itself. SQLite runs in our own process and knows no time: it asks every few thousand steps
whether to go on.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from sqlalchemy import Connection, Engine, event, text
from sqlalchemy.orm import Session

from holdfast.clock import Clock, SystemClock

_STEPS = 20_000
"""Steps of SQLite's machine between two questions: about a millisecond."""
_DEADLINE = "statement_deadline"
_UNLIMITED = "statement_unlimited"


def limit_statements(engine: Engine, *, seconds: float, clock: Clock | None = None) -> None:
    """Let no statement of connections that are opened from now on take longer, nor a transaction stand idle for long.

    One that does ends as if the database did not answer. Close what is open first: `engine.dispose()`.
    """
    if engine.dialect.name == "postgresql":
        _limit_postgres(engine, seconds)
    else:
        _limit_sqlite(engine, seconds, clock or SystemClock())
    engine.dispose()


def take_time(session: Session) -> None:
    """Let the statements of this transaction run as long as they need: for work that no request waits for."""
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

        connection.set_progress_handler(is_late, _STEPS)

    @event.listens_for(engine, "before_cursor_execute")
    def begin(connection: Connection, *_: Any) -> None:
        unlimited = connection.info.get(_UNLIMITED, False)
        connection.info[_DEADLINE] = None if unlimited else clock.monotonic() + seconds

    @event.listens_for(engine, "checkin")
    def forget(_connection: Any, record: Any) -> None:
        record.info.pop(_UNLIMITED, None)
        record.info.pop(_DEADLINE, None)
