"""Creates the models' schema in an empty database, or upgrades one with a schema from before the baseline.

New tables, columns and indexes come from the models. `_CHANGES` lists what a comparison with the models cannot
find: data that moves, and objects that change under the same name. The migrations from before the baseline are
in tests/migrations: a test upgrades each of their schemas both ways, and compares.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.schema import CreateColumn, CreateTable

from holdfast.clock import SystemClock, to_micros
from holdfast.db.models import ExecutionCount, Model, Page, SignalPage, Snapshot, Withdrawal
from holdfast.errors import UrlRefused
from holdfast.urls import page_key, parse_seed

BASELINE = "0031"
"""The oldest schema that has a migration; older ones are upgraded in one step."""

Step = Callable[[sa.Connection], None]

_BATCH = 5_000
_RENAMED = {"warc_files": ("path", "key")}
_DROPPED = {
    "feeds": ("lease_owner", "lease_epoch", "lease_until"),
    "withdrawals": ("url_hash",),
    "documents": ("simhash",),
    "webhook_deliveries": ("lease_token", "lease_until"),
    "jobs": ("lock_owner",),
}


def bring_up(connection: sa.Connection, found: str | None, later: Iterable[Step]) -> None:
    """Create missing objects, then move the data; `later` are the steps of the migrations after the baseline."""
    tables = Model.metadata.sorted_tables
    there = sa.inspect(connection).get_table_names()
    for table in tables:
        if table.name not in there:
            connection.execute(CreateTable(table))
    columns = _names(connection, sa.Inspector.get_columns)
    for name, (old, new) in _RENAMED.items():
        if old in columns[name]:
            connection.execute(sa.text(f"ALTER TABLE {name} RENAME COLUMN {old} TO {new}"))
            columns[name].add(new)
    for table in tables:
        for column in table.columns:
            if column.name not in columns[table.name]:
                definition = CreateColumn(column).compile(dialect=connection.dialect)
                connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {definition}")
    if found is not None:
        for step in (*(run for since, until, run in _CHANGES if since <= found < until), *later):
            step(connection)
    for name, dropped in _DROPPED.items():
        for column_name in columns[name].intersection(dropped):
            connection.execute(sa.text(f"ALTER TABLE {name} DROP COLUMN {column_name}"))
    indexes = _names(connection, sa.Inspector.get_indexes)
    for table in tables:
        for index in sorted(table.indexes, key=_index_order):
            if index.name not in indexes[table.name]:
                index.create(connection)


def _index_order(index: sa.Index) -> tuple[bool, str]:
    """Sort partial indexes last: of two that fit equally, SQLite uses the one created later."""
    return index.dialect_options["sqlite"]["where"] is not None, str(index.name)


def _names(connection: sa.Connection, listed: Callable[[sa.Inspector, str], Any]) -> dict[str, set[str]]:
    inspector = sa.inspect(connection)
    return {name: {str(one["name"]) for one in listed(inspector, name)} for name in Model.metadata.tables}


def _sql(*statements: str) -> Step:
    def run(connection: sa.Connection) -> None:
        for statement in statements:
            connection.execute(sa.text(statement))

    return run


def _drop_indexes(*names: str) -> Step:
    """Drop removed or changed indexes; those of the models are created at the end."""
    return _sql(*(f"DROP INDEX IF EXISTS {name}" for name in names))


def _key_snapshots(connection: sa.Connection) -> None:
    """Store page keys that differ from the URL key: only URLs with a query or request data can have one."""
    wanted = sa.select(Snapshot.id, Snapshot.url, Snapshot.url_key).where(
        sa.or_(Snapshot.url.like("%?%"), Snapshot.method.is_not(None))
    )
    _fill(connection, wanted, Snapshot.id, Snapshot.page_key)


def _key_signal_pages(connection: sa.Connection) -> None:
    wanted = sa.select(SignalPage.page_id, Page.url, sa.null()).join(Page, Page.id == SignalPage.page_id)
    _fill(connection, wanted, SignalPage.page_id, SignalPage.page_key)


def _fill(connection: sa.Connection, wanted: sa.Select[*tuple[Any, ...]], number: Any, filled: Any) -> None:
    """Store the page key of each selected (number, URL, URL key) where it differs from the URL key, in batches."""
    put = sa.update(number.table).where(number == sa.bindparam("number")).values({filled: sa.bindparam("key")})
    after = -1
    while rows := connection.execute(wanted.where(number > after).order_by(number).limit(_BATCH)).all():
        keyed = [(row[0], page_key(row[1]), row[2]) for row in rows]
        if apart := [{"number": row_id, "key": key} for row_id, key, own in keyed if key != own]:
            connection.execute(put, apart)
        after = rows[-1][0]


def _key_withdrawals(connection: sa.Connection) -> None:
    """Merge takedowns to one row per request: older schemas had a row for every known spelling of a URL."""
    asked = (
        "SELECT id, url_hash, subject, created_at, lifted_at FROM withdrawals WHERE url_hash IS NOT NULL ORDER BY id"
    )
    seen: set[tuple[Any, ...]] = set()
    for row_id, url_hash, subject, *times in connection.execute(sa.text(asked)).all():
        url = connection.scalar(sa.select(Snapshot.url).where(Snapshot.url_hash == url_hash).limit(1))
        key = page_key(_address(subject) if url is None else url)
        request = (key, subject, *times)
        if request in seen:
            connection.execute(sa.delete(Withdrawal).where(Withdrawal.id == row_id))
        else:
            connection.execute(sa.update(Withdrawal).where(Withdrawal.id == row_id).values(url_key=key))
        seen.add(request)


def _address(subject: str) -> str:
    try:
        return parse_seed(subject).fetch
    except UrlRefused:
        return subject


_OUTCOMES = ("success", "failed", "timeout", "blocked_robots", "blocked_4xx", "blocked_5xx", "excluded")
_TOTALS = ("pages", "requests", "bytes", "retries", *_OUTCOMES, "queue")


def _fill_totals(connection: sa.Connection) -> None:
    """Initialize the totals from existing counts: counters must not fall to zero with an upgrade."""
    totals: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for number, counts in connection.execute(sa.select(ExecutionCount.execution_id, ExecutionCount.counts)):
        totals[number].update({name: int(counts.get(name, 0)) for name in ("pages", "requests", "bytes", "retries")})
        totals[number].update({name: int(counts.get("outcomes", {}).get(name, 0)) for name in _OUTCOMES})
    # Runs of a tool: its processes kept no totals.
    reported = (
        "SELECT id, items_crawled, items_failed FROM executions e WHERE (items_crawled > 0 OR items_failed > 0)"
        " AND NOT EXISTS (SELECT 1 FROM execution_counts c WHERE c.execution_id = coalesce(e.frontier_id, e.id))"
    )
    for number, crawled, failed in connection.execute(sa.text(reported)):
        totals[number] = Counter(pages=crawled, success=crawled, failed=failed)
    waiting = "SELECT execution_id, sum(open) FROM queues WHERE open > 0 GROUP BY execution_id"
    for number, count in connection.execute(sa.text(waiting)):
        totals[number]["queue"] = int(count)
    rows = [
        {"execution_id": number, "step_s": 0, "at": 0, **{name: max(0, total[name]) for name in _TOTALS}}
        for number, total in totals.items()
    ]
    table = sa.table("series", *(sa.column(name) for name in ("execution_id", "step_s", "at", *_TOTALS)))
    if rows:
        connection.execute(sa.insert(table), rows)


def _separate_duplicates(connection: sa.Connection) -> None:
    """Undo duplicates across sources; queue the corrected rows for changes and search.

    Captures of one source that name the same foreign capture share address, day and body: the earliest of them
    becomes canonical.
    """
    _sql(
        "CREATE TEMPORARY TABLE wrong AS SELECT s.id,"
        " FIRST_VALUE(s.id) OVER (PARTITION BY s.source_id, s.canonical_id ORDER BY s.captured_at, s.id) AS first_id"
        " FROM snapshots s JOIN snapshots c ON c.id = s.canonical_id WHERE c.source_id <> s.source_id",
        "UPDATE snapshots SET canonical_id = NULLIF(w.first_id, w.id), compared = (1 = 0)"
        " FROM wrong AS w WHERE snapshots.id = w.id",
    )(connection)
    outbox = (
        "INSERT INTO search_outbox(kind, first_id, last_id, refs, created_at)"
        " SELECT 'snapshots', MIN(id), MAX(id), '{}', :now FROM wrong GROUP BY id / 256"
    )
    connection.execute(sa.text(outbox), {"now": to_micros(SystemClock().now())})
    connection.execute(sa.text("DROP TABLE wrong"))


# Each step applies to databases from the first schema number up to, but not including, the second.
_CHANGES: tuple[tuple[str, str, Step], ...] = (
    ("0001", "0003", _drop_indexes("uq_executions_open")),
    ("0002", "0005", _drop_indexes("ix_changes_page", "ix_changes_execution")),
    ("0002", "0006", _key_snapshots),
    ("0004", "0006", _key_signal_pages),
    ("0002", "0006", _key_withdrawals),
    ("0002", "0006", _drop_indexes("ix_withdrawals_url")),
    # An open attempt's priority encoded both: ten for each redirect, and one for each generation above 4.
    (
        "0001",
        "0007",
        _sql(
            "UPDATE page_crawls SET hops = priority / 10 WHERE outcome IS NULL AND priority >= 10",
            "UPDATE page_crawls SET generation = priority % 10 - 4"
            " WHERE outcome IS NULL AND kind = 'requisite' AND priority % 10 > 4",
        ),
    ),
    ("0002", "0011", _drop_indexes("ix_changes_execution_told", "ix_changes_source_told", "ix_changes_moment_told")),
    # Existing captures are classified after new ones: one range for each file. Capture ids consist of the file's number
    # and 22 lower bits.
    (
        "0002",
        "0011",
        _sql(
            "INSERT INTO noise_queue(first_id, last_id) SELECT id * 4194304, id * 4194304 + 4194303"
            " FROM warc_files WHERE index_state = 'indexed' ORDER BY id"
        ),
    ),
    ("0002", "0013", _sql("UPDATE noise_queue SET late = true WHERE last_id - first_id = 4194303")),
    # Versions before 3 extracted neither word count nor page type, so both become NULL. SQLite cannot alter a column,
    # so a new one replaces each.
    (
        "0010",
        "0014",
        _sql(
            "ALTER TABLE documents ADD COLUMN words_read INTEGER",
            "ALTER TABLE documents ADD COLUMN type_read VARCHAR(16)",
            "UPDATE documents SET words_read = word_count, type_read = page_type WHERE version >= 3",
            "ALTER TABLE documents DROP COLUMN word_count",
            "ALTER TABLE documents DROP COLUMN page_type",
            "ALTER TABLE documents RENAME COLUMN words_read TO word_count",
            "ALTER TABLE documents RENAME COLUMN type_read TO page_type",
        ),
    ),
    (
        "0010",
        "0014",
        _sql("DELETE FROM link_texts WHERE NOT EXISTS (SELECT 1 FROM snapshots s WHERE s.id = link_texts.snapshot_id)"),
    ),
    # The newest good capture of a page must show the page itself.
    (
        "0011",
        "0014",
        _sql(
            "UPDATE page_groups SET latest_ok_id = (SELECT s.id FROM snapshots s WHERE s.group_id = page_groups.id"
            " AND (s.status BETWEEN 200 AND 299 OR (s.status = 304 AND s.record_type = 'revisit')) AND s.noise IS NULL"
            " ORDER BY s.captured_at DESC, s.id DESC LIMIT 1)"
            " WHERE id IN (SELECT n.group_id FROM snapshots n WHERE n.noise IS NOT NULL AND n.group_id IS NOT NULL)"
        ),
    ),
    ("0001", "0019", _fill_totals),
    ("0002", "0028", _separate_duplicates),
)
