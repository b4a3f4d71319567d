"""How fast the frontier is when it knows many URLs: `python -m bench.frontier [--rows N] [--postgres URL]`.

Prints one JSON object a line. `add` inserts batches of 5,000 found addresses on 20 hosts, 60 % of them known, into the
tables as shipped; `hashed` does the same with a table keyed by the URL's hash, in the same run. `visit` leases domains
and settles their pages, at this many known URLs and at 100,000. Files are removed afterwards.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from holdfast.clock import SystemClock
from holdfast.db.migrate import upgrade
from holdfast.db.postgres import PostgresRawDatabase
from holdfast.db.raw import RawDatabase, SqliteRawDatabase, Transaction
from holdfast.frontier import Frontier
from holdfast.types import CircuitState, DomainLease, DomainUpdate, FoundUrl, Outcome, RecordRef, UrlKind, Visit
from tests.frontier_audit import audit

BATCH = 5_000
HOSTS_A_BATCH = 20
KNOWN_SHARE = 0.6
ROUND = 500_000
EXECUTION = 1

_NUMBERS = {
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
    " SELECT 1 + abs(random()) % ? AS d, random() AS h FROM n ORDER BY d, h",
    "postgresql": "SELECT 1 + floor(random() * $2)::bigint AS d, ((random() - 0.5) * 1.8e19)::bigint AS h"
    " FROM generate_series(1, $1) ORDER BY d, h",
}
_PAGES = (
    "INSERT INTO pages (domain_id, url_hash, url, created_at) SELECT d, h,"
    " 'https://host-' || d || '.example/section/' || abs(h % 97) || '/article-' || abs(h % 1000000007) || '.html', 0"
    " FROM ({numbers}) a WHERE true ON CONFLICT DO NOTHING"
)
_CRAWLS = (
    "INSERT INTO page_crawls (execution_id, domain_id, page_id, attempt, kind, priority, depth, created_at, outcome,"
    " reason, completed_at) SELECT 1, domain_id, id, 1, 'page', 1 + id % 3, 3, 0,"
    " CASE WHEN id % 2 = 0 THEN 'success' END, 'ok', 0 FROM pages WHERE id > ? ORDER BY id"
)


def seed(raw_db: RawDatabase, rows: int, hosts: int) -> None:
    """Fill the tables: every second page was fetched, pages of a host lie scattered over twenty rounds."""
    numbers = _NUMBERS[raw_db.dialect]
    with raw_db.write() as tx:
        tx.many("INSERT INTO domains (id, name, created_at) VALUES (?, ?, 0)",
                [(host, f"host-{host}.example") for host in range(1, hosts + 1)])  # fmt: skip
    left = rows
    while left > 0:
        size = min(left, ROUND, max(rows // 20, 1))
        with raw_db.write() as tx:
            last = tx.execute("SELECT coalesce(max(id), 0) FROM pages")[0][0]
            if raw_db.dialect == "postgresql":
                literal = numbers.replace("$1", str(size)).replace("$2", str(hosts))
                tx.execute(_PAGES.replace("{numbers}", literal))
            else:
                tx.execute(_PAGES.replace("{numbers}", numbers), (size, hosts))
            tx.execute(_CRAWLS, (last,))
        left -= size
    with raw_db.write() as tx:
        tx.execute(
            "INSERT INTO queues (execution_id, domain_id, open, succeeded, due_at) SELECT 1, domain_id,"
            " sum(CASE WHEN outcome IS NULL THEN 1 ELSE 0 END), sum(CASE WHEN outcome IS NULL THEN 0 ELSE 1 END), 0"
            " FROM page_crawls GROUP BY domain_id"
        )


def batches(raw_db: RawDatabase, hosts: int, count: int) -> Iterator[list[FoundUrl]]:
    """Yield batches to add, each made just before, as in a crawl: 20 hosts, 60 % known, in no order."""
    dice = random.Random(5)
    per_host = BATCH // HOSTS_A_BATCH
    for _ in range(count):
        batch = []
        for host in dice.sample(range(1, hosts + 1), HOSTS_A_BATCH):
            with raw_db.read() as tx:
                rows = tx.execute("SELECT url, url_hash FROM pages WHERE domain_id = ? LIMIT 5000", (host,))
            known = dice.sample(rows, min(len(rows), int(per_host * KNOWN_SHARE)))
            new = [(f"https://host-{host}.example/new/{h:x}.html", h - 2**63)
                   for h in (dice.getrandbits(64) for _ in range(per_host - len(known)))]  # fmt: skip
            batch += [FoundUrl(url, h, f"host-{host}.example", UrlKind.PAGE, 4, 1 + h % 3) for url, h in [*known, *new]]
        dice.shuffle(batch)
        yield batch


class Timed:
    """A raw connection that remembers its longest write transaction."""

    def __init__(self, raw_db: RawDatabase) -> None:
        self._raw_db = raw_db
        self.dialect, self.generation = raw_db.dialect, raw_db.generation
        self.read, self.now_micros, self.close = raw_db.read, raw_db.now_micros, raw_db.close
        self.worst_s = 0.0

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        with self._raw_db.write() as tx:
            began = time.perf_counter()
            yield tx
        self.worst_s = max(self.worst_s, time.perf_counter() - began)


def measure(name: str, rows: int, work: Iterator[Callable[[], int]], **facts: Any) -> dict[str, Any]:
    """Run pieces of work and print one figure: rows a second, microseconds a row by the clock and of our own CPU.

    What a piece needs is made between two pieces and not counted.
    """
    done, took, used = 0, 0.0, 0.0
    for piece in work:
        cpu, began = time.process_time(), time.perf_counter()
        done += piece()
        took, used = took + time.perf_counter() - began, used + time.process_time() - cpu
    figure = {
        "name": name, "known": rows, "rows": done, "rows_per_s": round(done / took),
        "us_per_row": round(took / done * 1e6, 2), "cpu_us_per_row": round(used / done * 1e6, 2), **facts,
    }  # fmt: skip
    print(json.dumps(figure), flush=True)
    return figure


def add(raw_db: RawDatabase, rows: int, given: Iterator[list[FoundUrl]]) -> dict[str, Any]:
    """Add the batches to the shipped tables."""
    timed = Timed(raw_db)
    frontier = Frontier(timed, SystemClock())
    frontier.add(EXECUTION, next(given))  # the first one makes temporary tables

    def insert(batch: list[FoundUrl]) -> int:
        frontier.add(EXECUTION, batch)
        return len(batch)

    timed.worst_s = 0.0
    figure = measure("add", rows, (partial(insert, batch) for batch in given), database=raw_db.dialect)
    print(json.dumps({"name": "add.longest_transaction", "known": rows, "ms": round(timed.worst_s * 1000)}))
    return figure


def hashed(folder: Path, raw_db: RawDatabase, rows: int, given: Iterator[list[FoundUrl]]) -> dict[str, Any]:
    """Add the same batches to a table whose key is the hash, with a queue index, as one would write it at first."""
    path = folder / "hashed.db"
    plain = SqliteRawDatabase(path)
    with plain.write() as tx:
        tx.execute(
            "CREATE TABLE urls (hash INTEGER PRIMARY KEY, domain_id BIGINT, url TEXT, kind TEXT, priority INTEGER,"
            " depth INTEGER, due_at BIGINT, status INTEGER NOT NULL DEFAULT 0, created_at BIGINT)"
        )
    plain.close()
    copy = sqlite3.connect(path, isolation_level=None)
    copy.execute("PRAGMA cache_size = -1000000")
    copy.execute("PRAGMA synchronous = OFF")
    copy.execute("ATTACH ? AS filled", (str(folder / "holdfast.db"),))
    copy.execute(
        "INSERT OR IGNORE INTO urls SELECT p.url_hash, p.domain_id, p.url, 'page', 1 + p.id % 3, 3, 0, p.id % 2, 0"
        " FROM filled.pages p WHERE p.id <= ? ORDER BY p.url_hash", (rows,),
    )  # fmt: skip
    copy.execute("CREATE INDEX ix_urls_queue ON urls (priority DESC, due_at) WHERE status = 0")
    copy.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    copy.close()
    os.sync()
    plain = SqliteRawDatabase(path)

    def insert(batch: list[FoundUrl]) -> int:
        values = [(f.url_hash, 1, f.url, f.kind.value, f.priority, f.depth, 0, 0) for f in batch]
        with plain.write() as tx:
            tx.many("INSERT OR IGNORE INTO urls (hash, domain_id, url, kind, priority, depth, due_at, created_at)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)  # fmt: skip
        return len(batch)

    figure = measure("hashed", rows, (partial(insert, batch) for batch in given), database=raw_db.dialect)
    plain.close()
    path.unlink()
    return figure


def visit(raw_db: RawDatabase, rows: int, *, pages: int) -> dict[str, Any]:
    """Lease 20 domains with 10 pages each, settle all 200 in one transaction, give the domains back; and again."""
    clock = SystemClock()
    timed = Timed(raw_db)
    frontier = Frontier(timed, clock)

    def work() -> int:
        done = 0
        while done < pages:
            leases = frontier.lease(EXECUTION, 7, domains=20, pages=10)
            if not leases:
                break
            visits = [_visit(lease, number) for lease in leases for number in range(len(lease.attempts))]
            done += frontier.settle(EXECUTION, 7, visits, counts=partial(_totals, done)).closed
            frontier.release(EXECUTION, 7, [_update(lease) for lease in leases])
        return done

    def _totals(pages: int, *_: Any) -> dict[str, int]:
        return {"pages": pages}

    def _visit(lease: DomainLease, number: int) -> Visit:
        attempt, now = lease.attempts[number], clock.now()
        return Visit(attempt=attempt, token=lease.token, outcome=Outcome.SUCCESS, reason="ok", status=200, title="T",
                     started_at=now, finished_at=now, media_type="text/html", wire_bytes=50_000, requests=1,
                     language="en", record=RecordRef(1, attempt.id * 1000, 900, attempt.id), etag='"abcdef"',
                     payload_digest="sha256:" + "0" * 64, content_hash="sha256:" + "1" * 64)  # fmt: skip

    def _update(lease: DomainLease) -> DomainUpdate:
        return DomainUpdate(domain_id=lease.domain_id, token=lease.token, circuit=CircuitState(),
                            next_allowed_at=clock.now() - timedelta(seconds=1))  # fmt: skip

    frontier.open_count(EXECUTION)
    figure = measure("visit", rows, iter([work]), database=raw_db.dialect)
    print(json.dumps({"name": "visit.longest_transaction", "known": rows, "ms": round(timed.worst_s * 1000)}))
    return figure


def run(url: str, folder: Path, *, rows: int, hosts: int, count: int) -> None:
    """Measure one database with so many known URLs."""
    upgrade(url)
    filling: Any = (
        SqliteRawDatabase(folder / "holdfast.db")
        if url.startswith("sqlite")
        else PostgresRawDatabase(url, statement_s=3600)
    )
    began = time.perf_counter()
    if filling.dialect == "sqlite":
        filling._connection.execute("PRAGMA synchronous = OFF")
        filling._connection.execute("PRAGMA cache_size = -1000000")
    seed(filling, rows, hosts)
    if filling.dialect == "postgresql":
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")
    filling.close()
    os.sync()  # gigabytes that the kernel still has to write are not what is measured
    print(json.dumps({"name": "seed", "known": rows, "seconds": round(time.perf_counter() - began, 1)}), flush=True)
    raw_db: Any = SqliteRawDatabase(folder / "holdfast.db") if url.startswith("sqlite") else PostgresRawDatabase(url)
    ours = add(raw_db, rows, batches(raw_db, hosts, count))
    if raw_db.dialect == "sqlite":
        theirs = hashed(folder, raw_db, rows, batches(raw_db, hosts, count))
        print(
            json.dumps(
                {"name": "add.ratio", "known": rows, "times": round(ours["rows_per_s"] / theirs["rows_per_s"], 1)}
            )
        )
    visit(raw_db, rows, pages=10_000)
    if rows <= 1_000_000:
        broken = audit(raw_db, EXECUTION)
        if broken:
            sys.exit(f"the tables are not sound: {broken}")
    raw_db.close()


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(prog="python -m bench.frontier", description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000, help="known URLs")
    parser.add_argument("--hosts", type=int, default=0, help="hosts that they lie on (a two-thousandth of the rows)")
    parser.add_argument("--batches", type=int, default=40, help="batches of 5,000 to add")
    parser.add_argument("--postgres", help="an empty database to measure instead of SQLite")
    parser.add_argument("--folder", type=Path, help="where to put the files")
    options = parser.parse_args()
    for rows in (100_000, options.rows):
        hosts = options.hosts or max(rows // 2000, HOSTS_A_BATCH * 2)
        folder = Path(tempfile.mkdtemp(prefix="bench-frontier-", dir=options.folder))
        try:
            if options.postgres:
                with psycopg.connect(options.postgres, autocommit=True) as connection:
                    connection.execute("DROP SCHEMA public CASCADE")
                    connection.execute("CREATE SCHEMA public")
            url = options.postgres or f"sqlite:///{folder / 'holdfast.db'}"
            run(url, folder, rows=rows, hosts=hosts, count=options.batches if rows == options.rows else 4)
        finally:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
