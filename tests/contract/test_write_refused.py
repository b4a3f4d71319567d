"""A database without room: every way to it says so by name, status and health tell it, and it is over when it is."""

from __future__ import annotations

import json
import resource
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from holdfast.cli import status as shown
from holdfast.config import Settings
from holdfast.db import connect
from holdfast.db.engine import Database
from holdfast.db.raw import (
    FULL,
    NOTE,
    RawDatabase,
    SqliteRawDatabase,
    last_refusal,
    note_below,
    sqlite_path,
    want_of_room,
)
from holdfast.db.sqlite import DatabaseLocked
from holdfast.errors import NoSpace
from holdfast.jobs.views.overview import read_overview
from holdfast.wiring.archive import Archive
from tests.archive import Shot, build_archive
from tests.client import asking
from tests.clock import FakeClock

_FULL = "DO $$ BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100'; END $$"
_GROW = "INSERT INTO domains (name, created_at) VALUES ('{}', 0)"


def _fill(url: str, execute: Callable[[str], Any]) -> None:
    """Write until the database has no room: SQLite by its own limit of pages, a server by its own word for it."""
    if sqlite_path(url) is None:
        execute(_FULL)
    execute("PRAGMA max_page_count = 1")  # SQLite takes the size that it has for the least
    _grow(execute, 200)


def _grow(execute: Callable[[str], Any], rows: int) -> None:
    for number in range(rows):
        execute(_GROW.format("x" * 3000 + str(number)))


@contextmanager
def _writing(way: str, raw_db: RawDatabase, database: Database) -> Iterator[Callable[[str], Any]]:
    if way == "plain":
        with raw_db.write() as tx:
            yield tx.execute
    else:
        with database.write() as session:
            yield lambda statement: session.execute(text(statement))


@pytest.fixture
def home(tmp_path: Path, migrated_url: str) -> Path:
    """A data directory whose database is this one."""
    folder = tmp_path / "home"
    folder.mkdir()
    note_below(folder, migrated_url)
    return folder


def _age(home: Path) -> None:
    told = json.loads((home / NOTE).read_text())
    (home / NOTE).write_text(json.dumps({**told, "at": datetime(2026, 1, 1, tzinfo=UTC).isoformat()}))


@pytest.mark.parametrize("way", ["plain", "orm"])
def test_a_write_that_finds_no_room_is_noted_until_writes_are_taken_again(
    home: Path, migrated_url: str, way: str
) -> None:
    with closing(Database(migrated_url)) as database, closing(connect(migrated_url)) as raw_db:
        with pytest.raises(NoSpace), _writing(way, raw_db, database) as execute:
            _fill(migrated_url, execute)
        with database.read() as session:
            session.execute(text("SELECT 1"))
        first = last_refusal(home)
        with raw_db.write() as tx:
            tx.execute(_GROW.format("small"))
        soon = last_refusal(home)
        _age(home)
        with database.write() as session:
            session.execute(text(_GROW.format("later")))

    assert first is not None
    assert "the disk of the database is full" in first.sentence()
    assert soon == first, "what fits into pages that are there is taken from a full disk, too"
    assert last_refusal(home) is None


@contextmanager
def _no_file_larger_than(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("way", ["plain", "orm"])
def test_a_limit_that_sqlite_calls_trouble_with_writing_is_want_of_room(
    tmp_path: Path, migrated_sqlite: str, way: str
) -> None:
    path = sqlite_path(migrated_sqlite)
    assert path is not None
    note_below(tmp_path, migrated_sqlite)
    with (
        closing(Database(migrated_sqlite)) as database,
        closing(connect(migrated_sqlite)) as raw_db,
        _no_file_larger_than(path.stat().st_size),
        pytest.raises(NoSpace, match="quota"),
        _writing(way, raw_db, database) as execute,
    ):
        _grow(execute, 2000)

    assert last_refusal(tmp_path) is not None


def test_status_and_health_say_that_a_write_was_refused(tmp_path: Path, migrated_url: str) -> None:
    archive: Archive = build_archive(tmp_path / "home", [Shot(url="https://example.org/")], database_url=migrated_url)
    settings = Settings(home=tmp_path / "home", database_url=migrated_url)
    note_below(settings.home, migrated_url)
    with closing(connect(migrated_url)) as raw_db, asking(archive) as client:
        before = client.get("/api/health?details=1").json()["checks"]["writes"]
        with pytest.raises(NoSpace), archive.database.write() as session:
            _fill(migrated_url, lambda statement: session.execute(text(statement)))
        after = client.get("/api/health?details=1").json()["checks"]
        standing = read_overview(raw_db, FakeClock(), settings, run_folder=tmp_path)
    archive.database.close()

    assert (before, after["writes"], after["db"]) == ("ok", "refused", "ok")
    assert any("refused for want of room" in line for line in shown.overview_lines(standing))
    assert standing.write_refused is not None
    assert standing.write_refused.message.startswith("the disk of the database is full")


def test_a_disk_that_has_no_room_for_the_words_of_a_note_either_is_told_all_the_same(
    home: Path, migrated_url: str
) -> None:
    with _no_file_larger_than(0):
        want_of_room(migrated_url)
    found = last_refusal(home)

    assert found is not None
    assert (found.message, [one.name for one in home.iterdir()]) == (FULL, [NOTE])
    assert abs(datetime.now(UTC) - found.at) < timedelta(minutes=5)


def test_who_sends_something_to_a_full_disk_is_told_that_it_is_full(tmp_path: Path, migrated_sqlite: str) -> None:
    archive = build_archive(tmp_path / "home", [Shot(url="https://example.org/")], database_url=migrated_sqlite)
    report = {"category": "general_feedback", "description": "The pictures of this page are missing."}
    with asking(archive) as client:
        assert client.post("/api/reports", json=report).status_code == 201
        with _no_file_larger_than(0):
            refused = client.post("/api/reports", json=report)
    archive.database.close()

    assert (refused.status_code, refused.json()["code"]) == (503, "no_space")
    assert refused.json()["detail"].startswith("the disk takes no more of the database")
    assert str(tmp_path) not in refused.text


def test_health_and_error_say_that_another_process_keeps_the_lock(tmp_path: Path) -> None:
    archive = build_archive(tmp_path / "home", [Shot(url="https://example.org/")])
    path = sqlite_path(archive.database.url)
    assert path is not None
    with (
        asking(archive) as client,
        closing(sqlite3.connect(path, isolation_level=None)) as other,
        closing(SqliteRawDatabase(path, busy_timeout_s=0.01)) as ours,
    ):
        other.execute("BEGIN IMMEDIATE")
        assert client.get("/api/health?details=1").json()["checks"]["writes"] == "refused"
        with pytest.raises(DatabaseLocked, match=r"end its transaction.*try again"), ours.write():
            pass

        other.execute("ROLLBACK")
        assert client.get("/api/health?details=1").json()["checks"]["writes"] == "ok"
    archive.database.close()
