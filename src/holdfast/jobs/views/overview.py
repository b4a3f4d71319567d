"""All jobs of an archive, for `holdfast status`: failures, pending work, and problems that need a person."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from holdfast.clock import Clock, from_micros, moment_or_none, to_micros
from holdfast.config import Settings
from holdfast.db.raw import RawDatabase, Transaction, WriteRefusal, last_refusal
from holdfast.jobs.execution_queries import from_json
from holdfast.jobs.kinds import OF_SOURCE
from holdfast.jobs.pauses import WaitCode
from holdfast.jobs.waiting import queued_runs, waiting_runs, workers_at_work
from holdfast.processes.disk import low_volume
from holdfast.records import Operator, record


@record
class FailedRun:
    """An execution that failed, or whose files could not be indexed."""

    execution: Operator[int]
    job: Operator[int]
    source: Operator[str]
    failure: Operator[str | None]
    index_state: Operator[str | None]
    error: Operator[str | None]
    at: Operator[datetime]
    mended: Operator[bool]
    """Whether a later run of the same job succeeded."""
    next_run_at: Operator[datetime | None]


_MENDED = (
    # Compare numbers, not times: two machines' clocks may differ.
    "EXISTS (SELECT 1 FROM executions l WHERE l.job_id = e.job_id AND l.number > e.number AND l.state = 'completed'"
    " AND COALESCE(l.index_state, '') <> 'index_failed')"
)


def failed_runs(tx: Transaction, *, since: int, limit: int, mended: bool) -> list[FailedRun]:
    """Return the runs that failed since a moment, newest first, through a dedicated index.

    With `mended`, those followed by a successful run of the same job; otherwise those without.
    """
    rows = tx.execute(
        "SELECT e.id, e.job_id, s.code, e.failure, e.index_state, COALESCE(e.error, e.reason),"  # noqa: S608
        " e.finished_at, j.next_run_at"
        " FROM executions e JOIN jobs j ON j.id = e.job_id JOIN sources s ON s.id = j.source_id"
        " WHERE e.pruned_at IS NULL AND (e.state = 'failed' OR e.index_state = 'index_failed') AND e.finished_at >= ?"
        f" AND {'' if mended else 'NOT '}{_MENDED} ORDER BY e.finished_at DESC, e.id DESC LIMIT ?",
        (since, limit),
    )
    return [
        FailedRun(
            execution=row[0],
            job=row[1],
            source=row[2],
            failure=row[3],
            index_state=row[4],
            error=row[5],
            at=from_micros(row[6]),
            mended=mended,
            next_run_at=moment_or_none(row[7]),
        )
        for row in rows
    ]


@record
class SkippedRun:
    """A run that took so long that its job skipped turns."""

    execution: Operator[int]
    source: Operator[str]
    turns: Operator[int]


def skipped_runs(tx: Transaction, *, since: int, looked_at: int) -> list[SkippedRun]:
    """Return runs that ended since a moment and skipped turns, newest first, among the last `looked_at` runs."""
    rows = tx.execute(
        "SELECT e.id, s.code, e.metrics FROM executions e JOIN jobs j ON j.id = e.job_id"
        " JOIN sources s ON s.id = j.source_id WHERE e.pruned_at IS NULL AND e.finished_at IS NOT NULL"
        " AND e.finished_at >= ? ORDER BY e.finished_at DESC, e.id DESC LIMIT ?",
        (since, looked_at),
    )
    turns = [(row[0], row[1], int(from_json(row[2]).get("skipped_turns", 0))) for row in rows]
    return [SkippedRun(execution=number, source=source, turns=count) for number, source, count in turns if count]


_QUEUED: Final = (
    "FROM executions e JOIN jobs j ON j.id = e.job_id"
    f" WHERE e.state = 'queued' AND e.queued_at IS NOT NULL AND j.{OF_SOURCE}"
)
# These jobs were due before a moment, and no scheduler queued them.
_OVERDUE: Final = (
    "FROM jobs j JOIN sources s ON s.id = j.source_id"
    " WHERE j.next_run_at IS NOT NULL AND j.next_run_at < ? AND s.enabled AND j.deleted_at IS NULL"
)
_UNINDEXED: Final = (
    "FROM executions WHERE index_state IN ('pending','indexing') AND state IN ('completed','failed','cancelled')"
)


def _count(tx: Transaction, rows: str, *values: int) -> int:
    # Limits the count: `status` must not take longer when many jobs are late.
    found = tx.execute(f"SELECT count(*) FROM (SELECT 1 {rows} LIMIT ?) c", (*values, _MOST))  # noqa: S608 - ours
    return int(found[0][0])


@record
class FiringAlert:
    """An unresolved alert."""

    name: Operator[str]
    severity: Operator[str]
    since: Operator[datetime]
    value: Operator[float]
    message: Operator[str]


def firing_alerts(tx: Transaction, *, limit: int) -> list[FiringAlert]:
    rows = tx.execute(
        "SELECT name, severity, since, value, message FROM alerts WHERE resolved_at IS NULL ORDER BY id LIMIT ?",
        (limit,),
    )
    return [
        FiringAlert(name=name, severity=severity, since=from_micros(since), value=value, message=message)
        for name, severity, since, value, message in rows
    ]


LATELY: Final = timedelta(days=7)
_SHOWN: Final = 5
_LOOKED_AT: Final = 500
_MOST: Final = 10_000
# Number of ticks after which a due job that is not queued shows that no scheduler works.
_OVERDUE_POLLS: Final = 6


@record
class WaitingExecution:
    """A queued execution, and the reason why it waits."""

    execution: Operator[int]
    job: Operator[int]
    source: Operator[str]
    why: Operator[str]
    waits_for: Operator[WaitCode]


@record
class WorkerRecord:
    """A worker that has not ended, or died without ending."""

    name: Operator[str]
    pid: Operator[int]
    jobs: Operator[int]
    """Number of jobs that it runs."""
    gone: Operator[bool]
    """Whether it died, or its heartbeat is too old."""
    heartbeat_at: Operator[datetime]


@record
class JobsOverview:
    """Overview of the jobs of an archive."""

    alerts: Operator[list[FiringAlert]]
    low_disk: Operator[bool]
    low_volume: Operator[Path | None]
    """The volume that has too little space."""
    write_refused: Operator[WriteRefusal | None]
    queued: Operator[int]
    overdue: Operator[int]
    """Jobs that are due and not queued by any scheduler."""
    unindexed: Operator[int]
    failed: Operator[list[FailedRun]]
    """Runs without a later successful run of the same job come first."""
    skipped: Operator[list[SkippedRun]]
    waiting: Operator[list[WaitingExecution]]
    """The first few, in the order in which workers lease them."""
    workers: Operator[list[WorkerRecord]]


def read_overview(raw_db: RawDatabase, clock: Clock, settings: Settings, *, run_folder: Path) -> JobsOverview:
    """Return the current state of all jobs; the cost does not grow with the history."""
    now = clock.now()
    since, due = to_micros(now - LATELY), now - timedelta(seconds=_OVERDUE_POLLS * settings.timings.jobs_poll_s)
    with raw_db.read() as tx:
        failed = failed_runs(tx, since=since, limit=_SHOWN, mended=False)
        # Show runs with a later success only if there is room: the others need a person.
        failed += failed_runs(tx, since=since, limit=_SHOWN - len(failed), mended=True)
        skipped = skipped_runs(tx, since=since, looked_at=_LOOKED_AT)[:_SHOWN]
        first = queued_runs(tx, limit=_SHOWN)
        queued = _count(tx, _QUEUED)
        overdue = _count(tx, _OVERDUE, to_micros(due))
        unindexed = _count(tx, _UNINDEXED)
        alerts = firing_alerts(tx, limit=_LOOKED_AT)
    full = low_volume(settings)
    return JobsOverview(
        alerts=alerts,
        low_disk=full is not None,
        low_volume=full,
        write_refused=last_refusal(settings.home),
        queued=queued,
        overdue=overdue,
        unindexed=unindexed,
        failed=failed,
        skipped=skipped,
        waiting=[
            WaitingExecution(
                execution=run.execution_id, job=run.job_id, source=run.source, why=wait.sentence, waits_for=wait.code
            )
            for run, wait in waiting_runs(raw_db, clock, settings, first)
        ],
        workers=[
            WorkerRecord(name=seen.name, pid=seen.pid, jobs=jobs, gone=seen.is_gone, heartbeat_at=seen.heartbeat_at)
            for seen, jobs in workers_at_work(raw_db, clock, run_folder)
        ],
    )
