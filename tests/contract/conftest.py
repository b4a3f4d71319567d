"""What contract suites stand on: an empty database of each kind with the schema in it, made once, emptied quickly."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from holdfast.db.migrate import upgrade
from tests.api_bed import Server, serving
from tests.clock import FakeClock
from tests.contract.frontier_bed import Bed, open_bed
from tests.postgres import Postgres

_USED = """
SELECT quote_ident(relname), pg_relation_size(oid) > 65536 OR pg_indexes_size(oid) > 1048576 OR reltuples >= 0
FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname <> 'alembic_version'
  AND (reltuples >= 0 OR pg_relation_size(oid) > 0)
"""
"""The tables that a test left rows or statistics in, and which of them are to be new: those with many rows, or with
statistics. To truncate a table and its indexes takes the server 9 ms, and one that others refer to 50 ms; to delete a
few rows takes next to nothing. The planner takes a table of up to ten pages, with dead rows or not, for an unknown one.
"""
_NUMBERS = """
SELECT setval(seqrelid::regclass, seqstart, false) FROM pg_sequence WHERE pg_sequence_last_value(seqrelid) IS NOT NULL
"""


@pytest.fixture(scope="session")
def _sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "holdfast.db"
    upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture(scope="session")
def _postgres_database(postgres: Postgres) -> str:
    return postgres.fresh()


@pytest.fixture
def migrated_sqlite(_sqlite_template: Path, tmp_path: Path) -> str:
    """A SQLite database of this test alone, with the schema and no rows."""
    path = tmp_path / "holdfast.db"
    shutil.copy(_sqlite_template, path)
    return f"sqlite:///{path}"


@pytest.fixture
def migrated_postgres(_postgres_database: str) -> str:
    """A PostgreSQL database with the schema and no rows; emptied for each test, which takes less than making one."""
    with psycopg.connect(_postgres_database) as connection:
        used = connection.execute(_USED).fetchall()
        # Rows may go in any order, and what others refer to as well.
        connection.execute("SET LOCAL session_replication_role = replica")
        for name, _ in (one for one in used if not one[1]):
            connection.execute(f"DELETE FROM {name}".encode())
        if renewed := ", ".join(name for name, is_renewed in used if is_renewed):
            connection.execute(f"TRUNCATE {renewed} CASCADE".encode())
        connection.execute(_NUMBERS)
    return _postgres_database


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def migrated_url(request: pytest.FixtureRequest) -> str:
    """An empty database with the schema, of each kind: a test that asks for it runs on both."""
    url: str = request.getfixturevalue(f"migrated_{request.param}")
    return url


@pytest.fixture
def bed(migrated_url: str, clock: FakeClock) -> Iterator[Bed]:
    """A frontier on each kind of database; the tables are audited after the test."""
    with open_bed(migrated_url, clock) as opened:
        yield opened


@pytest.fixture(scope="session")
def _sqlite_servers(_sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Server]]:
    home = tmp_path_factory.mktemp("served")
    shutil.copy(_sqlite_template, home / "holdfast.db")
    with serving(f"sqlite:///{home / 'holdfast.db'}", FakeClock(), home, servers=2) as servers:
        yield servers


@pytest.fixture(scope="session")
def _postgres_servers(_postgres_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Server]]:
    with serving(_postgres_database, FakeClock(), tmp_path_factory.mktemp("served"), servers=2) as servers:
        yield servers


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def servers(request: pytest.FixtureRequest) -> list[Server]:
    """Two servers on one empty database, of each kind. They are made once; what they remember is forgotten."""
    made: list[Server] = request.getfixturevalue(f"_{request.param}_servers")
    if request.param == "postgres":
        request.getfixturevalue("migrated_postgres")
    else:
        _empty(made[0].bed.home / "holdfast.db")
    # The numbers of files begin anew with the rows.
    shutil.rmtree(made[0].bed.home / "warcs", ignore_errors=True)
    # Tests before this one may have let hours pass.
    made[0].clock.shift_wall((FakeClock().now() - made[0].clock.now()).total_seconds())
    for server in made:
        server.forget()
    return made


def _empty(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
        for (name,) in names.fetchall():
            if name != "alembic_version":
                connection.execute(f"DELETE FROM {name}")


@pytest.fixture
def server(servers: list[Server]) -> Server:
    """One server on an empty database, of each kind."""
    return servers[0]


@pytest.fixture(scope="session")
def one_source(_sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server on SQLite with one source in it, for what is refused: no test may change that."""
    home = tmp_path_factory.mktemp("refusing")
    shutil.copy(_sqlite_template, home / "holdfast.db")
    with serving(f"sqlite:///{home / 'holdfast.db'}", FakeClock(), home) as (server,):
        server.source()
        yield server
