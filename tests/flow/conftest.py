"""What flow tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import forked
from tests.flow.crawler import Crawler


@pytest.fixture(scope="session")
def commands() -> None:
    """Commands can be forked: what is timed does not begin with loading them all."""
    forked.begin()


@pytest.fixture
def crawler(tmp_path: Path, commands: None) -> Crawler:
    """A data directory on SQLite and the commands that work on it."""
    return Crawler(tmp_path / "home")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def any_crawler(request: pytest.FixtureRequest, tmp_path: Path, commands: None) -> Crawler:
    """The same on each kind of database."""
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else None
    return Crawler(tmp_path / "home", database_url=url)
