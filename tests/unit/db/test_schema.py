"""The schema that a fresh file gets is the one that the migrations make."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text

from holdfast.db import connect, schema
from holdfast.db.engine import Database
from holdfast.db.migrate import upgrade


def _lines(script: str) -> list[str]:
    """Return what a script says; a table that SQLite had to copy lists its constraints in any order."""
    return sorted(line.strip().rstrip(",; ") for line in script.splitlines())


def test_a_fresh_file_has_the_schema_that_the_migrations_make(tmp_path: Path) -> None:
    upgrade(f"sqlite:///{tmp_path / 'migrated.db'}")

    assert _lines(schema.dump(tmp_path / "migrated.db")) == _lines(schema.FRESH.read_text())
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
