"""Statements for the row of an execution while it is crawled. Plain SQL, so that a crawl process stays small."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple

from holdfast.clock import from_micros, moment_or_none
from holdfast.db.raw import IS_LAST_ATTEMPT, RawDatabase, Row, Transaction
from holdfast.db.run_slices import IN_SLICE, in_slices
from holdfast.jobs.endings import EndedAs
from holdfast.jobs.kinds import OF_SOURCE
from holdfast.records import Operator, record


class ExecutionEnding(NamedTuple):
    """How an execution ended: completed, stopped (resumable), cancelled or failed."""

    execution_id: int
    state: str
    reason: str | None
    shortfalls: Mapping[str, int] = MappingProxyType({})
    error: str | None = None
    index_state: str | None = None
    """`pending` if there are files to index."""


class RunOrders(NamedTuple):
    stop: str | None
    """`drain`, `cancel`, or None."""
    landing: tuple[str, ...]
    """Where its seeds landed, as recorded by any process."""
    exclusions: tuple[str, ...]
    """Exclude rules added by an operator since the start."""
    is_paused: bool = False
    """Whether an operator paused it."""


# Read both in one query: this runs twice a second, and a plan may have 100,000 seeds.
_ADDED = {
    "sqlite": "json_extract(config, '$.landing', '$.exclusions')",
    "postgresql": "jsonb_build_array(config->'landing', config->'exclusions')",
}


def run_orders(tx: Transaction, dialect: str, *, execution_id: int) -> RunOrders:
    """Return the instructions to an execution since its start, without reading its whole plan."""
    rows = tx.execute(
        f"SELECT stop_requested, {_ADDED[dialect]}, paused_at IS NOT NULL FROM executions WHERE id = ?",  # noqa: S608 - constants above
        (execution_id,),
    )
    # An execution without a row was discarded: its processes discard what they have.
    if not rows:
        return RunOrders("cancel", (), ())
    landing, exclusions = json.loads(rows[0][1]) if isinstance(rows[0][1], str) else rows[0][1]
    return RunOrders(rows[0][0], tuple(landing or ()), tuple(exclusions or ()), bool(rows[0][2]))


# Use one statement: a process may be adding landing places to the same column.
_SET_EXCLUSIONS = {
    "sqlite": "UPDATE executions SET config = json_set(config, '$.exclusions', json(?)) WHERE id = ?"
    " AND state = 'running' RETURNING id",
    "postgresql": "UPDATE executions SET config = jsonb_set(config, '{exclusions}', ?::jsonb) WHERE id = ?"
    " AND state = 'running' RETURNING id",
}


def set_exclusions(tx: Transaction, dialect: str, *, execution_id: int, rules: Sequence[str]) -> bool:
    """Store the exclude rules added to a running crawl; return False if it does not run."""
    return bool(tx.execute(_SET_EXCLUSIONS[dialect], (json.dumps(list(rules)), execution_id)))


# Use one statement: then neither of two concurrent reports is lost, and a plan of 100,000 seeds is not read.
_ADD_LANDING = {
    "sqlite": "UPDATE executions SET config = json_set(config, '$.landing', json((SELECT json_group_array(value)"
    " FROM (SELECT value FROM json_each(config, '$.landing') UNION SELECT value FROM json_each(?) ORDER BY 1))))"
    " WHERE id = ?",
    "postgresql": "UPDATE executions SET config = jsonb_set(config, '{landing}',"
    " (SELECT coalesce(jsonb_agg(value ORDER BY value), '[]')"
    " FROM (SELECT jsonb_array_elements_text(coalesce(config->'landing', '[]')) UNION"
    " SELECT jsonb_array_elements_text(?::jsonb)) AS known (value))) WHERE id = ?",
}


def add_landing(tx: Transaction, dialect: str, *, execution_id: int, urls: Sequence[str]) -> None:
    tx.execute(_ADD_LANDING[dialect], (json.dumps(list(urls)), execution_id))


def is_leased(tx: Transaction, *, execution_id: int, epoch: int) -> bool:
    """Return whether the lease with this epoch still holds an execution's job."""
    rows = tx.execute(
        "SELECT 1 FROM executions e JOIN jobs j ON j.id = e.job_id"
        " WHERE e.id = ? AND j.lock_epoch = ? AND j.lock_token IS NOT NULL",
        (execution_id, epoch),
    )
    return bool(rows)


def totals_of_others(tx: Transaction, *, execution_id: int, owner_id: int) -> list[Any]:
    rows = tx.execute(
        "SELECT counts FROM execution_counts WHERE execution_id = ? AND owner_id <> ?", (execution_id, owner_id)
    )
    return [row[0] for row in rows]


def store_config(tx: Transaction, *, execution_id: int, config: str) -> None:
    """Replace the stored configuration of an execution (JSON text)."""
    tx.execute("UPDATE executions SET config = ? WHERE id = ?", (config, execution_id))


def note_artifacts(tx: Transaction, *, execution_id: int, found: Mapping[str, str]) -> None:
    rows = tx.execute("SELECT artifacts FROM executions WHERE id = ?", (execution_id,))
    merged = {**(from_json(rows[0][0]) if rows else {}), **found}
    tx.execute("UPDATE executions SET artifacts = ? WHERE id = ?", (json.dumps(merged), execution_id))


OPEN = ("running", "stopped")
"""States of an execution that the same command resumes."""


class ExecutionRow(NamedTuple):
    id: int
    job_id: int
    source: str
    state: str
    reason: str | None
    stop_requested: str | None
    config: dict[str, Any]
    output_dir: str
    started_at: datetime | None
    finished_at: datetime | None
    run_seconds: float
    shortfalls: dict[str, Any]
    error: str | None
    frontier_id: int
    """The execution whose frontier it uses: its own, or the one that it retries."""
    retry_at: datetime | None
    """When its job is retried, if set."""
    held_since: datetime | None
    """Since when a worker holds its job; None for a standalone crawl, and while no worker does."""
    heard_at: datetime | None
    """Last heartbeat of that worker."""
    paused_at: datetime | None
    """Since when an operator has paused it."""
    paused_by: str | None
    paused_seconds: float
    """Total length of earlier pauses."""
    items_crawled: int
    """Pages that it reported itself: the only count if no process of ours has totals (zimit)."""


_EXECUTION = """
SELECT e.id, e.job_id, s.code, e.state, e.reason, e.stop_requested, e.config, e.output_dir, e.started_at, e.finished_at,
       e.run_seconds, e.shortfalls, e.error, coalesce(e.frontier_id, e.id),
       CASE WHEN j.current_retry_count + j.infra_retry_count > 0 THEN j.next_run_at END,
       j.lock_acquired_at, j.lock_heartbeat_at, e.paused_at, e.paused_by, e.paused_seconds,
       e.items_crawled
  FROM executions e JOIN jobs j ON j.id = e.job_id JOIN sources s ON s.id = j.source_id"""


def _execution(rows: list[Row]) -> ExecutionRow | None:
    if not rows:
        return None
    # SQLite returns JSON as text, PostgreSQL as values; moments are microseconds in both.
    found = ExecutionRow(*rows[0])
    return found._replace(
        config=from_json(found.config),
        started_at=moment_or_none(rows[0][8]),
        finished_at=moment_or_none(rows[0][9]),
        shortfalls=from_json(found.shortfalls),
        retry_at=moment_or_none(rows[0][14]),
        held_since=moment_or_none(rows[0][15]),
        heard_at=moment_or_none(rows[0][16]),
        paused_at=moment_or_none(rows[0][17]),
    )


def execution(tx: Transaction, execution_id: int) -> ExecutionRow | None:
    return _execution(tx.execute(f"{_EXECUTION} WHERE e.id = ?", (execution_id,)))


def runs_before(tx: Transaction, *, execution_id: int) -> list[int]:
    """Return the executions that this one continues in the same directory, newest first."""
    rows = tx.execute(
        # `e.id < c.id` ends the walk even if the rows form a circle.
        "WITH RECURSIVE chain(id, before) AS (SELECT id, resumed_from FROM executions WHERE id = ?"
        " UNION ALL SELECT e.id, e.resumed_from FROM executions e JOIN chain c ON e.id = c.before AND e.id < c.id)"
        " SELECT id FROM chain WHERE id <> ? ORDER BY id DESC",
        (execution_id, execution_id),
    )
    return [int(row[0]) for row in rows]


@record
class ImportedFiles:
    """Data read by an import."""

    files: Operator[int]
    records: Operator[int]
    bytes: Operator[int]


def imported_of(tx: Transaction, *, execution_id: int) -> ImportedFiles | None:
    """Return what an import has read so far; None if the execution is not an import."""
    rows = tx.execute(
        "SELECT count(f.id), coalesce(sum(f.record_count), 0), coalesce(sum(f.size), 0)"
        " FROM executions e JOIN jobs j ON j.id = e.job_id"
        " LEFT JOIN warc_files f ON f.execution_id = e.id AND f.state = 'sealed'"
        " WHERE e.id = ? AND j.kind = 'import' GROUP BY e.id",
        (execution_id,),
    )
    if not rows:
        return None
    files, records, size = map(int, rows[0])
    return ImportedFiles(files=files, records=records, bytes=size)


def open_execution(tx: Transaction, *, job_id: int) -> ExecutionRow | None:
    """Return the job's unfinished execution; there is at most one."""
    return _execution(
        tx.execute(f"{_EXECUTION} WHERE e.job_id = ? AND e.state IN ('running', 'stopped') ORDER BY e.id", (job_id,))
    )


def latest_executions(tx: Transaction, *, limit: int, running: bool = False) -> list[int]:
    only = "AND e.state = 'running' " if running else ""
    rows = tx.execute(
        f"SELECT e.id FROM executions e JOIN jobs j ON j.id = e.job_id WHERE j.{OF_SOURCE} "  # noqa: S608
        f"{only}ORDER BY e.id DESC LIMIT ?",
        (limit,),
    )
    return [int(row[0]) for row in rows]


def executions_of(tx: Transaction, source: str | None) -> list[int]:
    """Return the ids of all executions, or of one source's, newest first."""
    only = "WHERE s.code = ? " if source is not None else ""
    rows = tx.execute(
        "SELECT e.id FROM executions e JOIN jobs j ON j.id = e.job_id JOIN sources s ON s.id = j.source_id "  # noqa: S608
        f"{only}ORDER BY e.id DESC",
        (source,) if source is not None else (),
    )
    return [int(row[0]) for row in rows]


def job_by_fingerprint(tx: Transaction, *, kind: str, fingerprint: str) -> tuple[int, str] | None:
    """Return the job that crawls the same seeds in the same scope, and its source's code."""
    rows = tx.execute(
        "SELECT j.id, s.code FROM jobs j JOIN sources s ON s.id = j.source_id"
        " WHERE j.kind = ? AND j.fingerprint = ? ORDER BY j.id LIMIT 1",
        (kind, fingerprint),
    )
    return (int(rows[0][0]), rows[0][1]) if rows else None


def insert_job(tx: Transaction, *, source_id: int, kind: str, fingerprint: str, now: int) -> int:
    """Create a job without a schedule and return its id."""
    rows = tx.execute(
        "INSERT INTO jobs (source_id, kind, fingerprint, config, created_at) VALUES (?, ?, ?, '{}', ?) RETURNING id",
        (source_id, kind, fingerprint, now),
    )
    return int(rows[0][0])


def insert_execution(tx: Transaction, *, job_id: int, config: str, now: int) -> int | None:
    """Create a job's next execution, running from now on; None if another process has just created one."""
    rows = tx.execute(
        "INSERT INTO executions (job_id, number, state, config, output_dir, created_at, started_at, run_seconds)"
        " SELECT ?, coalesce(max(number), 0) + 1, 'running', ?, '', ?, ?, 0 FROM executions WHERE job_id = ?"
        # Another start may have created one since the check: the unique key of open executions rejects the second.
        " ON CONFLICT DO NOTHING RETURNING id",
        (job_id, config, now, now, job_id),
    )
    return int(rows[0][0]) if rows else None


def place_execution(tx: Transaction, *, execution_id: int, output_dir: str) -> None:
    tx.execute("UPDATE executions SET output_dir = ? WHERE id = ?", (output_dir, execution_id))


def resume_execution(tx: Transaction, *, execution_id: int) -> bool:
    """Set an execution to running and clear its stop request; return False if it has ended meanwhile."""
    rows = tx.execute(
        "UPDATE executions SET state = 'running', stop_requested = NULL, finished_at = NULL"
        # Compare and set: a start on another machine may have ended it since the check.
        " WHERE id = ? AND state IN ('running', 'stopped') RETURNING id",
        (execution_id,),
    )
    return bool(rows)


def run_seconds(tx: Transaction, *, execution_id: int) -> float:
    rows = tx.execute("SELECT run_seconds FROM executions WHERE id = ?", (execution_id,))
    return float(rows[0][0]) if rows else 0.0


def move_run_seconds(tx: Transaction, *, execution_id: int, before: float, after: float) -> None:
    """Update how long an execution was worked on; a no-op if another process has changed the value meanwhile."""
    # Update only from the value that was read: a second supervisor may have advanced it.
    tx.execute("UPDATE executions SET run_seconds = ? WHERE id = ? AND run_seconds = ?", (after, execution_id, before))


def end_execution(tx: Transaction, ending: ExecutionEnding, *, now: int) -> None:
    tx.execute(
        "UPDATE executions SET state = ?, reason = ?, stop_requested = NULL, finished_at = ?, shortfalls = ?,"
        # Clear the pause when a run ends, so that resuming it starts it.
        " paused_seconds = paused_seconds + coalesce(? - paused_at, 0) / 1e6, paused_at = NULL, paused_by = NULL,"
        " error = ?, index_state = ? WHERE id = ?",
        (
            ending.state,
            ending.reason,
            now,
            json.dumps(dict(ending.shortfalls)),
            now,
            ending.error,
            ending.index_state,
            ending.execution_id,
        ),
    )


ENDED_AS = (
    "SELECT c.outcome, c.reason, c.kind, count(*), count(DISTINCT c.domain_id), count(c.status_code),"  # noqa: S608
    f" min(c.domain_id), max(c.domain_id) FROM page_crawls c WHERE {IN_SLICE} AND {IS_LAST_ATTEMPT} GROUP BY 1, 2, 3"
)


def ended_as(raw_db: RawDatabase, *, frontier_id: int) -> list[EndedAs]:
    """Count the URLs of a frontier by outcome and kind, in one pass over its attempts."""
    found: dict[tuple[str | None, str | None, str], EndedAs] = {}
    last_domain: dict[tuple[str | None, str | None, str], int] = {}
    for rows in in_slices(raw_db, ENDED_AS, frontier_id):
        for *words, addresses, domains, statuses, first, last in rows:
            key = outcome, reason, kind = words[0], words[1], words[2]
            before = found.get(key, EndedAs(outcome, reason, kind, 0, 0, 0))
            # Slices are split by domain: only the first domain of this one may have been counted in the previous one.
            new = domains - (last_domain.get(key) == first)
            found[key] = EndedAs(
                outcome, reason, kind, before.addresses + addresses, before.domains + new, before.statuses + statuses
            )
            last_domain[key] = last
    return list(found.values())


def left_out_by_limits(tx: Transaction, *, frontier_id: int) -> dict[str, int]:
    """Count what built-in limits and traps excluded from a frontier, by rule, largest count first.

    The rules of its own scope (exclude, depth, hosts) are not included: they cut nothing short.
    """
    rows = tx.execute(
        "SELECT rule, sum(count) FROM exclusions WHERE execution_id = ?"
        " AND (rule LIKE 'over_limit:%' OR rule LIKE 'trap:%') GROUP BY rule ORDER BY 2 DESC, 1",
        (frontier_id,),
    )
    return {rule: int(count) for rule, count in rows}


def frontier_of(tx: Transaction, execution_id: int) -> int:
    rows = tx.execute("SELECT coalesce(frontier_id, id) FROM executions WHERE id = ?", (execution_id,))
    return int(rows[0][0]) if rows else execution_id


def go_on_with(tx: Transaction, *, execution_id: int, frontier_id: int) -> None:
    tx.execute("UPDATE executions SET frontier_id = ? WHERE id = ?", (frontier_id, execution_id))


def has_lost_captures(tx: Transaction, *, frontier_id: int, execution_ids: Sequence[int]) -> bool:
    """Return whether a discarded file of these executions contained captures of this frontier."""
    return any(
        tx.execute(
            "SELECT 1 FROM warc_files f WHERE f.execution_id = ? AND f.state = 'discarded'"
            " AND EXISTS (SELECT 1 FROM page_crawls c WHERE c.warc_file_id = f.id AND c.execution_id = ?) LIMIT 1",
            (one, frontier_id),
        )
        for one in execution_ids
    )


class ExecutionHolding(NamedTuple):
    state: str
    is_of_job: bool
    """A worker runs it under a lease; otherwise it is a standalone crawl."""
    owner: str | None
    heard_at: datetime | None


def holding(tx: Transaction, *, execution_id: int) -> ExecutionHolding:
    """Return who may end an execution; a missing execution counts as ended."""
    rows = tx.execute(
        "SELECT e.state, j.state IS NOT NULL, o.host || '/' || o.id, j.lock_heartbeat_at FROM executions e"
        " JOIN jobs j ON j.id = e.job_id LEFT JOIN owners o ON o.id = j.lock_owner_id WHERE e.id = ?",
        (execution_id,),
    )
    if not rows:
        # An execution without a row was discarded: its files can be deleted without asking a process.
        return ExecutionHolding("cancelled", is_of_job=False, owner=None, heard_at=None)
    state, is_of_job, owner, heard_at = rows[0]
    return ExecutionHolding(state, bool(is_of_job), owner, moment_or_none(heard_at))


def ask_to_stop(tx: Transaction, *, execution_ids: Sequence[int], word: str) -> None:
    """Set the stop request of these executions: drain or cancel."""
    tx.many("UPDATE executions SET stop_requested = ? WHERE id = ?", [(word, number) for number in execution_ids])


def counts_of(tx: Transaction, *, execution_id: int) -> list[tuple[datetime, bool, dict[str, Any]]]:
    """Return when each process of an execution wrote its running totals, whether it has ended, and the totals."""
    rows = tx.execute(
        "SELECT c.updated_at, o.ended_at, c.counts FROM execution_counts c LEFT JOIN owners o ON o.id = c.owner_id"
        " WHERE c.execution_id = ? ORDER BY c.owner_id",
        (execution_id,),
    )
    return [(from_micros(at), ended_at is not None, from_json(counts)) for at, ended_at, counts in rows]


def from_json(stored: Any) -> dict[str, Any]:
    """Return stored JSON as a dict: SQLite returns text, PostgreSQL the decoded value."""
    value = json.loads(stored) if isinstance(stored, str) else stored
    return value if isinstance(value, dict) else {}
