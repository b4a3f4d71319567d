"""A fresh file gets the schema of the models; so does one that is migrated."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text

from holdfast.config import Settings
from holdfast.db import connect, schema
from holdfast.db.engine import Database
from holdfast.db.migrate import upgrade
from holdfast.db.schema import prepare


def test_fresh_script_has_the_schema_of_the_models(tmp_path: Path) -> None:
    upgrade(f"sqlite:///{tmp_path / 'migrated.db'}")

    assert schema.dump(tmp_path / "migrated.db") == schema.FRESH.read_text(), "write it again with: make docs"
    assert schema.schema_of(f"sqlite:///{tmp_path / 'migrated.db'}") == schema.SCHEMA


def test_only_an_empty_file_is_made_anew(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'fresh.db'}"

    assert schema.make_fresh(url)
    assert not schema.make_fresh(url)
    assert schema.dump(tmp_path / "fresh.db") == schema.FRESH.read_text()


@pytest.mark.parametrize("opens", ["a command", "a reader", "sessions"])
def test_who_opens_a_new_file_while_another_begins_to_write_to_it_waits_for_that(tmp_path: Path, opens: str) -> None:
    url = f"sqlite:///{tmp_path / 'holdfast.db'}"
    other = sqlite3.connect(tmp_path / "holdfast.db", isolation_level=None, check_same_thread=False)
    other.execute("CREATE TABLE begun (at INTEGER)")
    # It keeps others from writing, not from reading: then SQLite does not wait, for fear that both wait for each other.
    other.execute("BEGIN IMMEDIATE")
    going_on = threading.Timer(0.2, lambda: other.execute("COMMIT"))
    going_on.start()
    if opens == "a command":
        schema.make_fresh(url)
    elif opens == "a reader":
        connect(url).close()
    else:
        with closing(Database(url)) as database, database.read() as session:
            session.execute(text("SELECT 1"))
    going_on.join()
    other.close()

    with closing(sqlite3.connect(tmp_path / "holdfast.db")) as found:
        assert found.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@pytest.fixture
def _no_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


@pytest.mark.usefixtures("_no_umask")
@pytest.mark.parametrize(
    ("made_before", "directory", "file"), [(None, 0o700, 0o600), (0o755, 0o700, 0o600), (0o2770, 0o2770, 0o660)]
)
def test_new_data_directory_is_private_unless_it_is_shared(
    tmp_path: Path, made_before: int | None, directory: int, file: int
) -> None:
    settings = Settings(home=tmp_path / "home")
    if made_before is not None:
        settings.home.mkdir()
        settings.home.chmod(made_before)
    prepare(settings)
    with closing(Database(settings.database)) as database, database.write() as session:
        session.execute(text("UPDATE alembic_version SET version_num = version_num"))
        modes = {path.name: _mode(path) for path in settings.home.glob("holdfast.db*")}

    assert _mode(settings.home) == directory
    assert modes == {name: file for name in ("holdfast.db", "holdfast.db-wal", "holdfast.db-shm")}
    assert schema.open_to_others(settings) is None


def test_data_directory_that_others_may_read_is_reported_and_kept(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home")
    prepare(settings)
    settings.home.chmod(0o755)
    prepare(settings)

    assert _mode(settings.home) == 0o755
    assert "chmod -R o-rwx" in str(schema.open_to_others(settings))
