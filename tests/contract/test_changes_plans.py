"""Nothing that changes or exports ask walks the archive: every statement seeks, on both databases."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import zstandard
from sqlalchemy import Connection, event, insert, text
from sqlalchemy.orm import Session

from holdfast.changes import listing, queries
from holdfast.changes import site_comparison as site
from holdfast.changes.compare import VERSION
from holdfast.changes.listing import ChangeScope
from holdfast.db.engine import Database
from holdfast.db.migrate import upgrade
from holdfast.db.models import (
    Change,
    Diff,
    Document,
    DocumentText,
    Execution,
    Job,
    PageGroup,
    Snapshot,
    Source,
    WarcFile,
    Withdrawal,
)
from holdfast.exports import queries as exports
from holdfast.index.queries import cdx_rows, cdx_rows_of, unpack_text
from holdfast.warc.record import ORDINALS
from holdfast.withdrawals.hidden_captures import hidden_records

NOW = datetime(2024, 3, 1, 12, 0, tzinfo=UTC)
PAGES, RUNS = 300, 30
"""Nine thousand captures: thirty executions of one source, and one page of another."""
TOLD = 12
"""One capture in twelve brought a change."""


@pytest.fixture(
    scope="module", params=["sqlite", "sqlite without statistics", pytest.param("postgres", marks=pytest.mark.postgres)]
)
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """An archive large enough for a planner to care, with the planner told of it, or not, as on most laptops."""
    url = f"sqlite:///{tmp_path_factory.mktemp('plans') / 'holdfast.db'}"
    if request.param == "postgres":
        url = request.getfixturevalue("postgres").fresh()
    upgrade(url)
    opened = Database(url)
    with opened.write() as session:
        _fill(session)
    if "without" not in request.param:
        with opened.engine.connect() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT").execute(text("ANALYZE"))
    yield opened
    opened.close()


def _fill(session: Session) -> None:
    for number in (1, 2):
        session.add(
            Source(id=number, code=f"s{number}", name="X", created_at=NOW, updated_at=NOW, config={}, enabled=True)
        )
    session.flush()
    session.add(Job(id=1, source_id=1, kind="adhoc", fingerprint="f", config={}, created_at=NOW))
    session.add(Document(id=1, body_hash=b"1" * 32, charset="utf-8", media_type="text/html", body_bytes=1, details={},
                         version=1, created_at=NOW))  # fmt: skip
    session.add(Document(id=2, body_hash=b"2" * 32, charset="utf-8", media_type="text/html", body_bytes=1, details={},
                         version=1, created_at=NOW))  # fmt: skip
    session.flush()
    session.add(DocumentText(document_id=1, text=zstandard.compress(b"words")))
    session.add(Diff(id=1, from_document_id=1, to_document_id=2, version=VERSION, added_sections=0,
                     removed_sections=0, changed_sections=1, added_lines=1, removed_lines=1, ratio=0.5,
                     high_noise=False, truncated=False, created_at=NOW))  # fmt: skip
    session.add_all(
        Execution(id=run + 1, job_id=1, number=run + 1, state="completed", config={}, output_dir="d", created_at=NOW,
                  started_at=NOW, run_seconds=0.0)
        for run in range(RUNS)
    )  # fmt: skip
    session.add_all(
        PageGroup(id=page + 1, source_id=1, url=f"http://example.org/{page}", url_hash=page, first_captured_at=NOW,
                  last_captured_at=NOW, snapshot_count=RUNS, latest_id=1)
        for page in range(PAGES)
    )  # fmt: skip
    session.flush()
    session.add_all(
        WarcFile(id=run + 1, execution_id=run + 1, key=f"{run}.warc.gz", state="sealed", created_at=NOW, sealed_at=NOW,
                 size=9, sha256="0" * 64, crc32=0, index_state="indexed", first_at=_day(run), last_at=_day(run))
        for run in range(RUNS)
    )  # fmt: skip
    session.flush()
    session.execute(insert(Snapshot), [_snapshot(run, page) for run in range(RUNS) for page in range(PAGES)])
    session.execute(insert(Change), [_change(run, page) for run in range(RUNS - 1) for page in range(PAGES)])
    session.add_all(
        Withdrawal(snapshot_id=_id(run, 5), subject="x", reason="r", actor="a", created_at=NOW,
                   lifted_at=NOW if run % 2 else None)
        for run in range(20)
    )  # fmt: skip
    session.add(Withdrawal(url_key="org,example)/6", subject="x", reason="r", actor="a", created_at=NOW))


def _day(run: int) -> datetime:
    return NOW + timedelta(days=run)


def _id(run: int, page: int) -> int:
    return (run + 1) * ORDINALS + page


def _snapshot(run: int, page: int) -> dict[str, Any]:
    return {
        "id": _id(run, page), "warc_file_id": run + 1, "execution_id": run + 1, "source_id": 1, "warc_offset": page,
        "warc_length": 9, "record_type": "response", "url": f"http://example.org/{page}",
        "url_key": f"org,example)/{page}", "url_hash": page, "group_id": page + 1,
        "captured_at": NOW + timedelta(days=run), "status": 200, "media_type": "text/html", "is_page": True,
        "document_id": 1 + run % 2, "body_hash": b"1" * 32, "backend": "native", "fidelity": "high",
        "compared": run < RUNS - 1,
    }  # fmt: skip


def _change(run: int, page: int) -> dict[str, Any]:
    return {
        "source_id": 1, "group_id": page + 1, "url_hash": page, "from_snapshot_id": _id(run - 1, page) if run else None,
        "to_snapshot_id": _id(run, page), "to_execution_id": run + 1, "to_captured_at": NOW + timedelta(days=run),
        "type": "unchanged" if page % TOLD else "updated", "diff_id": None if page % TOLD else 1, "computed_at": NOW,
    }  # fmt: skip


_SOME_DAYS = exports.ExportReach(since=NOW + timedelta(days=3), until=NOW + timedelta(days=4))
_NO_DAY = exports.ExportReach(since=NOW + timedelta(days=400), until=NOW + timedelta(days=401))
QUESTIONS: dict[str, Callable[[Session], Any]] = {
    "pending": lambda s: queries.pending(s, 1, after=-1, limit=20),
    "pending behind": lambda s: queries.pending(s, 1, after=_id(RUNS - 1, 9), limit=20),
    "again": lambda s: queries.pending(s, 1, after=_id(3, 9), limit=20, again=True),
    "nothing pending": lambda s: [queries.pending(s, 2, after=-1, limit=20)],
    "captures": lambda s: queries.captures(s, [_id(3, 7)]),
    "neighbours": lambda s: queries.neighbours(s, [_id(3, 7), _id(4, 9)]),
    "diff": lambda s: queries.diff(s, (1, 2), VERSION),
    "diffs": lambda s: queries.diff_ids(s, [(1, 2)]),
    "text": lambda s: queries.text_and_headings(s, 1),
    "latest": lambda s: listing.latest_crawls(s, None, limit=20),
    "latest of one": lambda s: listing.latest_crawls(s, 1, limit=20),
    "event": lambda s: listing.event_at(s, _id(3, 7)),
    "timeline": lambda s: listing.timeline(s, 3, limit=10),
    "events": lambda s: listing.events_of(s, [100, 101, 120]),
    "stretch": lambda s: site.stretch(s, 4, after=_id(3, 20), limit=20),
    "both": lambda s: site.of_pages(s, site.holdings_of(s, (3, 4)), {9}),
    "twins": lambda s: site.twins(s, site.holdings_of(s, (5,)), 1)[:20] and [1],
    "snapshots": lambda s: exports.snapshots_after(s, exports.ExportReach(), after=_id(3, 7), limit=20),
    "snapshots of one": lambda s: exports.snapshots_after(s, exports.ExportReach(1), after=_id(3, 7), limit=20),
    "stretch of days": lambda s: exports.next_stretch(s, _SOME_DAYS, after=-1),
    "snapshots of days": lambda s: exports.snapshots_after(
        s, _SOME_DAYS, after=_id(3, 0) - 1, limit=20, until=_id(3, 40)
    ),
    "changes": lambda s: exports.changes_after(s, exports.ExportReach(), after=100, limit=20),
    "changes of a source": lambda s: exports.changes_after(s, exports.ExportReach(1), after=4000, limit=20),
    "changes of no source": lambda s: exports.changes_after(s, exports.ExportReach(2), after=100, limit=20) or [1],
    "changes of days": lambda s: exports.changes_after(s, _SOME_DAYS, after=1000, limit=20),
    "changes of no day": lambda s: exports.changes_after(s, _NO_DAY, after=100, limit=20) or [1],
    "changes of days of a source": lambda s: exports.changes_after(
        s, _SOME_DAYS._replace(source_id=1), after=1000, limit=20
    ),
    "index rows": lambda s: cdx_rows(s, execution_id=4, after=_id(3, 7), limit=20),
    "index rows of one": lambda s: cdx_rows(s, source_id=1, after=_id(3, 7), limit=20),
    "pages": lambda s: exports.page_rows(s, 4, after=_id(3, 7), limit=20),
    "originals": lambda s: cdx_rows_of(s, [_id(3, 7), _id(4, 9)]),
    "files": lambda s: exports.sealed_files(s, 4),
    "execution": lambda s: exports.execution(s, 4),
    "hidden": lambda s: hidden_records(s, 3, [3]),
}
INDEXES = {
    "pending": "ix_snapshots_to_compare", "pending behind": "ix_snapshots_to_compare", "again": "ix_snapshots_source",
    "neighbours": "ix_snapshots_page (url_hash=? AND captured_at<?)",
    "both": "ix_snapshots_page (url_hash=? AND captured_at>? AND captured_at<?)",
    "twins": "ix_snapshots_document", "hidden": "ix_snapshots_page",
    "changes of a source": "ix_changes_source_order (source_id=? AND",
    "changes of days": "ix_changes_moment (to_captured_at>?",
    "changes of no day": "ix_changes_moment (to_captured_at>?",
    "changes of days of a source": "ix_changes_source (source_id=? AND to_captured_at>?",
    "stretch": "ix_snapshots_execution", "timeline": "ix_snapshots_group", "event": "sqlite_autoindex_changes",
}  # fmt: skip
"""What SQLite must go by: another index of the table would give the same rows, after reading a whole source."""
MOST = 80
"""Rows that any step of a plan may touch: a few times what was asked for, and far from nine thousand."""


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

    assert walked == {}, json.dumps(walked, indent=1)


# PostgreSQL's planner chooses by cost: there, rows are counted instead.
@pytest.mark.parametrize("database", ["sqlite", "sqlite without statistics"], indirect=True)
@pytest.mark.parametrize("name", INDEXES)
def test_sqlite_goes_by_the_narrow_index(database: Database, name: str) -> None:
    with _noting(database) as asked, database.read() as session:
        QUESTIONS[name](session)
    with database.engine.connect() as connection:
        plan = [
            row[3]
            for statement, parameters in asked
            for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
        ]

    assert any(INDEXES[name] in step for step in plan), plan


SCOPES = {
    "latest": (ChangeScope(latest=True), "ix_changes_execution_told"),
    "one execution": (ChangeScope(execution_id=7), "ix_changes_execution_told"),
    "one execution of a source": (ChangeScope(source_id=1, execution_id=7), "ix_changes_execution_told"),
    "one source": (ChangeScope(source_id=1), "ix_changes_source_told"),
    "some days": (ChangeScope(since=NOW, until=NOW + timedelta(days=3)), "ix_changes_moment_told"),
    "some days of a source": (
        ChangeScope(source_id=1, since=NOW, until=NOW + timedelta(days=3)), "ix_changes_source_told"
    ),
    "all": (ChangeScope(), "ix_changes_moment_told"),
    "unchanged too": (ChangeScope(source_id=1, unchanged=True), "ix_changes_source"),
    "unchanged of all": (ChangeScope(unchanged=True), "ix_changes_moment"),
    "unchanged of one execution": (ChangeScope(execution_id=7, unchanged=True), "ix_changes_execution"),
}  # fmt: skip


@pytest.mark.parametrize("name", SCOPES)
def test_a_list_reads_no_more_than_it_lists(database: Database, name: str) -> None:
    """With twenty in a list, no step touches many more, though hundreds are in scope and thousands are unchanged."""
    scope, index = SCOPES[name]
    with _noting(database) as asked, database.read() as session:
        events, _, is_exact = listing.page_of_events(session, scope, offset=0, limit=20, listed=20)

    assert (len(events), is_exact) == (20, False)
    with database.engine.connect() as connection:
        if database.engine.dialect.name == "sqlite":
            walked = [plan for statement in asked if (plan := _walks_sqlite(connection, *statement, sorting=True))]
            plans = [
                row[3]
                for statement, parameters in asked
                for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
            ]
            assert any(f"INDEX {index} " in f"{step} " for step in plans), plans
        else:
            walked = [plan for one in asked if (plan := _walks_postgres(connection, *one, most=MOST))]
    assert walked == [], json.dumps(walked, indent=1)


def test_all_sources_are_merged_newest_first_and_counted_to_the_end(database: Database) -> None:
    with database.read() as session:
        few = listing.page_of_events(session, ChangeScope(), offset=0, limit=50, listed=100)
        rest = listing.page_of_events(session, ChangeScope(), offset=50, limit=50, listed=100)
        every = listing.page_of_events(session, ChangeScope(), offset=0, limit=10_000)
        behind = listing.page_of_events(session, ChangeScope(), offset=9000, limit=20)

    assert (few[0] + rest[0]) == every[0][:100]
    moments = [(event.to_captured_at, event.id) for event in every[0]]
    assert moments == sorted(moments, reverse=True)
    assert (every[1], every[2]) == (len(moments), True)
    assert (len(behind[0]), behind[1]) == (0, len(moments))


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


def _walks_sqlite(connection: Connection, statement: str, parameters: Any, *, sorting: bool = False) -> list[str]:
    """Return the plan if it walks or sorts a large table; what is limited inside may be sorted outside."""
    plan = [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)]
    ordered = "ix_changes_moment"
    bad = [step for step in plan if step.startswith(("SCAN snapshots", "SCAN changes")) and ordered not in step]
    bad += _wide(plan, statement)
    sorting = sorting or "CO-ROUTINE known" in plan  # one row a source
    if not sorting and any("snapshots" in step or "changes" in step for step in plan):
        bad += [step for step in plan if "TEMP B-TREE FOR ORDER BY" in step]
    return plan if bad else []


def _wide(plan: list[str], statement: str) -> list[str]:
    """Return the steps that go through a whole source or execution for one page or document of it."""
    narrow = "snapshots.url_hash =" in statement or "snapshots.url_hash IN" in statement
    narrow = narrow or "snapshots.document_id =" in statement
    whole = ("ix_snapshots_source (source_id=?)", "ix_snapshots_execution (execution_id=?)")
    return [step for step in plan if narrow and any(index in step for index in whole)]


def _walks_postgres(connection: Connection, statement: str, parameters: Any, *, most: int = MOST * 5) -> list[str]:
    """Return the steps that touched more rows than were asked for."""
    explained = connection.exec_driver_sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", parameters).scalar()
    plan = explained if isinstance(explained, list) else json.loads(str(explained))
    steps = list(_steps(plan[0]["Plan"]))
    large = [step for step in steps if step.get("Relation Name") in ("snapshots", "changes", "documents")]
    return [
        f"{step['Node Type']} {step.get('Relation Name')} {step.get('Index Name')} {touched}"
        for step in large
        if (touched := (step["Actual Rows"] + step.get("Rows Removed by Filter", 0)) * step["Actual Loops"]) > most
    ]


def _steps(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for inner in plan.get("Plans", ()):
        yield from _steps(inner)


def test_texts_are_stored_as_they_are_read() -> None:
    assert unpack_text(zstandard.compress(b"words")) == "words"
