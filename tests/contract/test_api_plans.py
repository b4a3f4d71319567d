"""Nothing that a route asks of a database grows with the archive or with the history of its jobs; on both databases."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import event, select

from holdfast.db.migrate import upgrade
from holdfast.db.models import Snapshot
from holdfast.index.capture_queries import captured_by, newest_crawls
from holdfast.jobs.views.recorded import read_recorded
from holdfast.wiring.archive import Archive
from tests.archive import Shot, build_archive, days_later
from tests.client import asking
from tests.clock import FakeClock
from tests.postgres import Postgres

_HOME = "https://example.org/"
_SHOTS = [
    Shot(url=_HOME),
    Shot(url="https://example.org/notes?page=2", body="<title>Notes</title><p>Two."),
    Shot(url=_HOME, body="<title>New</title><p>Other words.", moment=days_later(10), execution=2),
    Shot(url="https://other.org/", source="other", moment=days_later(3)),
]
_BIG = ("snapshots", "documents", "page_groups", "document_texts", "page_crawls", "pages", "page_links", "changes",
        "executions", "warc_files", "log_lines", "job_events")  # fmt: skip


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def archive(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    """A small archive on each kind of database; its server may be asked without end, and no time passes."""
    url: str | None = None
    if request.param == "postgres":
        cluster: Postgres = request.getfixturevalue("postgres")
        url = cluster.fresh()
        upgrade(url)
    built = build_archive(tmp_path_factory.mktemp("home"), _SHOTS, database_url=url)
    api = built.settings.api.model_copy(update={"rate_limiting": False})
    yield replace(built, settings=built.settings.model_copy(update={"api": api}), clock=FakeClock())
    built.database.close()


@contextmanager
def _statements(archive: Archive) -> Iterator[list[tuple[str, Any]]]:
    """Note every question that is asked of the database in this block."""
    noted: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, _many: bool) -> None:
        if statement.lstrip().upper().startswith(("SELECT", "WITH")):
            noted.append((statement, parameters))

    event.listen(archive.database.engine, "before_cursor_execute", note)
    try:
        yield noted
    finally:
        event.remove(archive.database.engine, "before_cursor_execute", note)


def _plan(archive: Archive, statement: str, parameters: Any) -> str:
    """Return how a statement would be done, by a planner that goes by an index wherever it can."""
    with archive.database.engine.connect() as connection:
        if archive.database.engine.dialect.name == "sqlite":
            rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters).all()
            return "\n".join(str(row[3]) for row in rows)
        connection.exec_driver_sql("SET enable_seqscan = off")
        return "\n".join(str(row[0]) for row in connection.exec_driver_sql(f"EXPLAIN {statement}", parameters).all())


def _walks(archive: Archive, statement: str, parameters: Any) -> list[str]:
    """Return what a plan reads from end to end."""
    shape = r"Seq Scan on (\w+)"
    if archive.database.engine.dialect.name == "sqlite":
        # What follows an index and stops at a limit reads no more than that.
        shape = r"SCAN (\w+)(?! USING)" if " LIMIT " in statement.upper() else r"SCAN (\w+)"
    found = re.findall(shape, _plan(archive, statement, parameters))
    return [name for name in found if name in _BIG]


def test_monitors_are_answered_from_what_was_counted_before(archive: Archive) -> None:
    """Neither a scrape nor a look at the health reads a row a run or a file; they did, once, when the server began."""
    with asking(archive) as watched:
        with _statements(archive) as first:
            before = [watched.get(path).json()["checks"] for path in ("/api/health?details=1", "/health?details=1")]
        with _statements(archive) as later:
            after = [watched.get(path).json()["checks"] for path in ("/api/health?details=1", "/health?details=1")]
            assert 'holdfast_jobs_total{status="completed"} 3.0' in watched.get("/metrics").text

    asked = " ".join(statement for statement, _ in later)
    assert "executions" in " ".join(statement for statement, _ in first)
    assert before == after
    assert not re.search(r"(FROM|JOIN) (executions|jobs|warc_files)\b", asked), asked


def test_the_crawls_of_a_source_and_the_captures_of_a_job_are_found_by_seeks(archive: Archive) -> None:
    with archive.database.read() as session:
        newest = newest_crawls(session, source_id=1, limit=1)
        every = newest_crawls(session, source_id=1, limit=200)
    with _statements(archive) as asked, archive.database.read() as session:
        newest_crawls(session, source_id=1, limit=200)
        captured = captured_by(session, job_id=1, limit=10, offset=0)

    assert (every[:1], len(every)) == (newest, 2)
    assert captured
    assert len(asked) == 3
    for statement, values in asked:
        assert _walks(archive, statement, values) == []
        assert "TEMP B-TREE FOR ORDER BY" not in _plan(archive, statement, values) or "walk" in statement


def test_a_scrape_seeks_the_totals_of_what_runs_and_the_last_minutes(archive: Archive) -> None:
    with _statements(archive) as asked, archive.database.read() as session:
        read_recorded(session, archive.clock)

    series = [(statement, values) for statement, values in asked if "FROM series " in statement]
    assert len(series) >= 3
    for statement, values in series:
        assert _walks(archive, statement, values) == [], _plan(archive, statement, values)
        assert re.search(r"ix_series_at|pk_series|autoindex_series", _plan(archive, statement, values))


def test_no_route_reads_a_large_table_from_end_to_end(archive: Archive) -> None:
    with archive.database.read() as session:
        number = session.scalars(select(Snapshot.id).where(Snapshot.url == _HOME).order_by(Snapshot.id)).first()
    paths = ["/", "/api/health?details=1", "/api/stats", "/api/sources", "/api/sources?lang=fr",
             f"/api/snapshot/{number}", "/api/sources/example/editions", "/metrics", "/api/usage",
             f"/api/snapshots/{number}/latest?requireHtml=1",
             "/api/replay/resolve?url=http://www.example.org/notes&timestamp=20240302000000",
             "/api/v1/jobs", "/api/v1/sources", "/api/v1/executions/1", "/api/v1/events", "/api/v1/events?job_id=1",
             "/api/v1/scheduler/metrics", "/api/v1/scheduler/distribution", "/api/admin/jobs", "/api/admin/jobs/1",
             "/api/admin/jobs?source=example", "/api/admin/jobs/1/snapshots", "/api/alerts", "/api/stats/timeseries",
             "/api/stats/timeseries?source=example", "/api/stats/timeseries?execution=1&hours=100",
             "/api/stats/activity"]  # fmt: skip
    with asking(archive) as client:
        for path in paths:
            client.get(path)
        with _statements(archive) as asked:
            for path in paths:
                assert client.get(path).status_code == 200, path

    walks = {statement: found for statement, values in asked if (found := _walks(archive, statement, values))}
    assert len(asked) > 30
    assert walks == {}
