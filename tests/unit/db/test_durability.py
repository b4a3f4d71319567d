"""What is committed is on disk: every connection to SQLite asks for it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text

from holdfast.db import connect
from holdfast.db.engine import Database
from holdfast.db.schema import make_fresh
from holdfast.errors import Unavailable

_FULL = 2


def test_every_connection_to_sqlite_syncs_each_commit_and_writes_ahead(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'holdfast.db'}"
    make_fresh(url)
    with closing(connect(url)) as raw_db, raw_db.write() as tx:
        assert tx.execute("PRAGMA synchronous") == [(_FULL,)]
        assert tx.execute("PRAGMA journal_mode") == [("wal",)]
    database = Database(url)
    for _ in range(2):
        with database.engine.connect() as connection:
            assert connection.execute(text("PRAGMA synchronous")).scalar_one() == _FULL
    database.close()


def test_a_data_directory_that_is_not_there_is_told_as_that_and_not_as_read_only(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'gone' / 'holdfast.db'}"
    with pytest.raises(Unavailable, match="there is no folder"), closing(connect(url)) as raw_db, raw_db.read() as tx:
        tx.execute("SELECT 1")
    with (
        pytest.raises(Unavailable, match="there is no folder"),
        closing(Database(url)) as database,
        database.read() as session,
    ):
        session.execute(text("SELECT 1"))
