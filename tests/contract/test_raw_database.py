"""The raw connection: the same promises on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import text

from holdfast.clock import SystemClock, to_micros
from holdfast.db import connect
from holdfast.db.engine import Database
from holdfast.db.migrate import compare
from holdfast.db.raw import DatabaseDamaged, RawDatabase, SqliteRawDatabase, sqlite_path
from holdfast.errors import NoSpace, Unavailable
from tests.damage import damage


@pytest.fixture
def raw_db(migrated_url: str) -> Iterator[RawDatabase]:
    """A connection with a table to play with."""
    opened = connect(migrated_url)
    with opened.write() as tx:
        tx.execute("CREATE TEMPORARY TABLE things (id BIGINT PRIMARY KEY, name TEXT, weight DOUBLE PRECISION)")
    yield opened
    opened.close()


def _things(raw_db: RawDatabase) -> list[tuple[object, ...]]:
    with raw_db.read() as tx:
        return tx.execute("SELECT id, name, weight FROM things ORDER BY id")


@pytest.mark.parametrize("count", [0, 1, 49, 50, 51, 230])
def test_rows_are_loaded_in_bulk_whatever_their_number(raw_db: RawDatabase, count: int) -> None:
    rows = [(number, None if number % 3 else "tab\t, line\n, back\\slash, é", number / 2) for number in range(count)]

    with raw_db.write() as tx:
        tx.load("things", ("id", "name", "weight"), rows)

    assert _things(raw_db) == rows


def test_a_failed_transaction_is_undone(raw_db: RawDatabase) -> None:
    def half_way() -> None:
        with raw_db.write() as tx:
            tx.execute("INSERT INTO things (id) VALUES (?)", (1,))
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError):
        half_way()

    assert _things(raw_db) == []
    with raw_db.write() as tx:
        tx.many("INSERT INTO things (id) VALUES (?)", [(1,), (2,)])
    assert len(_things(raw_db)) == 2


def test_a_percent_sign_is_only_a_percent_sign(raw_db: RawDatabase) -> None:
    with raw_db.read() as tx:
        assert tx.execute("SELECT 7 % 4") == [(3,)]
        assert tx.execute("SELECT 1 WHERE 'abc' LIKE ? AND 7 % 4 = 3", ("a%",)) == [(1,)]


def test_a_full_disk_has_a_name_of_its_own(migrated_sqlite: str) -> None:
    path = sqlite_path(migrated_sqlite)
    assert path is not None
    raw_db = SqliteRawDatabase(path)
    with raw_db.read() as tx:
        pages = tx.execute("PRAGMA page_count")[0][0]
        tx.execute(f"PRAGMA max_page_count = {pages + 5}")

    with pytest.raises(NoSpace), raw_db.write() as tx:
        tx.many("INSERT INTO domains (name, created_at) VALUES (?, 0)", [("x" * 3000 + str(n),) for n in range(100)])

    with raw_db.write() as tx:
        tx.execute("INSERT INTO domains (name, created_at) VALUES ('small', 0)")
    raw_db.close()


def test_a_damaged_file_is_told_as_damage_on_every_way_to_it(migrated_sqlite: str) -> None:
    path = sqlite_path(migrated_sqlite)
    assert path is not None
    damage(path, "domains", "jobs")
    raw_db, database = SqliteRawDatabase(path), Database(migrated_sqlite)

    with pytest.raises(DatabaseDamaged, match="is damaged"), raw_db.read() as tx:
        tx.execute("SELECT * FROM domains")
    with pytest.raises(DatabaseDamaged, match="is damaged"), database.read() as session:
        session.execute(text("SELECT * FROM jobs"))
    with pytest.raises(DatabaseDamaged, match="is damaged"):
        compare(migrated_sqlite)
    with raw_db.read() as tx:
        assert tx.execute("SELECT * FROM sources") == [], "what is whole still answers"
    raw_db.close()
    database.close()


def test_what_is_no_database_is_damage_too(tmp_path: Path) -> None:
    path = tmp_path / "holdfast.db"
    path.write_bytes(b"not a database at all" * 1000)

    with pytest.raises(DatabaseDamaged, match="not a database"):
        SqliteRawDatabase(path)


def test_a_busy_database_is_unavailable_for_now(migrated_sqlite: str) -> None:
    path = sqlite_path(migrated_sqlite)
    assert path is not None
    one, other = SqliteRawDatabase(path), SqliteRawDatabase(path, busy_timeout_s=0.01)

    with one.write(), pytest.raises(Unavailable), other.write():
        pass

    with other.write() as tx:
        tx.execute("INSERT INTO domains (name, created_at) VALUES ('after', 0)")
    one.close()
    other.close()


def test_a_lost_connection_is_opened_anew_and_counted(migrated_postgres: str) -> None:
    raw_db = connect(migrated_postgres)
    before = raw_db.generation
    with psycopg.connect(migrated_postgres, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )

    with pytest.raises(Unavailable), raw_db.read() as tx:
        tx.execute("SELECT 1")
    with raw_db.read() as tx:
        assert tx.execute("SELECT 1") == [(1,)]

    assert raw_db.generation == before + 1
    raw_db.close()


def test_raw_database_tells_its_time(migrated_url: str) -> None:
    machine = SystemClock()
    raw_db = connect(migrated_url)
    now = raw_db.now_micros(machine)
    raw_db.close()

    assert abs(now - to_micros(machine.now())) < 5_000_000
