"""Indexing killed at any step, run again, and run twice at once (F36, and the index step of F03)."""

from __future__ import annotations

import json
import signal
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fastwarc.warc import ArchiveIterator

from holdfast.db import connect
from holdfast.warc.manifest import read_manifest
from holdfast.warc.record import ORDINALS
from tests import forked, patience
from tests.archive import Shot, build_archive, days_later
from tests.flow.crawler import Crawler

# Where a reader dies, and after how many passes; each file below has three batches.
KILLS = (
    "index_batch:kill", "index_committed:kill", "index_batch:kill:1", "index_committed:kill:1", "index_batch:kill:2",
    "index_committed:kill:2", "index_resolving:kill", "index_finishing:kill", "index_batch:kill:4",
    "index_finishing:kill:1",
)  # fmt: skip
COUNT = 520


def _shots(execution: int, source: str = "example") -> list[Shot]:
    shots = [
        Shot(url=f"https://{source}.org/{n % 400}", body=f"<title>{n % 50}</title><p>Body {n % 50}</p>",
             moment=days_later(n / 400), execution=execution, source=source)
        for n in range(COUNT)
    ]  # fmt: skip
    again = Shot(url=shots[0].url, same_as=shots[0].url, moment=days_later(9), execution=execution, source=source)
    return [*shots, again]


def _build(home: Path, shots: list[Shot], *, index: bool) -> None:
    build_archive(home, shots, index=index).database.close()


def _rows(home: Path, statement: str) -> list[tuple[Any, ...]]:
    with closing(connect(f"sqlite:///{(home / 'holdfast.db').resolve()}")) as raw_db, raw_db.read() as tx:
        return tx.execute(statement)


def _facts(home: Path) -> list[tuple[Any, ...]]:
    """Return everything that must not depend on how often the index died."""
    return _rows(
        home,
        "SELECT s.id, s.url, s.captured_at, s.status, d.body_hash, s.body_hash, s.canonical_id, s.original_id, g.url,"
        " g.snapshot_count, g.first_captured_at, g.last_captured_at, g.latest_id, g.latest_ok_id, s.compared"
        " FROM snapshots s LEFT JOIN documents d ON d.id = s.document_id LEFT JOIN page_groups g ON g.id = s.group_id"
        " ORDER BY s.id",
    )


def _in_files(home: Path) -> set[int]:
    """Return the ids that the files themselves give, by another reader."""
    ids = set()
    for file_id, path in _rows(home, "SELECT id, key FROM warc_files WHERE state = 'sealed'"):
        with (home / path).open("rb") as stream:
            for ordinal, record in enumerate(ArchiveIterator(stream, parse_http=False)):
                if record.headers["WARC-Type"] in ("response", "revisit", "resource"):
                    ids.add(file_id * ORDINALS + ordinal)
    return ids


def _told(home: Path) -> set[int]:
    """Return which snapshots the outbox mentions."""
    ranges = _rows(home, "SELECT first_id, last_id FROM search_outbox WHERE kind = 'snapshots'")
    ids = {row[0] for row in _rows(home, "SELECT id FROM snapshots")}
    return {one for one in ids if any(first <= one <= last for first, last in ranges)}


def test_an_index_that_is_killed_ten_times_ends_as_if_it_never_was(tmp_path: Path) -> None:
    shots = [*_shots(1), *_shots(2)]
    _build(tmp_path / "calm", shots, index=True)
    home = tmp_path / "home"
    _build(home, shots, index=False)
    crawler = Crawler(home)
    seen = set[int]()
    for place in KILLS:
        died = forked.run(
            crawler.command("index", "--json", "--no-search"), env={**crawler.variables, "HOLDFAST_FAILPOINT": place},
            capture_output=True, check=False, timeout=patience.deadline(60),
        )  # fmt: skip
        ids = {row[0] for row in _rows(home, "SELECT id FROM snapshots")}
        assert died.returncode in (-signal.SIGKILL, 0), died.stderr
        assert seen <= ids, "what was stored has disappeared"
        seen = ids

    done = crawler.run("index", "--json", "--no-search")

    assert done.returncode == 0, done.stderr
    assert _facts(home) == _facts(tmp_path / "calm")
    assert {row[0] for row in _rows(home, "SELECT id FROM snapshots")} == _in_files(home) == _told(home)
    documents = {row[0] for row in _rows(home, "SELECT id FROM documents")}
    told = [json.loads(row[0])["ids"] for row in _rows(home, "SELECT refs FROM search_outbox WHERE kind='documents'")]
    assert documents == {one for ids in told for one in ids}
    assert _rows(home, "SELECT DISTINCT index_state FROM warc_files") == [("indexed",)]
    crawler.run("search-index", "drain")
    found = json.loads(crawler.run("search", "body", "--json", "--view", "snapshots").stdout)
    assert (found["total"] > 0, _told(home)) == (True, set())


@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_indexers_that_run_at_once_share_the_files_and_repeat_nothing(
    tmp_path: Path, database: str, request: pytest.FixtureRequest
) -> None:
    url: str | None = request.getfixturevalue("postgres_url") if database == "postgres" else None
    home = tmp_path / "home"
    shots = [shot for number in range(3) for shot in _shots(number + 1, source=f"s{number % 2}")]
    build_archive(home, shots, database_url=url, index=False).database.close()
    crawler = Crawler(home, database_url=url)

    processes = [
        forked.Popen(crawler.command("index", "--json", "--no-search"), env=crawler.variables,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]  # fmt: skip
    results = [(process.communicate(timeout=patience.deadline(120)), process.returncode) for process in processes]

    assert [code for _, code in results] == [0, 0, 0], results
    read = [one["file"] for (out, _), _ in results for one in json.loads(out)["files"]]
    assert sorted(read) == [1, 2, 3]
    with closing(crawler.raw_db()) as raw_db, raw_db.read() as tx:
        assert tx.execute("SELECT COUNT(*), COUNT(DISTINCT id) FROM snapshots") == [(3 * (COUNT + 1),) * 2]
        assert tx.execute("SELECT COUNT(*) FROM documents") == [(50,)]
        counted = "SELECT g.id, g.snapshot_count, COUNT(s.id) FROM page_groups g JOIN snapshots s ON s.group_id = g.id"
        assert all(stored == real for _, stored, real in tx.execute(f"{counted} GROUP BY g.id, g.snapshot_count"))
        unresolved = "SELECT COUNT(*) FROM snapshots WHERE record_type = 'revisit' AND original_id IS NULL"
        assert tx.execute(unresolved) == [(0,)]
        days = "SELECT url_hash, captured_at / 86400000000 AS d, body_hash, SUM(CASE WHEN canonical_id IS NULL THEN 1"
        wrong = f"SELECT COUNT(*) FROM ({days} ELSE 0 END) AS n FROM snapshots GROUP BY 1, 2, 3) q WHERE n <> 1"
        assert tx.execute(wrong) == [(0,)]
        assert tx.execute("SELECT COUNT(*) FROM snapshots WHERE canonical_id IS NOT NULL")[0][0] > COUNT


@pytest.mark.parametrize("place", ["import_placed", "import_registered", "index_batch"])
def test_an_import_that_is_killed_is_taken_up_by_the_same_command(tmp_path: Path, place: str) -> None:
    _build(tmp_path / "other", _shots(1)[:20], index=False)
    (foreign,) = (tmp_path / "other").rglob("*.warc.gz")
    home = tmp_path / "home"
    crawler = Crawler(home)
    command = crawler.command("import", str(foreign), "--source", "again", "--json")
    died = forked.run(
        command, env={**crawler.variables, "HOLDFAST_FAILPOINT": f"{place}:kill"}, check=False, capture_output=True
    )
    assert died.returncode == -signal.SIGKILL
    for row in _rows(home, "SELECT key FROM warc_files"):
        assert (home / row[0]).is_file(), "a row points at bytes that are not there"

    done = json.loads(crawler.run("import", str(foreign), "--source", "again", "--json").stdout)

    assert [one["error"] for one in done["files"]] == [None]
    assert _rows(home, "SELECT COUNT(*) FROM warc_files") == [(1,)]
    assert {row[0] for row in _rows(home, "SELECT id FROM snapshots")} == _in_files(home)
    (path,) = _rows(home, "SELECT key FROM warc_files")[0]
    listed = read_manifest((home / path).parent)
    assert {file_id: sealed.path.name for file_id, sealed in listed.items()} == {1: Path(path).name}
