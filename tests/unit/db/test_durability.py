"""What is committed is on disk: every connection to SQLite asks for it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from sqlalchemy import text

from holdfast.db.connect import connect
from holdfast.db.engine import Database
from holdfast.db.schema import make_fresh

_FULL = 2


def test_every_connection_to_sqlite_syncs_each_commit_and_writes_ahead(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'holdfast.db'}"
    make_fresh(url)
    with closing(connect(url)) as hot, hot.write() as tx:
        assert tx.execute("PRAGMA synchronous") == [(_FULL,)]
        assert tx.execute("PRAGMA journal_mode") == [("wal",)]
    database = Database(url)
    for _ in range(2):
        with database.engine.connect() as connection:
            assert connection.execute(text("PRAGMA synchronous")).scalar_one() == _FULL
    database.close()
