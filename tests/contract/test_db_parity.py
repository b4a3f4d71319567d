"""Whether a database is what this code expects, on both kinds."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text

from holdfast.db.engine import Database
from holdfast.db.migrate import migrations, upgrade
from holdfast.db.parity import compare
from holdfast.db.schema import SCHEMA
from holdfast.errors import Invalid, Unavailable


def test_a_migrated_database_is_whole(migrated_url: str) -> None:
    found = compare(migrated_url)

    assert (found.schema, found.missing, found.is_whole) == (SCHEMA, (), True)
    assert found.dialect in migrated_url
    assert found.version[0].isdigit()


def test_what_is_missing_is_named(database_url: str) -> None:
    upgrade(database_url)
    with closing(Database(database_url)) as database, database.engine.begin() as connection:
        connection.execute(text("DROP TABLE recoveries"))
        connection.execute(text("ALTER TABLE holds RENAME COLUMN owner TO holder"))

    found = compare(database_url)

    assert (sorted(found.missing), found.is_whole) == (["holds.owner", "recoveries"], False)


def test_a_database_that_is_not_there_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="holdfast migrate --apply"):
        compare(f"sqlite:///{tmp_path / 'none.db'}")
    assert not (tmp_path / "none.db").exists()
    with pytest.raises(Unavailable, match="cannot reach PostgreSQL"):
        compare("postgresql://nobody@127.0.0.1:1/none?connect_timeout=1")
    with pytest.raises(Invalid, match="mysql"):
        compare("mysql://nobody@127.0.0.1/none")


def test_migrations_are_listed_in_their_order() -> None:
    found = migrations()

    assert [one.revision for one in found] == sorted(one.revision for one in found)
    assert found[-1].revision == SCHEMA
    assert all(one.title for one in found)
