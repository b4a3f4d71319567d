"""Databases of every schema before the baseline are upgraded to the schema of a new one, and keep their rows."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event, select, text

from holdfast.db.engine import Database
from holdfast.db.migrate import compare, downgrade, upgrade
from holdfast.db.models import WarcFile
from holdfast.db.models.base import Json
from holdfast.db.schema import SCHEMA, schema_of
from holdfast.storage.store import FileKey
from holdfast.urls import parse
from tests.old_schemas import contents, insert_rows, make_old, old_revisions, schema_catalogue
from tests.postgres import Postgres

_ON_POSTGRES = ("0001", "0003", "0005", "0009", "0012", "0013", "0015", "0022", "0028", "0031")
"""To check one takes a second there; each has a data step before or after it."""
_WITH_ROWS = ("0003", "0005", "0009", "0012", "0015", "0022", "0028", "0031")
OldDatabase = Callable[[str], str]


@pytest.fixture(scope="module")
def old_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file of each old schema, made with one walk through the old migrations."""
    folder = tmp_path_factory.mktemp("old")
    for revision in old_revisions():
        make_old(f"sqlite:///{folder / 'walking.db'}", revision)
        shutil.copy(folder / "walking.db", folder / f"{revision}.db")
    return folder


@pytest.fixture(scope="module")
def old_templates(postgres: Postgres) -> str:
    """A PostgreSQL database of each old schema that is looked at, to be copied."""
    url = postgres.bare()
    for revision in _ON_POSTGRES:
        make_old(url, revision)
        postgres.execute(f"CREATE DATABASE old_{revision} TEMPLATE {url.rsplit('/', 1)[1]}")
    return "old_"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def old_database(request: pytest.FixtureRequest, tmp_path: Path) -> OldDatabase:
    """Return a new database of an old schema, of each kind."""
    numbers = itertools.count(1)

    def on_sqlite(revision: str) -> str:
        path = tmp_path / f"{next(numbers)}.db"
        shutil.copy(request.getfixturevalue("old_files") / f"{revision}.db", path)
        return f"sqlite:///{path}"

    def on_postgres(revision: str) -> str:
        cluster: Postgres = request.getfixturevalue("postgres")
        return cluster.copy_of(f"{request.getfixturevalue('old_templates')}{revision}")

    return on_sqlite if request.param == "sqlite" else on_postgres


@pytest.mark.parametrize("revision", old_revisions())
def test_old_sqlite_schema_becomes_the_fresh_one(
    old_files: Path, migrated_sqlite: str, tmp_path: Path, revision: str
) -> None:
    path = shutil.copy(old_files / f"{revision}.db", tmp_path / "old.db")
    upgrade(f"sqlite:///{path}")

    assert schema_of(f"sqlite:///{path}") == SCHEMA
    assert schema_catalogue(f"sqlite:///{path}") == schema_catalogue(migrated_sqlite)


@pytest.mark.postgres
@pytest.mark.parametrize("revision", _ON_POSTGRES)
def test_old_postgres_schema_becomes_the_fresh_one(
    old_templates: str, postgres: Postgres, postgres_url: str, revision: str
) -> None:
    url = postgres.copy_of(f"{old_templates}{revision}")
    upgrade(url)

    assert schema_of(url) == SCHEMA
    assert schema_catalogue(url) == schema_catalogue(postgres_url)


_PAGE = "https://example.org/page"
_FILE = 1 << 22
_OTHER_FILE = 2 << 22


def _capture(number: int, url: str, **more: Any) -> dict[str, Any]:
    key = {"url_key": more.pop("url_key", "org,example)/page"), "url_hash": parse(url).hash64}
    return {
        "id": number, "warc_file_id": number >> 22, "execution_id": 1, "source_id": number >> 22, "warc_offset": 0,
        "warc_length": 1, "record_type": "response", "url": url, **key,
        "group_id": 1 if number < _OTHER_FILE else None, "captured_at": number,
        "status": 200, "is_page": True, "compared": True, **more,
    }  # fmt: skip


def _takedown(number: int, url: str, subject: str, lifted_at: int | None = None) -> dict[str, Any]:
    old_and_new = {"url_hash": parse(url).hash64, "url_key": "org,example)/page"}
    return {
        "id": number, **old_and_new, "subject": subject, "reason": "asked", "actor": "me", "created_at": 5,
        "lifted_at": lifted_at,
    }  # fmt: skip


def _attempt(number: int, kind: str, priority: int, outcome: str | None = None) -> dict[str, Any]:
    return {
        "id": number, "execution_id": 1, "domain_id": 1, "page_id": number, "attempt": 1, "kind": kind,
        "priority": priority, "depth": 0, "outcome": outcome, "created_at": 1,
    }  # fmt: skip


def _document(number: int, version: int, words: int) -> dict[str, Any]:
    return {
        "id": number, "body_hash": bytes([number]), "charset": "", "media_type": "text/html", "body_bytes": 1,
        "details": {"a": [number]}, "version": version, "created_at": 1, "word_count": words, "page_type": "other",
    }  # fmt: skip


def _execution(number: int, **more: Any) -> dict[str, Any]:
    return {
        "id": number, "job_id": 1, "number": number, "state": "done", "config": {"pages": 5}, "output_dir": "x",
        "created_at": 1, "run_seconds": 1.5, **more,
    }  # fmt: skip


_ROWS: dict[str, list[dict[str, Any]]] = {
    "sources": [
        {"id": number, "code": code, "name": code, "enabled": True, "config": {"seeds": [code]}, "created_at": 1,
         "updated_at": 2}
        for number, code in enumerate(("town", "county"), 1)
    ],
    "jobs": [
        {"id": 1, "source_id": 1, "kind": "crawl", "fingerprint": "f", "config": {}, "created_at": 1, "name": "nightly",
         "state": "active"}
    ],
    "executions": [_execution(1), _execution(2, items_crawled=7, items_failed=2), _execution(3, state="stopped")],
    "execution_counts": [
        {"execution_id": 1, "owner_id": owner, "updated_at": 1,
         "counts": {"pages": 3, "requests": 4, "bytes": 5, "retries": 1, "outcomes": {"success": 3, "failed": 1}}}
        for owner in (1, 2)
    ],
    "owners": [
        {"id": 1, "kind": "crawl", "host": "h", "pid": 1, "run_file": "r", "execution_id": 1, "started_at": 1,
         "heartbeat_at": 1}
    ],
    "domains": [{"id": 1, "name": "example.org", "created_at": 1, "delay_s": 2.5}],
    "pages": [
        {"id": 1, "domain_id": 1, "url_hash": 1, "url": f"{_PAGE}?utm_source=mail", "created_at": 1},
        {"id": 2, "domain_id": 1, "url_hash": 2, "url": _PAGE, "created_at": 1},
    ],
    "page_crawls": [
        _attempt(1, "page", 23), _attempt(2, "requisite", 16), _attempt(3, "requisite", 16, outcome="success"),
        _attempt(4, "page", 5),
    ],
    "queues": [{"execution_id": 3, "domain_id": 1, "open": 9, "due_at": 1}],
    "robots": [
        {"id": 1, "domain_id": 1, "origin": "https://example.org", "answer": "found", "body": b"User-agent: *",
         "failures": 0, "fetched_at": 1, "checked_at": 1}
    ],
    "warc_files": [
        {"id": number, "execution_id": 1, "path": path, "state": "sealed", "size": 5, "created_at": 1,
         "index_state": "indexed"}
        for number, path in ((1, "warcs/town/1/a.warc.gz"), (2, "/disk/old/a.warc.gz"))
    ],
    "documents": [_document(1, 2, 0), _document(2, 3, 0), _document(3, 3, 7)],
    "document_texts": [{"document_id": 1, "text": b"words"}],
    "page_groups": [
        {"id": 1, "source_id": 1, "url": _PAGE, "url_hash": 1, "first_captured_at": 1, "last_captured_at": 9,
         "snapshot_count": 4, "latest_id": _FILE + 4, "latest_ok_id": _FILE + 4}
    ],
    "snapshots": [
        _capture(_FILE + 1, _PAGE, document_id=1),
        _capture(_FILE + 2, f"{_PAGE}?utm_source=mail", url_key="org,example)/page?utm_source=mail"),
        _capture(_FILE + 3, _PAGE, url_key="org,example)/page?__wb_method=post", method="POST"),
        _capture(_FILE + 4, f"{_PAGE}/other", url_key="org,example)/page/other", noise="blocked"),
        _capture(_OTHER_FILE + 1, _PAGE, canonical_id=_FILE + 1),
        _capture(_OTHER_FILE + 2, _PAGE, canonical_id=_FILE + 1),
    ],
    "changes": [
        {"id": 1, "source_id": 1, "group_id": 1, "url_hash": 1, "to_snapshot_id": _FILE + 1, "to_execution_id": 1,
         "to_captured_at": 1, "type": "new", "computed_at": 1}
    ],
    "withdrawals": [
        _takedown(1, _PAGE, "example.org/page"),
        _takedown(2, f"http{_PAGE[5:]}", "example.org/page"),
        _takedown(3, f"{_PAGE}/other", f"{_PAGE}/other", lifted_at=7),
    ],
    "signal_pages": [
        {"page_id": 1, "source_id": 1, "execution_id": 1, "fetched_at": 1, "page_key": "org,example)/page"}
    ],
    "feeds": [
        {"id": 1, "source_id": 1, "url": "https://example.org/feed", "url_hash": 1, "kind": "rss", "origin": "seed",
         "created_at": 1}
    ],
    "link_texts": [
        {"to_hash": number, "host_hash": 1, "text": "here", "snapshot_id": snapshot}
        for number, snapshot in enumerate((_FILE + 1, 77), 1)
    ],
    "noise_queue": [
        {"first_id": _FILE, "last_id": _FILE + _FILE - 1}, {"first_id": _OTHER_FILE + 1, "last_id": _OTHER_FILE + 9},
    ],
    "users": [
        {"id": 1, "name": "ada", "role": "admin", "password_hash": "secret", "created_at": 1},
        {"id": 2, "name": "bob", "role": "viewer", "created_at": 1},
    ],
    "api_tokens": [
        {"id": 1, "user_id": 1, "name": "ci", "secret_hash": b"1", "hint": "a", "scopes": ["read"], "created_at": 1,
         "expires_at": 2}
    ],
    "webhooks": [
        {"id": 1, "url": "https://example.net/", "events": [], "sources": [], "secret": "s", "created_by": "ada",
         "created_at": 1, "updated_at": 1}
    ],
    "audit_events": [{"id": 1, "at": 1, "actor": "ada", "action": "source.create", "subject": "town", "detail": {}}],
}  # fmt: skip


def _fill(database_url: str, revision: str) -> None:
    # The extraction that reads words came with 0010.
    documents = [{**row, "version": 2} if revision < "0010" else row for row in _ROWS["documents"]]
    insert_rows(database_url, {**_ROWS, "documents": documents})


@pytest.mark.parametrize("revision", _WITH_ROWS)
def test_upgrade_keeps_rows_as_the_old_migrations_did(old_database: OldDatabase, revision: str) -> None:
    new, old = old_database(revision), old_database(revision)
    for url in (new, old):
        _fill(url, revision)
    upgrade(new)
    make_old(old, "0031")

    found, expected = contents(new), contents(old)
    expected.pop("operations", None)  # they are jobs now
    for row in found.get("warc_files", ()):
        location = {one["name"]: one["location"] for one in found["stores"]}.get(row["store"])
        row["path"] = row["key"] if location is None else f"{location}/{row['key']}"
    for rows in (found["search_outbox"], expected["search_outbox"]):
        for row in rows:
            row["created_at"] = 0  # the time of the upgrade
    assert found["sources"]
    for name, rows in expected.items():
        # Migrations after the baseline add columns, and replace some.
        known = [key for key in rows[0] if (name, key) not in _DROPPED] if rows else []
        kept = [{key: row[key] for key in known} for row in found[name]]
        rows = [{key: row[key] for key in known} for row in rows]
        assert kept == rows, name


_DROPPED = {("jobs", "lock_owner"), ("webhook_deliveries", "lease_token"), ("webhook_deliveries", "lease_until")}


def _ask(database_url: str, statement: str) -> list[tuple[Any, ...]]:
    with closing(Database(database_url)) as database, database.engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(statement))]


def _operation(number: int, state: str, **more: Any) -> dict[str, Any]:
    return {
        "id": number, "kind": "import", "flight": f"upload {number}", "subject": f"file {number}", "actor": "ada",
        "parameters": {"upload": number, "directory": "here"}, "state": state, "result": {"files": number},
        "phase": "reading", "done_units": 5, "total_units": 9, "attempt": number - 1, "created_at": 10 * number,
        "updated_at": 10 * number + 5, "stop_asked": False, **more,
    }  # fmt: skip


def _upload(number: int, state: str) -> dict[str, Any]:
    return {
        "id": number, "source_code": "town", "name": "f", "metadata_text": "", "size": 1, "received": 1, "actor": "ada",
        "state": state, "operation_id": number, "created_at": 1, "updated_at": 1, "expires_at": 50, "strict": False,
    }  # fmt: skip


_MOVED = """
SELECT j.kind, j.name, j.state, j.details, e.state, e.config, e.metrics, e.reason, e.error, e.stop_requested,
       e.directory, e.finished_at, u.state, (SELECT count(*) FROM holds h WHERE h.execution_id = e.id)
  FROM uploads u JOIN executions e ON e.id = u.operation_id JOIN jobs j ON j.id = e.job_id
 WHERE j.source_id IS NULL ORDER BY u.id"""


@pytest.mark.parametrize("revision", ["0022", "0036"])
def test_upgrade_makes_jobs_of_operations(old_database: OldDatabase, revision: str) -> None:
    url = old_database("0022")
    if revision == "0036":
        upgrade(url)
        downgrade(url, "0036")
    _fill(url, "0022")
    rows = {
        "operations": [
            _operation(1, "queued"),
            _operation(2, "running", started_at=21, stop_asked=True, lease_until=99, run_file="r"),
            _operation(3, "done", started_at=31, finished_at=39),
            _operation(4, "failed", finished_at=49, error="it broke", error_code="error"),
        ],
        "uploads": [
            _upload(number, state) for number, state in enumerate(("received",) * 2 + ("imported", "failed"), 1)
        ],
    }
    insert_rows(url, rows)
    if url.startswith("postgresql"):  # the rows above have numbers that no sequence gave them
        with closing(Database(url)) as database, database.engine.begin() as connection:
            for name in ("jobs", "executions"):
                connection.execute(text(f"SELECT setval(pg_get_serial_sequence('{name}', 'id'), 50)"))
    upgrade(url)

    with closing(Database(url)) as database, database.engine.connect() as connection:
        fields = {"details": Json, "config": Json, "metrics": Json}
        moved = [tuple(row) for row in connection.execute(text(_MOVED).columns(**fields))]
        kept = connection.execute(text("SELECT count(*) FROM executions WHERE job_id = 1")).scalar_one()

    def metrics(number: int) -> dict[str, Any]:
        return {"phase": "reading", "done": 5, "total": 9, "result": {"files": number}}

    def of(number: int, job: str, run: str, *rest: Any) -> tuple[Any, ...]:
        parameters = {"upload": number}
        return ("import", f"file {number}", job, {"actor": "ada"}, run, parameters, metrics(number), *rest)

    assert moved == [
        of(1, "pending", "queued", None, None, None, "here", None, "received", 0),
        of(2, "scheduled", "queued", None, None, "cancel", "here", None, "received", 1),
        of(3, "completed", "completed", None, None, None, "here", 39, "imported", 2),
        of(4, "failed", "failed", "error", "it broke", None, "here", 49, "failed", 3),
    ]
    assert kept == 3
    assert compare(url).is_whole


def test_upgrade_moves_takedowns_to_the_key_of_their_page(old_database: OldDatabase) -> None:
    """A schema that knew hashes alone kept a row for each spelling of one request."""
    url = old_database("0005")
    _fill(url, "0005")
    upgrade(url)

    assert _ask(url, "SELECT id, url_key, lifted_at FROM withdrawals ORDER BY id") == [
        (1, "org,example)/page", None), (3, "org,example)/page/other", 7),
    ]  # fmt: skip
    keys = _ask(url, "SELECT page_key FROM snapshots WHERE warc_file_id = 1 ORDER BY id")
    assert keys == [(None,), ("org,example)/page",), ("org,example)/page",), (None,)]
    assert _ask(url, "SELECT page_key FROM signal_pages") == [("org,example)/page",)]


def test_upgrade_separates_duplicates_by_source(old_database: OldDatabase) -> None:
    url = old_database("0022")
    _fill(url, "0022")
    upgrade(url)

    found = _ask(url, "SELECT canonical_id, compared FROM snapshots ORDER BY id")
    assert [(canonical, bool(compared)) for canonical, compared in found] == [
        *[(None, True)] * 4, (None, False), (_OTHER_FILE + 1, False),
    ]  # fmt: skip
    assert _ask(url, "SELECT first_id, last_id FROM search_outbox") == [(_OTHER_FILE + 1, _OTHER_FILE + 2)]


def test_upgrade_fills_what_older_schemas_did_not_know(old_database: OldDatabase) -> None:
    url = old_database("0012")
    _fill(url, "0012")
    upgrade(url)

    words = _ask(url, "SELECT word_count, page_type FROM documents ORDER BY id")
    assert words == [(None, None), (0, "other"), (7, "other")]
    assert [bool(late) for (late,) in _ask(url, "SELECT late FROM noise_queue ORDER BY id")] == [True, False]
    assert _ask(url, "SELECT snapshot_id FROM link_texts") == [(_FILE + 1,)]
    assert _ask(url, "SELECT latest_ok_id FROM page_groups") == [(_FILE + 3,)], "the newest one that is no noise"
    totals = _ask(url, "SELECT execution_id, step_s, pages, success, failed, queue FROM series ORDER BY execution_id")
    assert totals == [(1, 0, 6, 6, 2, 0), (2, 0, 7, 7, 2, 0), (3, 0, 0, 0, 0, 9)]


def test_upgrade_reads_hops_and_generations_from_priorities(old_database: OldDatabase) -> None:
    url = old_database("0005")
    _fill(url, "0005")
    upgrade(url)

    found = _ask(url, "SELECT hops, generation FROM page_crawls ORDER BY id")
    assert found == [(2, 0), (1, 2), (0, 0), (0, 0)]


def test_upgrade_from_0037_turns_paths_into_stores_and_keys(bare_url: str) -> None:
    upgrade(bare_url)
    downgrade(bare_url, "0037")
    paths = ["warcs/a/1/x.warc.gz", "/disk/a/x.warc.gz", "/disk/a/y.warc.gz", "/disk/b/x.warc.gz", "gone.warc.gz#5"]
    names = "sources", "jobs", "executions"
    insert_rows(bare_url, {name: _ROWS[name] for name in names} | {"warc_files": [
        {"id": number, "execution_id": 1, "path": path, "state": "sealed", "created_at": 1, "index_state": "indexed"}
        for number, path in enumerate(paths, 1)
    ]})  # fmt: skip
    upgrade(bare_url)

    with closing(Database(bare_url)) as database, database.read() as session:
        rows = list(session.scalars(select(WarcFile).order_by(WarcFile.id)))
        shown = list(session.scalars(select(WarcFile.path).order_by(WarcFile.id)))
        keys = [row.file_key for row in rows]
        assert [row.path for row in rows] == shown == paths
        assert [row.store == "home" for row in rows] == [True, False, False, False, True]
        assert len({row.store for row in rows}) == 3
    assert keys[1:3] == [FileKey("x.warc.gz", "/disk/a"), FileKey("y.warc.gz", "/disk/a")]
    downgrade(bare_url, "0037")
    assert [row["path"] for row in contents(bare_url)["warc_files"]] == paths


def test_upgrade_from_0035_keeps_deliveries(bare_url: str) -> None:
    upgrade(bare_url)
    downgrade(bare_url, "0035")
    delivery = {
        "id": 1, "webhook_id": 1, "event_key": "job:1", "message_id": "m", "event": "job.failed", "body": "{}",
        "state": "pending", "attempts": 2, "next_at": 5, "created_at": 4,
    }  # fmt: skip
    lease = {"lease_token": "a" * 32, "lease_until": 9}
    insert_rows(bare_url, {"webhooks": _ROWS["webhooks"], "webhook_deliveries": [{**delivery, **lease}]})
    upgrade(bare_url)

    [kept] = contents(bare_url)["webhook_deliveries"]
    assert delivery.items() <= kept.items()
    assert (kept["owner_id"], kept["token"], kept["lease_expires_at"]) == (None, 0, None)


@pytest.mark.parametrize("revision", ["0022", "0035"])
def test_upgrade_reads_the_owner_of_a_lock_from_its_name(bare_url: str, revision: str) -> None:
    if revision == "0035":
        upgrade(bare_url)
        downgrade(bare_url, revision)
    else:
        make_old(bare_url, revision)
    owner = {**_ROWS["owners"][0], "execution_id": None}
    names = {1: "h/1", 2: "other/1", 3: "h/77", 4: "w1", 5: None}
    jobs = [{**_ROWS["jobs"][0], "id": number, "kind": "feed", "lock_token": name and "t", "lock_owner": name}
            for number, name in names.items()]  # fmt: skip
    insert_rows(bare_url, {"sources": _ROWS["sources"], "jobs": jobs, "owners": [owner]})
    upgrade(bare_url)

    found = _ask(bare_url, "SELECT id, lock_token, lock_owner_id FROM jobs ORDER BY id")
    assert found == [(1, "t", 1), (2, "t", 1), (3, "t", None), (4, "t", None), (5, None, None)]


def test_killed_upgrade_changes_nothing_and_runs_again(old_database: OldDatabase) -> None:
    url = old_database("0003")
    _kill_upgrades(url, found="0003")

    upgrade(url)
    assert compare(url).is_whole


def test_killed_creation_changes_nothing_and_runs_again(bare_url: str) -> None:
    _kill_upgrades(bare_url, found=None)

    upgrade(bare_url)
    assert compare(bare_url).is_whole


def _kill_upgrades(database_url: str, *, found: str | None) -> None:
    for at in (10, 60, 140):
        child = os.fork()
        if child == 0:
            _die_at(at)
            upgrade(database_url)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        assert schema_of(database_url) == found, "all of it is one transaction"


def _die_at(number: int) -> None:
    """Let this process be killed before its statement of this number."""
    seen = itertools.count(1)

    def look(*_: Any) -> None:
        if next(seen) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    event.listen(Engine, "before_cursor_execute", look)
