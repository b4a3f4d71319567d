"""The two ways to a PostgreSQL server share one set of limits: nothing waits for ever, no sleeper keeps a lock."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from sqlalchemy import text

from holdfast.db import connect
from holdfast.db.engine import Database
from holdfast.db.postgres import PostgresRawDatabase
from holdfast.errors import Unavailable
from tests import patience

pytestmark = pytest.mark.postgres
_LIMITS = "SELECT current_setting('statement_timeout'), current_setting('idle_in_transaction_session_timeout')"
_PROBES = ("connect_timeout", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout")


@contextmanager
def _database(url: str, statement_s: float | None) -> Iterator[Database]:
    with closing(Database(url, statement_s=statement_s)) as database:
        yield database


def test_both_ways_to_a_server_have_the_same_limits(postgres_url: str) -> None:
    with closing(Database(postgres_url)) as database, closing(connect(postgres_url)) as raw_db:
        with database.read() as session, raw_db.read() as tx:
            limits = tuple(session.execute(text(_LIMITS)).one()), tx.execute(_LIMITS)[0]
            line = session.connection().connection.dbapi_connection
        assert isinstance(raw_db, PostgresRawDatabase)
        probes = [one.info.get_parameters() for one in (line, raw_db._connection)]  # type: ignore[union-attr]

    assert limits == (("30s", "30s"), ("30s", "30s"))
    assert [[given.get(name) for name in _PROBES] for given in probes] == [["5", "5", "2", "3", "30000"]] * 2


def test_a_statement_that_takes_too_long_is_ended(postgres_url: str) -> None:
    with _database(postgres_url, 0.2) as database:
        with pytest.raises(Unavailable, match="statement timeout"), database.read() as session:
            session.execute(text("SELECT pg_sleep(60)"))
        with database.read() as session:
            assert session.scalar(text("SELECT 1")) == 1


def test_a_transaction_whose_process_stands_still_lets_go_of_its_locks(postgres_url: str) -> None:
    with _database(postgres_url, 0.2) as database, _database(postgres_url, 10.0) as other:
        with database.write() as session:
            session.execute(text("CREATE TABLE things AS SELECT 1 AS id"))

        def fall_asleep() -> None:
            with database.write() as session:
                session.execute(text("SELECT id FROM things FOR UPDATE"))
                asleep.set()
                awake.wait(patience.deadline(30))
                session.execute(text("UPDATE things SET id = 2"))

        def sleep() -> None:
            with pytest.raises(Unavailable):
                fall_asleep()

        asleep, awake = threading.Event(), threading.Event()
        sleeper = threading.Thread(target=sleep, name="asleep")
        sleeper.start()
        assert asleep.wait(patience.deadline(30))
        with other.write() as session:
            session.execute(text("UPDATE things SET id = 3"))
        awake.set()
        sleeper.join(patience.deadline(30))
        with other.read() as session:
            assert session.scalar(text("SELECT id FROM things")) == 3
