"""The commands of changes and exports, as people type them."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.archive import Shot, build_archive
from tests.contract.changes_bed import page
from tests.flow.commands import Terminal
from tests.flow.wacz_stage import shots
from tests.site import Site
from tests.typed import Typist


class Ended(NamedTuple):
    """How a command ended, and what it said."""

    returncode: int
    stdout: str
    stderr: str


Typing = Callable[..., Ended]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two crawls of a small site."""
    folder = tmp_path_factory.mktemp("commands") / "home"
    build_archive(folder, shots()).database.close()
    return folder


@pytest.fixture
def typing(home: Path, capsys: pytest.CaptureFixture[str]) -> Typing:
    """Type commands at that archive, in this process: starting one takes longer than what it does."""

    typist = Typist(home, capsys)
    return lambda name, *arguments: Ended(*typist(name, *arguments))


def test_what_changed_from_the_first_look_to_the_words(typing: Typing) -> None:
    counted = typing("compute-changes", "--dry-run", "--json")
    assert json.loads(counted.stdout)["types"] == {"new_page": 3, "updated": 1, "unchanged": 2}
    nothing = typing("changes", "list")
    assert "compute-changes" in nothing.stdout

    done = typing("compute-changes", "--source", "example")
    assert done.stdout == "6 captures compared, 6 events: 3 new page, 2 unchanged, 1 updated\n"

    found = json.loads(typing("changes", "list", "--json").stdout)
    assert (found["total"], found["changes"][0]["type"]) == (1, "updated")
    later = str(found["changes"][0]["to_snapshot_id"])
    shown = typing("changes", "compare", later)
    assert shown.returncode == 0
    assert "\n-welcome\n+welcome back\n" in shown.stdout
    parts = json.loads(typing("changes", "compare", later, "--json").stdout)["diff"]["hunks"][0]["lines"]
    assert {
        "type": "added",
        "parts": [{"type": "same", "text": "welcome"}, {"type": "added", "text": " back"}],
    } in parts


def test_two_crawls_as_lines_and_as_json(typing: Typing) -> None:
    plain = typing("changes", "site", "1", "2")
    assert plain.stdout.splitlines() == [
        "changed    https://example.org/", "0 new, 0 gone, 1 changed, 2 unchanged, 0 moved, 0 error, 0 withdrawn",
    ]  # fmt: skip
    lines = [
        json.loads(line) for line in typing("changes", "site", "1", "2", "--json", "--unchanged").stdout.splitlines()
    ]
    assert [line.get("kind") for line in lines] == ["changed", "unchanged", "unchanged", None]
    assert lines[-1]["counts"]["unchanged"] == 2


def test_exports_as_files_and_as_streams(typing: Typing, tmp_path: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(typing("export", "snapshots", "--format", "csv", "--limit", "2").stdout)))
    assert [row["captured_url"] for row in rows] == ["https://example.org/", "https://example.org/a"]

    index = typing("export", "cdxj", "2", "-o", str(tmp_path / "index.cdxj"))
    assert (index.returncode, index.stdout) == (0, "")
    lines = (tmp_path / "index.cdxj").read_bytes().splitlines()
    assert (len(lines), lines) == (4, sorted(lines))
    size = (tmp_path / "index.cdxj").stat().st_size
    assert index.stderr == f"{tmp_path}/index.cdxj: 4 rows, {size:,} bytes\n"

    package = typing("export", "wacz", "2", "-o", str(tmp_path / "two.wacz"))
    assert package.returncode == 0
    with zipfile.ZipFile(tmp_path / "two.wacz") as found:
        assert found.testzip() is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index.cdxj", "two.wacz"], "no half-written file stays"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("compute-changes", "--source", "nobody"), 1), (("changes", "compare", "1"), 1),
        (("changes", "site", "1", "1"), 1), (("export", "wacz", "99"), 1), (("export", "cdxj"), 2),
        (("export", "snapshots", "--format", "xml"), 2), (("export", "snapshots", "--from", "soon"), 2),
        (("compute-changes", "--max-events", "0"), 2),
    ],
)  # fmt: skip
def test_mistakes_have_their_exit_code_and_a_sentence(typing: Typing, arguments: tuple[str, ...], code: int) -> None:
    ended = typing(*arguments)

    assert ended.returncode == code
    assert ended.stderr
    assert "Traceback" not in ended.stderr


def test_live_commands_compare_fetch_and_queue(site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site.serve("/tides", page("The pier is closed"))
    url = site.url(0, "/tides")
    build_archive(tmp_path, [Shot(url=url, body=page("The pier is open"))]).database.close()
    terminal = Terminal(tmp_path, capsys)
    polite = ("--allow-network", "127.0.0.0/8", "--contact", "t@example.org")

    compared = terminal.type("compare-live", url, *polite)
    fetched = terminal.type("fetch", url, *polite, "--json")
    unknown = terminal.type("live", "compare", "https://example.org/none", *polite)

    assert compared.code == 0, compared
    assert "-The pier is open" in compared.out
    assert "+The pier is closed" in compared.out
    assert fetched.object["title"] == "Tides"
    assert (unknown.code, "holdfast live fetch" in unknown.err) == (1, True)
    assert [one.path for one in site.log()] == ["/robots.txt", "/tides"] * 2
