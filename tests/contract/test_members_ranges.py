"""Prefix and host queries of a viewer who may not see a source: its captures cost them nothing, and hide no others."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, event, insert, select, text
from sqlalchemy.orm import Session

from holdfast.clock import from_micros
from holdfast.db.engine import Database
from holdfast.db.models import Execution, Job, Snapshot, Source, WarcFile
from holdfast.replay import finding
from holdfast.replay.cdx import queries as cdx
from holdfast.replay.cdx.queries import IndexPosition, KeyRange
from holdfast.withdrawals.viewers import EVERYTHING, PUBLIC, Viewer, seen_by

NOW = datetime(2024, 3, 1, 12, 0, tzinfo=UTC)
EVER = (from_micros(0), datetime(9999, 1, 1, tzinfo=UTC))
CLUB, OPEN, OTHER = 1, 2, 3
"""The sources; the first is for members."""
HIDDEN_CAPTURES, TIMES = 2_000, 20
SHARED, HIDDEN, NOWHERE = (KeyRange(f"org,{name})", f"org,{name}*") for name in ("shared", "club", "nowhere"))


def _row(number: int, source: int, key: str) -> dict[str, Any]:
    return {
        "id": number, "warc_file_id": source, "execution_id": source, "source_id": source, "warc_offset": 0,
        "warc_length": 9, "record_type": "response", "url": f"http://example.org/{key}", "url_key": key,
        "url_hash": number, "captured_at": NOW + timedelta(minutes=number % 50), "status": 200,
        "media_type": "text/html", "is_page": True, "backend": "native", "fidelity": "high",
    }  # fmt: skip


def _fill(database: Database, rows: list[dict[str, Any]]) -> None:
    with database.write() as session:
        for one in (CLUB, OPEN, OTHER):
            session.add(Source(id=one, code=f"s{one}", name="X", created_at=NOW, updated_at=NOW, config={},
                               enabled=True, visibility="members" if one == CLUB else "public"))  # fmt: skip
            session.flush()
            session.add(Job(id=one, source_id=one, kind="adhoc", fingerprint=f"f{one}", config={}, created_at=NOW))
            session.flush()
            session.add(Execution(id=one, job_id=one, number=1, state="completed", config={}, output_dir=f"d{one}",
                                  created_at=NOW, started_at=NOW, run_seconds=0.0))  # fmt: skip
            session.flush()
            session.add(WarcFile(id=one, execution_id=one, key=f"{one}.warc.gz", state="sealed", created_at=NOW))
            session.flush()
        session.execute(insert(Snapshot), rows)
    _analyze(database)


def _analyze(database: Database) -> None:
    with database.engine.connect() as connection:
        connection.execution_options(isolation_level="AUTOCOMMIT").execute(text("ANALYZE"))


def _hidden() -> list[dict[str, Any]]:
    """Return members' captures: between the public ones of a host, and of a host of their own."""
    named = ((number, "shared" if number % 4 else "club") for number in range(100, 100 + HIDDEN_CAPTURES))
    return [_row(number, CLUB, f"org,{host})/m{number:06}") for number, host in named]


def _multiply(database: Database) -> None:
    """Add as many hidden captures again and again, beside those that are there."""
    columns = [column for column in Snapshot.__table__.columns if column.name not in ("id", "url_key")]
    with database.write() as session:
        for turn in range(1, TIMES):
            made: tuple[Any, ...] = (Snapshot.id + turn * 100_000, Snapshot.url_key.concat(f"-{turn}"), *columns)
            rows = select(*made).where(Snapshot.source_id == CLUB, Snapshot.id < 100_000)
            session.execute(insert(Snapshot).from_select(["id", "url_key", *columns], rows))
    _analyze(database)


_PUBLIC_KEYS = [f"org,shared)/{name}" for name in ("a", "b", "n", "y", "z")]


@pytest.fixture
def database(migrated_url: str) -> Iterator[Database]:
    """A few public captures before and behind members' captures of the same host."""
    with closing(Database(migrated_url)) as opened:
        public = [_row(at + 1, OPEN if at % 2 else OTHER, key) for at, key in enumerate(_PUBLIC_KEYS)]
        _fill(opened, public + _hidden())
        yield opened


def _batch(keys: KeyRange, *, behind: IndexPosition | None = None, reverse: bool = False) -> Callable[[Session], Any]:
    def ask(session: Session) -> list[str]:
        found = cdx.batch(session, keys, behind=behind, reverse=reverse, period=EVER, limit=20)
        return [row.url_key for row in found]

    return ask


_INSIDE = IndexPosition("org,shared)/m000999", NOW, 0)
QUESTIONS: dict[str, tuple[Callable[[Session], Any], Any]] = {
    "captures": (_batch(SHARED), _PUBLIC_KEYS),
    "captures behind": (_batch(SHARED, behind=_INSIDE), _PUBLIC_KEYS[2:]),
    "captures reverse": (_batch(SHARED, reverse=True), _PUBLIC_KEYS[::-1]),
    "captures reverse behind": (_batch(SHARED, behind=_INSIDE, reverse=True), _PUBLIC_KEYS[1::-1]),
    "captures of members": (_batch(HIDDEN), []),
    "captures of members reverse": (_batch(HIDDEN, reverse=True), []),
    "count": (lambda s: cdx.count(s, SHARED, limit=9_000), 5),
    "count of members": (lambda s: cdx.count(s, HIDDEN, limit=9_000), 0),
    "skip": (lambda s: (cdx.skip(s, [HIDDEN, SHARED], None, 4) or _INSIDE).url_key, _PUBLIC_KEYS[3]),
    "skip too many": (lambda s: cdx.skip(s, [HIDDEN, SHARED], _INSIDE, 9), None),
    "addresses": (lambda s: [one.url_key for one in finding.addresses(s, *SHARED, limit=20)], _PUBLIC_KEYS),
    "addresses of members": (lambda s: finding.addresses(s, *HIDDEN, limit=20), []),
}


def _work(database: Database, ask: Callable[[Session], Any], expected: Any) -> int:
    """Return what a question costs: steps of SQLite's machine, or captures that PostgreSQL reads."""
    asked: list[tuple[str, Any]] = []
    steps = [0]

    def count() -> None:
        steps[0] += 1

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_rest: Any) -> None:
        asked.append((statement, parameters))

    is_sqlite = database.engine.dialect.name == "sqlite"
    event.listen(database.engine, "before_cursor_execute", note)
    with seen_by(PUBLIC), database.read() as session:
        driver: Any = session.connection().connection.driver_connection
        if is_sqlite:
            driver.set_progress_handler(count, 10)
        assert ask(session) == expected
        if is_sqlite:
            driver.set_progress_handler(None, 10)
    event.remove(database.engine, "before_cursor_execute", note)
    with database.engine.connect() as connection:
        return steps[0] if is_sqlite else sum(_read_rows(connection, *one) for one in asked)


def _read_rows(connection: Connection, statement: str, parameters: Any) -> int:
    if not statement.lstrip().upper().startswith(("SELECT", "WITH")):
        return 0
    found: Any = connection.exec_driver_sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", parameters).scalar()
    return _rows_below((json.loads(found) if isinstance(found, str) else found)[0]["Plan"])


def _rows_below(node: dict[str, Any]) -> int:
    rows = int(node["Actual Rows"]) + int(node.get("Rows Removed by Filter", 0))
    here = rows * int(node["Actual Loops"]) if "Scan" in node["Node Type"] else 0
    return here + sum(_rows_below(below) for below in node.get("Plans", []))


def test_range_work_does_not_grow_with_hidden_captures(database: Database) -> None:
    few = {name: _work(database, *question) for name, question in QUESTIONS.items()}
    _multiply(database)

    many = {name: _work(database, *question) for name, question in QUESTIONS.items()}

    assert {name: (few[name], many[name]) for name in few if many[name] > 2 * few[name] + 20} == {}


def test_hidden_range_costs_no_more_than_an_empty_one(database: Database) -> None:
    hidden, empty = _work(database, _batch(HIDDEN), []), _work(database, _batch(NOWHERE), [])

    assert hidden <= 2 * empty + 10


@pytest.mark.parametrize("viewer", [PUBLIC, Viewer(granted=CLUB), EVERYTHING])
def test_range_walk_finds_each_visible_capture_once(migrated_url: str, viewer: Viewer) -> None:
    chance = random.Random(3)
    rows = [
        # Runs of the members' source, keys that all sources have, and one key with more captures than a stretch.
        _row(number, chance.choice((CLUB, OPEN)) if number % 3_000 < 900 else CLUB,
             "org,shared)/busy" if number % 4 == 0 else f"org,shared)/{'aceg'[number // 3_000]}{chance.randrange(900)}")
        for number in range(1, 9_000)
    ]  # fmt: skip
    shown = [one for one in rows if viewer is not PUBLIC or one["source_id"] != CLUB]
    expected = sorted((one["url_key"], one["captured_at"], one["id"]) for one in shown)
    with closing(Database(migrated_url)) as database:
        _fill(database, rows)
        with seen_by(viewer), database.read() as session:
            for reverse in (False, True):
                assert _walked(session, reverse=reverse) == (expected[::-1] if reverse else expected)
            assert cdx.count(session, SHARED, limit=10**6) == len(expected)
            place = cdx.skip(session, [HIDDEN, SHARED], IndexPosition(*expected[9]), len(expected) - 20)
            assert place == expected[-11]
            keys = [one.url_key for one in finding.addresses(session, *SHARED, limit=10**6)]
            assert keys == sorted({key for key, _, _ in expected})


def _walked(session: Session, *, reverse: bool) -> list[tuple[str, datetime, int]]:
    found: list[tuple[str, datetime, int]] = []
    while True:
        behind = IndexPosition(*found[-1]) if found else None
        rows = cdx.batch(session, SHARED, behind=behind, reverse=reverse, period=EVER, limit=437)
        found += [(row.url_key, row.captured_at, row.id) for row in rows]
        if len(rows) < 437:
            return found
