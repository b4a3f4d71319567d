"""What contract suites stand on: an empty database of each kind with the schema in it, made once, emptied quickly."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from holdfast.db.migrate import upgrade
from tests.clock import FakeClock
from tests.contract.frontier_bed import Bed, open_bed
from tests.postgres import Postgres


@pytest.fixture(scope="session")
def _sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "holdfast.db"
    upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture(scope="session")
def _postgres_database(postgres: Postgres) -> str:
    url = postgres.fresh()
    upgrade(url)
    return url


@pytest.fixture
def migrated_sqlite(_sqlite_template: Path, tmp_path: Path) -> str:
    """A SQLite database of this test alone, with the schema and no rows."""
    path = tmp_path / "holdfast.db"
    shutil.copy(_sqlite_template, path)
    return f"sqlite:///{path}"


@pytest.fixture
def migrated_postgres(_postgres_database: str) -> str:
    """A PostgreSQL database with the schema and no rows; emptied for each test, which takes less than making one."""
    with psycopg.connect(_postgres_database, autocommit=True) as connection:
        names = connection.execute(
            "SELECT string_agg(quote_ident(tablename), ', ') FROM pg_tables"
            " WHERE schemaname = 'public' AND tablename <> 'alembic_version'"
        ).fetchone()
        assert names is not None
        connection.execute(f"TRUNCATE {names[0]} RESTART IDENTITY CASCADE".encode())
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
