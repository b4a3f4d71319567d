"""Statements over a whole run are read in slices: no run is too large for its end; on both databases."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from holdfast.crawl.stopping import Stops
from holdfast.crawl.supervisor import Supervisor
from holdfast.db import connect
from holdfast.db.postgres import PostgresRawDatabase
from holdfast.db.raw import RawDatabase, StatementTimeout
from holdfast.db.run_slices import IN_SLICE, in_slices
from holdfast.frontier import Frontier, queries
from holdfast.jobs import execution_queries
from holdfast.jobs.executions import read_ending
from tests.clock import FakeClock
from tests.execution import begun_execution

_SERIES = {
    "postgresql": "SELECT g AS i FROM generate_series(1, {rows}) g",
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) SELECT i FROM n",
}
# Every hundredth page failed, every thousandth on a host that was given up: hosts are stretches of 1,000 pages.
_CRAWLS = """
INSERT INTO page_crawls (execution_id, domain_id, page_id, attempt, kind, priority, depth, created_at, started_at,
                         completed_at, outcome, reason, status_code)
SELECT 1, 1 + i / 1000, i, 1, 'page', 1, 1, 0, 0, 5000,
       CASE WHEN i % 100 = 0 THEN 'failed' ELSE 'success' END,
       CASE WHEN i % 1000 = 0 THEN 'domain_unreachable' WHEN i % 100 = 0 THEN 'dns' ELSE 'ok' END,
       CASE WHEN i % 100 = 0 THEN NULL ELSE 200 END FROM ({series}) s"""
_RETRIES = """
INSERT INTO page_crawls (execution_id, domain_id, page_id, attempt, kind, priority, depth, created_at, started_at,
                         completed_at, outcome, reason, status_code)
SELECT execution_id, domain_id, page_id, 2, kind, priority, depth, 0, 0, 7000, 'success', 'ok', 200
  FROM page_crawls WHERE page_id % 100 = 0 AND page_id % 1000 = 500"""


def _fill(raw_db: RawDatabase, rows: int) -> None:
    """Make a run of so many pages; one in a thousand succeeded at the second attempt."""
    with raw_db.write() as tx:
        tx.execute(_CRAWLS.format(series=_SERIES[raw_db.dialect].format(rows=rows)))
        tx.execute(_RETRIES)
        tx.execute("INSERT INTO queues (execution_id, domain_id, open, failed, due_at)"
                   " SELECT 1, domain_id, 0, 9, 0 FROM page_crawls GROUP BY domain_id")  # fmt: skip
        tx.execute("INSERT INTO domains (id, name, created_at) SELECT domain_id, 'h' || domain_id, 0 FROM queues")


@pytest.fixture
def raw_db(migrated_url: str) -> Iterator[RawDatabase]:
    """An open connection."""
    with closing(connect(migrated_url)) as opened:
        yield opened


def test_run_ending_counts_each_address_and_host_once(raw_db: RawDatabase) -> None:
    _fill(raw_db, 45_000)

    reading = read_ending(raw_db, Path(), execution_id=1)

    assert (reading.reason, reading.shortfalls) == ("hosts_given_up", {"hosts_given_up": 45})
    groups = {(one.outcome, one.reason): one for one in execution_queries.ended_as(raw_db, frontier_id=1)}
    captured = groups["success", "ok"]
    assert (captured.addresses, captured.domains, captured.statuses) == (44_595, 46 - 1, 44_595)
    assert groups["failed", "dns"].addresses == 45_000 // 100 - 2 * 45


def test_run_summary_adds_up_all_slices(raw_db: RawDatabase) -> None:
    _fill(raw_db, 45_000)

    found = queries.summary(raw_db, 1)

    assert (found.total, found.outcomes) == (45_000, {"success": 44_595, "failed": 405})
    assert (len(found.domains), found.domains["h2"], found.statuses) == (46, 1000, {200: 44_595})
    assert found.response_ms == (5.0, 5.0, 7.0)


def test_failures_of_a_run_stop_at_the_limit(raw_db: RawDatabase) -> None:
    _fill(raw_db, 2_000)
    with raw_db.write() as tx:
        tx.execute("INSERT INTO pages (id, domain_id, url_hash, url, created_at)"
                   " SELECT DISTINCT page_id, domain_id, page_id, 'http://h/' || page_id, 0"
                   " FROM page_crawls")  # fmt: skip

    first = queries.failures(raw_db, execution_id=1, limit=3)
    everything = queries.failures(raw_db, execution_id=1, limit=100)

    assert [row[0] for row in first] == ["http://h/100", "http://h/200", "http://h/300"]
    assert len(everything) == 2_000 // 100 - 2, "two were captured at the second attempt"


def test_slice_shrinks_when_a_statement_times_out(migrated_postgres: str) -> None:
    slow = f"SELECT count(*), pg_sleep(CASE WHEN count(*) > 400 THEN 60 ELSE 0 END) FROM page_crawls c WHERE {IN_SLICE}"
    with closing(PostgresRawDatabase(migrated_postgres)) as filling:
        _fill(filling, 1_500)
    with closing(PostgresRawDatabase(migrated_postgres, statement_s=1)) as raw_db:
        attempts = [rows[0][0] for rows in in_slices(raw_db, slow, 1)]

    assert attempts == [312, 312, 312, 312, 254]


def test_slices_end_with_an_error_when_the_smallest_times_out(migrated_postgres: str) -> None:
    hopeless = f"SELECT pg_sleep(5) FROM page_crawls c WHERE {IN_SLICE}"
    with closing(PostgresRawDatabase(migrated_postgres)) as filling:
        _fill(filling, 10)
    with (
        closing(PostgresRawDatabase(migrated_postgres, statement_s=0.2)) as raw_db,
        pytest.raises(StatementTimeout, match="took the database longer than 30 s"),
    ):
        list(in_slices(raw_db, hopeless, 1))


def test_run_whose_conclusion_times_out_ends_with_an_error(migrated_postgres: str, tmp_path: Path) -> None:
    """A table that another transaction has locked is what a too large one looks like: each statement times out."""
    with begun_execution(tmp_path, migrated_postgres) as made:
        stops = Stops()
        stops.ask(1)
        with closing(PostgresRawDatabase(migrated_postgres, statement_s=0.3)) as impatient:
            runtime = replace(made.runtime, raw_db=impatient)
            supervisor = Supervisor(runtime, made.begun, made.plan, workers=1, show=lambda status: None)
            with psycopg.connect(migrated_postgres) as other:
                other.execute("LOCK TABLE execution_counts IN ACCESS EXCLUSIVE MODE")
                with pytest.raises(StatementTimeout):
                    supervisor.crawl(stops, epoch=1)


@pytest.mark.soak
@pytest.mark.postgres
def test_run_of_five_million_attempts_ends_on_postgres(migrated_postgres: str, clock: FakeClock) -> None:
    rows = 5_000_000
    with closing(PostgresRawDatabase(migrated_postgres, statement_s=600)) as filling:
        _fill(filling, rows)

    with closing(connect(migrated_postgres)) as raw_db:
        began = time.monotonic()
        reading = read_ending(raw_db, Path(), execution_id=1)
        print(f"ending {time.monotonic() - began:.1f} s")
        assert reading.shortfalls == {"hosts_given_up": rows // 1000}
        began = time.monotonic()
        assert queries.summary(raw_db, 1).total == rows
        print(f"summary {time.monotonic() - began:.1f} s")
        began = time.monotonic()
        assert Frontier(raw_db, clock).reopen(1) > rows // 1000
        print(f"reopen {time.monotonic() - began:.1f} s")
