"""Nothing that replay or the CDX server asks walks the archive: every statement seeks, on both databases."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, event, insert, text
from sqlalchemy.orm import Session

from holdfast.clock import from_micros
from holdfast.db.engine import Database
from holdfast.db.models import Execution, Job, Snapshot, Source, WarcFile
from holdfast.replay import finding, memento, pages
from holdfast.replay.address import AddressListing
from holdfast.replay.cdx import queries as cdx
from holdfast.replay.cdx.queries import IndexPosition, KeyRange
from holdfast.replay.finding import candidates
from holdfast.replay.origins import origins_of
from holdfast.withdrawals.visibility import visible_snapshot

NOW = datetime(2024, 3, 1, 12, 0, tzinfo=UTC)
HERE = origins_of("http", "localhost:8060", replay_origin=None)
PAGES, CAPTURES = 400, 25
EVER = (from_micros(0), datetime(9999, 1, 1, tzinfo=UTC))
ONE = KeyRange("org,example)/p7", "org,example)/p7")
MANY = KeyRange("org,example)", "org,example*")
MIDDLE = IndexPosition("org,example)/p300", NOW + timedelta(hours=3), 1)


@pytest.fixture
def database(migrated_url: str) -> Iterator[Database]:
    """Ten thousand captures of four hundred pages, with the planner told of them."""
    opened = Database(migrated_url)
    with opened.write() as session:
        session.add(Source(id=1, code="x", name="X", created_at=NOW, updated_at=NOW, config={}, enabled=True))
        session.flush()
        session.add(Job(id=1, source_id=1, kind="adhoc", fingerprint="f", config={}, created_at=NOW))
        session.flush()
        session.add(Execution(id=1, job_id=1, number=1, state="completed", config={}, output_dir="d",
                              created_at=NOW, started_at=NOW, run_seconds=0.0))  # fmt: skip
        session.flush()
        session.add(WarcFile(id=1, execution_id=1, key="a.warc.gz", state="sealed", created_at=NOW))
        session.flush()
        rows = [
            {"id": page * CAPTURES + at + 1, "warc_file_id": 1, "execution_id": 1, "source_id": 1,
             "warc_offset": at, "warc_length": 9, "record_type": "response", "url": f"http://example.org/p{page}",
             "url_key": f"org,example)/p{page}", "url_hash": page, "captured_at": NOW + timedelta(hours=at),
             "status": 200, "media_type": "text/html", "is_page": True, "backend": "native", "fidelity": "high"}
            for page in range(PAGES) for at in range(CAPTURES)
        ]  # fmt: skip
        session.execute(insert(Snapshot), rows)
    with opened.engine.connect() as connection:
        connection.execution_options(isolation_level="AUTOCOMMIT").execute(text("ANALYZE"))
    yield opened
    opened.close()


QUESTIONS: dict[str, Callable[[Session], Any]] = {
    "candidates": lambda s: candidates(s, "http://example.org/p7", "2024"),
    "neighbours": lambda s: finding.neighbours(s, "org,example)/p7", NOW + timedelta(hours=5), 9),
    "ends": lambda s: finding.ends(s, "org,example)/p7"),
    "time map": lambda s: memento.time_map(s, "http://example.org/p7", "link", "1709294400000000.5", size=5),
    "calendar": lambda s: pages.listing(s, AddressListing("2024", "http://example.org/p7", False), HERE),
    "addresses": lambda s: finding.addresses(s, "org,example)/p", "org,example)/q", limit=20),
    "one": lambda s: visible_snapshot(s, 9),
    "cdx one": lambda s: cdx.batch(s, ONE, behind=None, reverse=False, period=EVER, limit=20),
    "cdx one behind": lambda s: cdx.batch(
        s,
        ONE,
        behind=IndexPosition("org,example)/p7", NOW + timedelta(hours=4), 3),
        reverse=False,
        period=EVER,
        limit=20,
    ),
    "cdx one reverse": lambda s: cdx.batch(s, ONE, behind=None, reverse=True, period=EVER, limit=20),
    "cdx many": lambda s: cdx.batch(s, MANY, behind=None, reverse=False, period=EVER, limit=20),
    "cdx many behind": lambda s: cdx.batch(s, MANY, behind=MIDDLE, reverse=False, period=EVER, limit=20),
    "cdx many reverse": lambda s: cdx.batch(s, MANY, behind=MIDDLE, reverse=True, period=EVER, limit=20),
    "cdx count": lambda s: cdx.count(s, MANY, limit=20),
    "cdx skip": lambda s: cdx.skip(s, [MANY], MIDDLE, 20),
}
MOST = 60
"""Rows that any step of a plan may touch: a few times what was asked for, and far from ten thousand."""


def test_every_question_seeks(database: Database) -> None:
    walked = {}
    for name, ask in QUESTIONS.items():
        with _noting(database) as asked, database.read() as session:
            assert ask(session), name
        assert asked, name
        with database.engine.connect() as connection:
            judge = _walks_sqlite if database.engine.dialect.name == "sqlite" else _walks_postgres
            if plans := [plan for statement in asked if (plan := judge(connection, *statement))]:
                walked[name] = plans

    assert walked == {}


@contextmanager
def _noting(database: Database) -> Iterator[list[tuple[str, Any]]]:
    """Note the questions that are asked inside the block."""
    asked: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_rest: Any) -> None:
        if statement.lstrip().upper().startswith(("SELECT", "WITH")):
            asked.append((statement, parameters))

    event.listen(database.engine, "before_cursor_execute", note)
    try:
        yield asked
    finally:
        event.remove(database.engine, "before_cursor_execute", note)


def _walks_sqlite(connection: Connection, statement: str, parameters: Any) -> list[str]:
    """Return the plan if it scans or sorts snapshots."""
    plan = [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)]
    bad = [step for step in plan if step.startswith("SCAN snapshots") or "TEMP B-TREE" in step]
    if " > (" in statement or " < (" in statement:
        bad += [] if any("(?,?" in step for step in plan) else ["a place is not sought, but filtered"]
    return plan if bad else []


def _walks_postgres(connection: Connection, statement: str, parameters: Any) -> list[str]:
    """Return the plan if one turn of a step touches more snapshots than a few times what is asked for."""
    found: Any = connection.exec_driver_sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", parameters).scalar()
    tree = json.loads(found) if isinstance(found, str) else found
    return [json.dumps(tree)] if _most_rows(tree[0]["Plan"]) > MOST else []


def _most_rows(node: dict[str, Any]) -> int:
    """Return the most snapshots that one turn of any step touched, filtered ones included."""
    here = 0
    if node.get("Relation Name") == "snapshots":
        here = int(node["Actual Rows"]) + int(node.get("Rows Removed by Filter", 0))
    return max([here, *(_most_rows(below) for below in node.get("Plans", []))])


def test_every_day_of_a_busy_year_leads_to_a_capture(database: Database) -> None:
    rows = [
        {"id": 1_000_000 + hour, "warc_file_id": 1, "execution_id": 1, "source_id": 1, "warc_offset": hour,
         "warc_length": 9, "record_type": "response", "url": "http://example.org/busy",
         "url_key": "org,example)/busy", "url_hash": 77_777, "captured_at": NOW + timedelta(hours=hour),
         "status": 200, "media_type": "text/html", "is_page": True, "backend": "native", "fidelity": "high"}
        for hour in range(1_100)
    ]  # fmt: skip
    with database.write() as session:
        session.execute(insert(Snapshot), rows)

    with database.read() as session:
        calendar = pages.listing(session, AddressListing("", "http://example.org/busy", False), HERE).decode()

    last = NOW + timedelta(hours=1_099)
    months = calendar.partition("<details>")[0]
    assert f"/web/{last:%Y%m%d}000000/http://example.org/busy" in months
    assert months.count("aria-label=") - 1 == len({row["captured_at"].date() for row in rows})  # type: ignore[attr-defined]
    assert "The first 1,000 of 1,100." in calendar
