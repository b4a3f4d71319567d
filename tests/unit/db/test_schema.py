"""The schema that a fresh file gets is the one that the migrations make."""

from __future__ import annotations

from pathlib import Path

from holdfast.db import schema
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
