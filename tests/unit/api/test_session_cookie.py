from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import config
from holdfast.api.session_cookie import cookie_name


def _name(home: Path, database: str | None = None) -> str:
    return cookie_name(config.load(home=home, database_url=database))


def test_two_data_directories_with_sqlite_have_two_cookies(tmp_path: Path) -> None:
    assert _name(tmp_path / "one") != _name(tmp_path / "two")
    assert _name(tmp_path / "one") == _name(tmp_path / "one")


@pytest.mark.parametrize("other", ["postgresql://ada:secret@db.example:5433/town", "postgresql://127.0.0.1/town"])
def test_servers_of_one_postgresql_database_share_the_cookie(tmp_path: Path, other: str) -> None:
    assert _name(tmp_path / "one", "postgresql://db/town") == _name(tmp_path / "two", other)
    assert _name(tmp_path / "one", "postgresql://db/town") != _name(tmp_path / "one", "postgresql://db/village")
