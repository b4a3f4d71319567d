"""A connection to PostgreSQL that is lost among many rows: the next transaction has a new one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from holdfast.db.postgres import PostgresRawDatabase
from holdfast.errors import Unavailable


@pytest.mark.postgres
@pytest.mark.parametrize("after", [0, 1, 50, 199])
def test_a_connection_that_is_lost_among_many_rows_is_opened_anew(postgres_url: str, after: int) -> None:
    with (
        closing(PostgresRawDatabase(postgres_url)) as database,
        psycopg.connect(postgres_url, autocommit=True) as other,
    ):
        with database.write() as tx:
            tx.execute("CREATE TABLE lines (n BIGINT)")
            [(pid,)] = tx.execute("SELECT pg_backend_pid()")

        def rows() -> Iterator[tuple[int]]:
            for n in range(200):
                if n == after:
                    other.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
                yield (n,)

        with pytest.raises(Unavailable), database.write() as tx:
            tx.many("INSERT INTO lines VALUES (?)", rows())

        with database.write() as tx:
            tx.many("INSERT INTO lines VALUES (?)", [(1,), (2,)])
        with database.read() as tx:
            assert tx.execute("SELECT count(*) FROM lines") == [(2,)]
        assert database.generation == 2


@pytest.mark.postgres
def test_a_connection_that_was_left_in_the_middle_of_many_rows_is_opened_anew(postgres_url: str) -> None:
    with closing(PostgresRawDatabase(postgres_url)) as database:
        database._connection.pgconn.enter_pipeline_mode()

        with database.read() as tx:
            assert tx.execute("SELECT 1") == [(1,)]
        assert database.generation == 2
