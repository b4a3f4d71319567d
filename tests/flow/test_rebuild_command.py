"""`holdfast index --rebuild` at an archive whose database is gone: everything is as it was."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.archive import BEGIN, Shot, build_archive
from tests.typed import Typist

SHOTS = [
    Shot(
        url=f"https://example.org/{number % 3}",
        body=f"<title>Page {number}</title><p>parrot {number}</p>",
        source=f"source-{number % 2}",
        execution=number,
        moment=BEGIN + timedelta(days=number),
    )
    for number in range(6)
]


def _shown(typed: Typist) -> list[tuple[Any, ...]]:
    """Return what a search shows of every capture."""
    found = typed("search parrot --page-size 100 --json").object["results"]
    return sorted((one["id"], one["originalUrl"], one["captureTimestamp"], one["sourceCode"]) for one in found)


def test_an_archive_without_its_database_is_made_anew_with_the_same_ids(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    build_archive(home, SHOTS).database.close()
    typed = Typist(home, capsys)
    before = _shown(typed)
    assert len(before) == len(SHOTS)

    for path in home.iterdir():
        if path.name != "warcs":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert typed("index --rebuild --json").object == {"known": 0, "lost": 6, "problems": [], "applied": False}
    assert typed("index --rebuild --apply").code == 0

    assert _shown(typed) == before
    assert [typed(f"snapshot show {row[0]}").code for row in before] == [0] * len(SHOTS)
