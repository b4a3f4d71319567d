"""The throw-away PostgreSQL cluster that the other tests stand on."""

from __future__ import annotations

import psycopg

from tests.postgres import Postgres


def test_each_test_gets_a_database_of_its_own(postgres: Postgres, postgres_url: str) -> None:
    other = postgres.fresh()
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE only_here (id int)")

    with psycopg.connect(other) as connection:
        found = connection.execute("SELECT to_regclass('only_here')").fetchone()

    assert found == (None,)


def test_the_server_has_written_what_it_commits(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SHOW synchronous_commit").fetchone() == ("on",)


def test_a_killed_server_comes_back_with_what_was_committed(postgres: Postgres, postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE kept (id int)")
        connection.execute("INSERT INTO kept VALUES (1)")

    postgres.kill()
    postgres.start()

    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT id FROM kept").fetchall() == [(1,)]


def test_a_database_url_is_given_for_each_kind(database_url: str) -> None:
    assert database_url.startswith(("sqlite:///", "postgresql://holdfast@127.0.0.1:"))
