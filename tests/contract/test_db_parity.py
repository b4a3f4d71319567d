"""Whether a database is what this code expects, on both kinds."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text

from holdfast.db.engine import Database
from holdfast.db.migrate import compare, downgrade, migrations, upgrade
from holdfast.db.schema import SCHEMA, schema_of
from holdfast.errors import Conflict, Invalid, Unavailable
from tests.old_schemas import add_migration, contents, insert_rows, make_old


def test_a_migrated_database_is_whole(migrated_url: str) -> None:
    found = compare(migrated_url)

    assert (found.schema, found.missing, found.is_whole) == (SCHEMA, (), True)
    assert found.dialect in migrated_url
    assert found.version[0].isdigit()


def test_what_is_missing_is_named(bare_url: str) -> None:
    upgrade(bare_url)
    with closing(Database(bare_url)) as database, database.engine.begin() as connection:
        connection.execute(text("DROP TABLE recoveries"))
        connection.execute(text("ALTER TABLE holds RENAME COLUMN owner TO holder"))

    found = compare(bare_url)

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

    assert found == sorted(found)
    assert found[-1][0] == SCHEMA
    assert all(title for _, title in found)


def test_later_migration_runs_on_old_databases_and_is_undone(
    bare_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upgrade(bare_url)
    rows = {"code": "a", "name": "a", "enabled": True, "config": {}, "created_at": 1, "updated_at": 1}
    insert_rows(bare_url, {"sources": [rows]})
    monkeypatch.setattr("holdfast.db.migrate.MIGRATIONS", add_migration(tmp_path, head=SCHEMA))

    upgrade(bare_url)
    [row] = contents(bare_url)["sources"]
    assert (schema_of(bare_url), row["name"], "motto" in row) == ("9001", "A", True)
    downgrade(bare_url, SCHEMA)
    [row] = contents(bare_url)["sources"]
    assert (schema_of(bare_url), row["name"], "motto" in row) == (SCHEMA, "A", False)
    with pytest.raises(Conflict, match="restore a backup"):
        downgrade(bare_url, "base")
    assert compare(bare_url).is_whole


def test_later_migration_converts_rows_of_older_schemas(
    bare_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_old(bare_url, "0003")
    rows = {"code": "a", "name": "a", "enabled": True, "config": {}, "created_at": 1, "updated_at": 1}
    insert_rows(bare_url, {"sources": [rows]})
    monkeypatch.setattr("holdfast.db.migrate.MIGRATIONS", add_migration(tmp_path, head=SCHEMA))
    upgrade(bare_url)

    assert (schema_of(bare_url), contents(bare_url)["sources"][0]["name"]) == ("9001", "A")
