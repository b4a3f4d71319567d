"""An archive that may only be read: on a disc, a snapshot of a volume, or of another user. Reading goes on."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests import needs, patience
from tests.archive import Shot, build_archive
from tests.flow.crawler import FAST

_BARE = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search,-fowner")
"""Permissions hold for root, too, without these."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An archive with two captures, indexed and searched once; nothing in it can be written."""
    made = tmp_path_factory.mktemp("read-only") / "home"
    shots = [Shot(url=f"https://example.org/{number}", body=f"<p>parrot {number}</p>") for number in range(2)]
    with closing(build_archive(made, shots).database):
        assert _type(made, "search", "parrot", may_write=True).returncode == 0
    _lock(made)
    yield made
    _unlock(made)


def _lock(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)


def _unlock(folder: Path) -> None:
    folder.chmod(0o755)
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)


def _type(home: Path, *words: str, may_write: bool = False) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "holdfast.cli.main", *words, "--home", str(home)]
    is_root = os.geteuid() == 0
    if is_root and not may_write:
        needs.program(_BARE[0], package="util-linux")  # permissions do not hold for root
        command = [*_BARE, *command]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=patience.deadline(60), env={**environment, **FAST}
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("status", "no executions yet"),
        ("search parrot", "2 snapshots"),
        ("search-index status", "2"),
        ("snapshot show 4194305", "https://example.org/0"),
        ("snapshot cat 4194305", "parrot 0"),
        ("export snapshots", "https://example.org/1"),
        ("export cdxj 1", "org,example)/1"),
        ("source list", "example"),
        ("job list", "example"),
        ("warc list", "example-00001.warc.gz"),
        ("check-db", "ok"),
        ("archive rebuild-pages", "2 groups"),
    ],
)
def test_what_only_reads_goes_on(home: Path, line: str, said: str) -> None:
    ended = _type(home, *line.split())

    assert (ended.returncode, ended.stderr) == (0, "")
    if line != "status":
        assert said in ended.stdout


def test_a_package_is_put_together_elsewhere(home: Path, tmp_path: Path) -> None:
    ended = _type(home, "export", "wacz", "1", "--output", str(tmp_path / "site.wacz"))

    assert (ended.returncode, ended.stderr) == (0, "")
    assert (tmp_path / "site.wacz").stat().st_size > 1_000


@pytest.mark.parametrize(
    "line",
    [
        "source create ex --seed https://example.org/",
        "import {home}/warcs --source other",
        "index",
        "search-index rebuild",
        "snapshot hide 4194305 --reason why",
        "compute-changes",
        "crawl https://example.org/ --contact me@example.org",
        "seed-sources",
    ],
)
def test_what_would_write_names_the_place_and_the_next_step_in_one_line(home: Path, line: str) -> None:
    ended = _type(home, *line.format(home=home).split())

    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.count("\n") == 1
    assert str(home) in ended.stderr
    assert "with --home" in ended.stderr


def test_an_empty_folder_that_cannot_be_written_is_told_as_that(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o555)
    ended = _type(tmp_path / "home", "source", "seed")

    assert ended.returncode == 1
    assert ended.stderr.startswith(f"holdfast: there is no database in {tmp_path}/home, and none can be made")


def test_what_a_writer_left_in_the_log_is_read_or_its_absence_is_told(home: Path, tmp_path: Path) -> None:
    """A log belongs to the file: without its index it cannot be read, and nothing is shown as if it were not there."""
    copy = tmp_path / "home"
    shutil.copytree(home, copy)
    _unlock(copy)
    with closing(sqlite3.connect(copy / "holdfast.db")) as writer:
        writer.execute("UPDATE sources SET name = 'From the log'")
        writer.commit()
        _lock(copy)
        read = _type(copy, "source", "list", "--json")
        _unlock(copy)
        log = (copy / "holdfast.db-wal").read_bytes()
    assert [one["name"] for one in json.loads(read.stdout)["sources"]] == ["From the log"]

    (copy / "holdfast.db-wal").write_bytes(log)
    (copy / "holdfast.db-shm").unlink(missing_ok=True)
    _lock(copy)
    refused = _type(copy, "source", "list")
    _unlock(copy)

    assert refused.returncode == 1
    assert "its last changes are in holdfast.db-wal" in refused.stderr


_READER = """
import sys
from contextlib import closing
from pathlib import Path
from sqlalchemy import text
from holdfast.db.engine import Database
from holdfast.db.raw import DatabaseMoved, SqliteRawDatabase

def by_hot():
    with hot.read() as tx:
        return tx.execute("SELECT name FROM sources")[0][0]

def by_database():
    with database.read() as session:
        return session.scalar(text("SELECT name FROM sources"))

path = Path(sys.argv[1])
with closing(SqliteRawDatabase(path)) as hot, closing(Database(f"sqlite:///{path}")) as database:
    print(by_hot(), by_database(), sep="|", flush=True)
    sys.stdin.readline()
    for read in (by_hot, by_database):
        try:
            print(read(), flush=True)
        except DatabaseMoved as exc:
            print(exc.code, flush=True)
"""


@pytest.mark.parametrize("stays", [True, False], ids=["a writer at work", "a writer that has come and gone"])
def test_a_reader_without_locks_notices_that_the_file_is_written_by_its_next_transaction(
    home: Path, tmp_path: Path, stays: bool
) -> None:
    copy = tmp_path / "home"
    shutil.copytree(home, copy)
    database = copy / "holdfast.db"
    bare = _BARE if os.geteuid() == 0 else ()
    if bare:
        needs.program(bare[0], package="util-linux")  # permissions do not hold for root
    reader = subprocess.Popen([*bare, sys.executable, "-c", _READER, str(database)], text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip
    assert reader.stdin is not None
    assert reader.stdout is not None
    before = reader.stdout.readline().strip()
    _unlock(copy)
    with closing(sqlite3.connect(database)) as writer:
        writer.execute("UPDATE sources SET name = 'Written meanwhile'")
        writer.commit()
        if not stays:
            writer.close()
        said, _ = reader.communicate("go on\n", timeout=patience.deadline(60))

    assert before.split("|")[0] == before.split("|")[1] != "Written meanwhile"
    assert said.split() == ["database_moved", "database_moved"]
