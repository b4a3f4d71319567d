"""What readers and the index ask is answered by index seeks, and no write takes long: on both databases."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, select, text

from holdfast.clock import SystemClock, digits14
from holdfast.db import connect
from holdfast.db.engine import Database
from holdfast.db.models import Snapshot
from holdfast.db.raw import Transaction, sqlite_path
from holdfast.index import writing_queries
from holdfast.index.indexer import Indexer
from holdfast.index.queries import cdx_rows_of, document_of, file_of, link_words, text_of
from holdfast.replay.finding import candidates
from holdfast.search.queries import named_pages, spellings_of
from holdfast.warc.record import ORDINALS
from holdfast.withdrawals.visibility import (
    captures_of,
    for_members,
    named_by,
    stand_ins,
    visible_snapshot,
    visible_snapshots,
    withdrawn_keys,
)
from tests.archive import BEGIN, Shot, build_archive
from tests.weighed import MOST_ROWS, WeighedRawDatabase

URL = "https://example.org/7"
_SCANS = re.compile(
    r"^SCAN (?!w\b|d\b|n\b|\(|CONSTANT|\d)|Seq Scan on (snapshots|documents|page_groups|page_links|link_texts)", re.M
)


@pytest.fixture
def database(tmp_path: Path, migrated_url: str) -> Iterator[Database]:
    """An archive with a few rows, and planners that are told that its tables are long."""
    archive = build_archive(
        tmp_path / "home", [Shot(url=f"https://example.org/{n}", body=f"<p>{n}</p>") for n in range(30)],
        database_url=migrated_url,
    )  # fmt: skip
    yield archive.database
    archive.database.close()


def _plan(database: Database, statement: str, values: Any) -> str:
    with database.engine.connect() as connection:
        if database.engine.dialect.name == "sqlite":
            rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values).fetchall()
            return "\n".join(str(row[-1]) for row in rows)
        connection.execute(text("SET LOCAL enable_seqscan = off"))
        rows = connection.exec_driver_sql(f"EXPLAIN {statement}", values).fetchall()
        return "\n".join(str(row[0]) for row in rows)


@contextmanager
def _asked(database: Database) -> Iterator[list[tuple[str, Any]]]:
    statements: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, values: Any, *_: Any) -> None:
        statements.append((statement, values))

    event.listen(database.engine, "before_cursor_execute", note)
    yield statements
    event.remove(database.engine, "before_cursor_execute", note)


def test_no_reader_walks_through_the_archive(database: Database, tmp_path: Path) -> None:
    with _asked(database) as statements, database.read() as session:
        found = visible_snapshot(session, candidates(session, URL, digits14(BEGIN))[0].id)
        document_of(session, found)
        text_of(session, found.document_id or 0)
        visible_snapshots(session, [found.id])
        cdx_rows_of(session, [found.id])
        file_of(session, tmp_path / "home", found.warc_file_id)
        captures_of(session, found.url_key)
        link_words(session, [1, 2])
        list(named_by(session, snapshot_id=None, key=found.url_key))
        stand_ins(session)
        spellings_of(session, 1)
        named_pages(session, [1, 2])

    asked = [(statement, values) for statement, values in statements if statement.startswith("SELECT")]
    assert len(asked) >= 8
    for statement, values in asked:
        plan = _plan(database, statement, values)
        assert not _SCANS.search(plan), f"{statement}\n{plan}"


class _Explained:
    """A transaction that shows how each statement would be done, and does it."""

    def __init__(self, tx: Transaction, dialect: str) -> None:
        self._tx, self._dialect = tx, dialect
        self.plans: list[str] = []

    def execute(self, statement: str, values: Any = ()) -> list[Any]:
        explain = "EXPLAIN QUERY PLAN " if self._dialect == "sqlite" else "EXPLAIN "
        rows = self._tx.execute(explain + statement, values)
        self.plans.append(statement + "\n" + "\n".join(str(row[-1]) for row in rows))
        return self._tx.execute(statement, values)

    def many(self, statement: str, rows: Any) -> None:
        for row in rows:
            self.execute(statement, row)

    def load(self, table: str, columns: Any, rows: Any) -> None:
        self._tx.load(table, columns, rows)


@pytest.mark.postgres
def test_members_clause_hashes_no_snapshots(tmp_path: Path, migrated_postgres: str) -> None:
    archive = build_archive(tmp_path / "home", [Shot(url=URL)], database_url=migrated_postgres)
    asked = select(Snapshot.id).where(Snapshot.id.in_(range(1, 501)), for_members())
    with closing(archive.database), archive.database.engine.connect() as connection:
        connection.execute(
            text(
                "INSERT INTO snapshots"
                " SELECT (jsonb_populate_record(s, jsonb_build_object('id', g, 'warc_offset', g))).*"
                " FROM snapshots s, generate_series(1, 20000) g"
            )
        )
        connection.execute(text("ANALYZE snapshots"))
        explained = asked.compile(connection, compile_kwargs={"literal_binds": True})
        plan = "\n".join(connection.execute(text(f"EXPLAIN {explained}")).scalars())

    assert "Index Scan using pk_snapshots on snapshots snapshots_1" in plan
    assert "Seq Scan on snapshots" not in plan


def test_no_statement_of_the_index_walks_through_the_archive(database: Database, migrated_url: str) -> None:
    revisit = writing_queries.Revisit(
        1, 1, "org,example)/7", 1_709_294_400_000_000, 1_809_294_400_000_000, "sha256:x", True
    )
    with closing(connect(migrated_url)) as raw_db, raw_db.write() as tx:
        if raw_db.dialect == "postgresql":
            tx.execute("SET LOCAL enable_seqscan = off")
        explained = _Explained(tx, raw_db.dialect)
        writing_queries.known_documents(explained, [b"x" * 32, b"y" * 32])
        writing_queries.shown_together(explained, [(1, 2), (3, 4)])
        writing_queries.group_ids(explained, 1, [1, 2])
        writing_queries.put_groups(explained, 1, {5: "https://example.org/five"}, moment=0)
        writing_queries.rows_between(explained, ORDINALS, ORDINALS + 10)
        writing_queries.refresh_groups(explained, {1: 0, 2: -1})
        writing_queries.settle_duplicates(explained, [(1, 0), (2, 0)], day_micros=86_400_000_000)
        for own in (True, False):
            writing_queries.originals_at(explained, revisit, span=1_000_000, own_source=own)
            writing_queries.originals_alike(explained, revisit, own_source=own)
        writing_queries.originals_before(explained, revisit)
        writing_queries.unresolved(explained, after=0, until=ORDINALS, limit=10)
        writing_queries.newest_unresolved(explained, limit=10)
        writing_queries.waiting_for(explained, ORDINALS, ORDINALS + 10, earlier=86_400_000_000, limit=10)
        writing_queries.last_capture_id(explained, ORDINALS, ORDINALS + 10)
        writing_queries.last_snapshot_id(explained)
        # Twice, and with something withdrawn: words that find no place look for one of those.
        tx.execute(
            "INSERT INTO withdrawals(url_key, subject, reason, actor, created_at)"
            " VALUES ('org,example)/7', '', '', '', 1)"
        )
        for _ in range(2):
            writing_queries.put_link_texts(explained, [(1, 0, "words", 1), (1, 2, "words", 1)])
        assert sum("UPDATE link_texts" in plan or "DELETE FROM link_texts" in plan for plan in explained.plans) == 2
        withdrawn_keys(explained, ["org,example)/7"])
        writing_queries.groups_here(explained, {1, 2})
        writing_queries.drop_snapshots(explained, [ORDINALS + 900])

    assert len(explained.plans) >= 14
    for plan in explained.plans:
        assert not _SCANS.search(plan.partition("\n")[2]), plan


def test_no_write_of_the_index_holds_the_database_for_long(tmp_path: Path, migrated_sqlite: str) -> None:
    words = " ".join(f"word{n}" for n in range(1200))
    links = "".join(f'<a href="/link/{n}">{n}</a>' for n in range(250))
    shots = [
        Shot(url=f"https://example.org/{n}", body=f"<title>{n}</title><main><p>{n} {words}</p>{links}</main>")
        for n in range(300)
    ]
    archive = build_archive(tmp_path / "home", shots, database_url=migrated_sqlite, index=False)
    path = sqlite_path(migrated_sqlite)
    assert path is not None
    with closing(connect(migrated_sqlite)) as raw_db:
        weighed = WeighedRawDatabase(raw_db)
        with closing(Indexer(weighed, SystemClock(), tmp_path / "home")) as indexer:
            done = indexer.index_file(1)
    archive.database.close()

    assert done is not None
    assert done.snapshots == 300
    assert len(weighed.rows) >= 3
    # The worst page there is: 200 links each.
    assert 200 < max(weighed.rows) < MOST_ROWS
