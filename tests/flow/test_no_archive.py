"""A mistyped data directory: commands that read refuse it and leave nothing behind; those that write make it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.flow.crawler import Crawler


@pytest.mark.parametrize(
    "line",
    ["status", "search flu", "list-jobs", "job show 1", "snapshot show 1", "export wacz 1", "search-index status"],
)
def test_reading_command_refuses_a_directory_without_an_archive(tmp_path: Path, line: str) -> None:
    home = tmp_path / "mistyped"

    ended = Crawler(home).run(*line.split())

    assert (ended.returncode, ended.stdout) == (1, "")
    assert f"there is no archive in {home}; choose another directory with --home" in ended.stderr
    assert f"holdfast crawl URL --home {home}" in ended.stderr
    assert not home.exists()


def test_reading_command_writes_no_database_into_another_directory(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("Dear reader")

    assert Crawler(tmp_path).run("status").returncode == 1
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


@pytest.mark.parametrize("line", ["source create ex --seed https://example.org/", "seed-sources", "migrate up"])
def test_first_command_of_an_archive_makes_its_directory(tmp_path: Path, line: str) -> None:
    crawler = Crawler(tmp_path / "home")

    assert crawler.run(*line.split()).returncode == 0
    assert crawler.run("status").returncode == 0
