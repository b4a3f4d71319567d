"""The statements behind the overview of jobs; plain ones, so that `holdfast status` starts fast. All are bounded."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.db.hot import Row, Transaction
from holdfast.jobs.live.queries import from_json


class FailedRun(NamedTuple):
    """An execution that failed, or whose files could not be indexed."""

    execution_id: int
    job_id: int
    source: str
    job_state: str | None
    finished_at: int
    failure: str | None
    index_state: str | None
    error: str | None
    next_run_at: int | None
    mended: bool
    """A later run of the same job went well."""


_MENDED = (
    "EXISTS (SELECT 1 FROM executions l WHERE l.job_id = e.job_id AND l.number > e.number AND l.state = 'completed'"
    " AND COALESCE(l.index_state, '') <> 'index_failed')"
)


def failed_runs(tx: Transaction, *, since: int, limit: int, mended: bool) -> list[FailedRun]:
    """Return the runs that failed since a moment, newest first, by an index of their own.

    Those after which no run of the same job went well, or (`mended`) those after which one did.
    """
    rows = tx.execute(
        "SELECT e.id, e.job_id, s.code, j.state, e.finished_at, e.failure, e.index_state,"  # noqa: S608
        " COALESCE(e.error, e.reason), j.next_run_at"
        " FROM executions e JOIN jobs j ON j.id = e.job_id JOIN sources s ON s.id = j.source_id"
        " WHERE e.pruned_at IS NULL AND (e.state = 'failed' OR e.index_state = 'index_failed') AND e.finished_at >= ?"
        f" AND {'' if mended else 'NOT '}{_MENDED} ORDER BY e.finished_at DESC, e.id DESC LIMIT ?",
        (since, limit),
    )
    return [FailedRun(*(*row, mended)) for row in rows]


class SkippedRun(NamedTuple):
    """A run after which turns of its job had passed unused."""

    execution_id: int
    source: str
    finished_at: int
    turns: int


def skipped_runs(tx: Transaction, *, since: int, looked_at: int) -> list[SkippedRun]:
    """Return the runs since a moment that left turns out, newest first, among so many that ended last."""
    rows = tx.execute(
        "SELECT e.id, s.code, e.finished_at, e.metrics FROM executions e JOIN jobs j ON j.id = e.job_id"
        " JOIN sources s ON s.id = j.source_id WHERE e.pruned_at IS NULL AND e.finished_at IS NOT NULL"
        " AND e.finished_at >= ? ORDER BY e.finished_at DESC, e.id DESC LIMIT ?",
        (since, looked_at),
    )
    found = [SkippedRun(row[0], row[1], row[2], int(from_json(row[3]).get("skipped_turns", 0))) for row in rows]
    return [one for one in found if one.turns]


class QueuedRun(NamedTuple):
    """An execution that nobody has begun."""

    execution_id: int
    job_id: int
    source: str
    kind: str
    queued_at: int
    enabled: bool


def queued_runs(tx: Transaction, *, limit: int) -> list[QueuedRun]:
    """Return what is queued, in the order in which workers take it."""
    rows = tx.execute(
        "SELECT e.id, e.job_id, s.code, j.kind, e.queued_at, s.enabled FROM executions e"
        " JOIN jobs j ON j.id = e.job_id JOIN sources s ON s.id = j.source_id"
        " WHERE e.state = 'queued' ORDER BY e.queued_at, e.id LIMIT ?",
        (limit,),
    )
    return [QueuedRun(row[0], row[1], row[2], row[3], row[4], bool(row[5])) for row in rows]


def queued_count(tx: Transaction, *, most: int) -> int:
    """Return how many executions wait for a worker, counted no further than this."""
    rows = tx.execute("SELECT count(*) FROM (SELECT 1 FROM executions WHERE state = 'queued' LIMIT ?) c", (most,))
    return int(rows[0][0])


def overdue_count(tx: Transaction, *, before: int, most: int) -> int:
    """Return how many jobs were due before a moment and are not queued, counted no further than this."""
    rows = tx.execute(
        "SELECT count(*) FROM (SELECT 1 FROM jobs j JOIN sources s ON s.id = j.source_id"
        " WHERE j.next_run_at IS NOT NULL AND j.next_run_at < ? AND s.enabled AND j.deleted_at IS NULL LIMIT ?) c",
        (before, most),
    )
    return int(rows[0][0])


def unindexed_count(tx: Transaction, *, most: int) -> int:
    """Return how many executions wait to be indexed, counted no further than this."""
    rows = tx.execute(
        "SELECT count(*) FROM (SELECT 1 FROM executions WHERE index_state IN ('pending','indexing') LIMIT ?) c", (most,)
    )
    return int(rows[0][0])


def locked_by(tx: Transaction) -> dict[str, int]:
    """Return how many jobs each holder has now."""
    rows: list[Row] = tx.execute(
        "SELECT lock_owner, count(*) FROM jobs WHERE lock_token IS NOT NULL GROUP BY lock_owner ORDER BY lock_owner"
    )
    return {str(row[0]): int(row[1]) for row in rows}
