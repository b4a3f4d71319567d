"""How an execution stands: one value for the live display, `holdfast status` and the final summary."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

from holdfast.clock import Clock, from_micros, to_micros
from holdfast.config import Settings
from holdfast.coordination.disk import low_volume
from holdfast.coordination.owners import WORKER_KINDS, OwnerRow, living_owners, seen_owners
from holdfast.db.raw import RawDatabase, Row, Transaction, WriteRefusal, last_refusal
from holdfast.errors import NotFound
from holdfast.jobs import execution_queries
from holdfast.jobs.endings import ReadingRule, rule_of, sentence_of
from holdfast.jobs.execution_queries import ImportedFiles, from_json
from holdfast.jobs.pauses import paused_s, worked_s
from holdfast.series.counting import LATENCY, OUTCOMES, STATUSES, attempts_of, failures_of, percentile_of
from holdfast.values import dataclass

# Totals that were written longer ago come from a process that is gone or stuck: they count, but say nothing of now.
_FRESH_S = 10.0
# A worker that was not heard of for so long counts as gone: what passes since then is no time at work.
_SILENT = timedelta(minutes=2)


RECENT: Final = timedelta(minutes=5)
_RECENT_COLUMNS: Final = ("pages", *OUTCOMES, *STATUSES, *LATENCY)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentMinutes:
    """What an execution did in the last five minutes."""

    pages: int
    attempts: int
    failed: int
    error_share: float | None
    """Of 4xx and 5xx among the answers; None without any."""
    p95_s: float | None
    """Below which 95 of 100 attempts took; None if they took longer than we tell apart, or there were none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionStatus:
    """Totals over all processes of an execution, and what is slow."""

    execution_id: int
    source: str
    state: str
    reason: str | None
    stop_requested: str | None
    output_dir: Path
    started_at: datetime | None
    finished_at: datetime | None
    run_seconds: float
    """Time at work until now, over all who worked on it."""
    queue: int
    pages: int
    requests: int
    bytes: int
    pages_s: float
    """Over about the last ten seconds, as the processes at work measured it; 0 if none is."""
    active_domains: int
    outcomes: dict[str, int]
    condition: str
    """running, paused, draining, or no_space: the worst of the processes'."""
    slow: tuple[dict[str, Any], ...]
    config: dict[str, Any]
    frontier_id: int
    shortfalls: dict[str, int]
    error: str | None
    retry_at: datetime | None
    """When its job is tried again, if that is set."""
    recent: RecentMinutes | None = None
    """What it did lately, by the series; None if that is nothing."""
    trouble: str | None = None
    """What keeps it from going on now, in words, with what helps."""
    imported: ImportedFiles | None = None
    """What it has brought, if it is an import: that asks no site for anything."""
    paused_at: datetime | None = None
    """Since when it waits because an operator paused it; its state is `running` meanwhile, or `queued`
    while no worker has it."""
    paused_by: str | None = None
    paused_seconds: float = 0.0
    """How long it was paused until now, in all."""
    seeds_left: int = 0
    """Seeds that are still to be read into the queue; only its own supervisor knows."""

    @property
    def rule(self) -> ReadingRule:
        """What follows from how it ended; of one that runs, nothing yet."""
        return rule_of(self.state, self.reason)

    @property
    def sentence(self) -> str | None:
        """How it ended and what it fell short of, in words; None while it has not, and for an import."""
        if self.state in ("queued", "running") or self.imported is not None:
            return None
        return sentence_of(self.state, self.reason, self.shortfalls)


def read_status(raw_db: RawDatabase, clock: Clock, execution_id: int) -> ExecutionStatus:
    """Return how an execution stands now; cheap, whatever its size."""
    with raw_db.read() as tx:
        execution = execution_queries.execution(tx, execution_id)
        if execution is None:
            raise NotFound(f"there is no execution {execution_id}; see them with: holdfast status")
        written = execution_queries.counts_of(tx, execution_id=execution.frontier_id)
        queue = execution_queries.queue_of(tx, execution_id=execution.frontier_id)
        is_live = execution.state == "running" and queue > 0
        now = to_micros(clock.now())
        away = execution_queries.away(tx, execution_id=execution.frontier_id, now=now) if is_live else []
        paused = execution_queries.paused(tx, execution_id=execution.frontier_id) if is_live else []
        reported = 0 if written else execution_queries.crawled_of(tx, execution_id=execution_id)
        imported = None if written else execution_queries.imported_of(tx, execution_id=execution_id)
        recent = recent_minutes(tx, execution_id=execution.frontier_id, now=now) if is_live else None
        awaits = execution_queries.awaited_machine(tx, execution_id=execution_id)
    counts = [one.counts for one in written]
    fresh = clock.now() - timedelta(seconds=_FRESH_S)
    # A process that was killed leaves its last totals: they count as done, and not as pages a second.
    at_work = [one.counts for one in written if one.written_at >= fresh and not one.has_ended]
    live = at_work if execution.state == "running" else []
    outcomes: Counter[str] = Counter()
    for count in counts:
        outcomes.update(count.get("outcomes", {}))
    is_paused = execution.paused_at is not None and execution.stop_requested is None
    conditions = [count.get("state", "running") for count in live]
    slow = [row for count in live for row in count.get("slow", ())] + _away(away, clock.now())
    slow += _paused(paused, clock.now())
    return ExecutionStatus(
        execution_id=execution.id,
        source=execution.source,
        state=execution.state,
        reason=execution.reason,
        stop_requested=execution.stop_requested,
        output_dir=Path(execution.output_dir),
        started_at=execution.started_at,
        finished_at=execution.finished_at,
        run_seconds=_run_seconds(execution, clock.now()),
        queue=queue,
        pages=_sum(counts, "pages") or reported,
        requests=_sum(counts, "requests"),
        bytes=_sum(counts, "bytes"),
        pages_s=sum(float(count.get("pages_s", 0.0)) for count in live),
        active_domains=_sum(live, "active_domains"),
        outcomes={k: v for k, v in outcomes.items() if v},
        condition=next((c for c in ("no_space", "draining") if c in conditions), "paused" if is_paused else "running"),
        slow=tuple(sorted(slow, key=lambda row: -row["seconds"])[:5]),
        config=execution.config,
        frontier_id=execution.frontier_id,
        shortfalls=execution.shortfalls,
        error=execution.error,
        retry_at=execution.retry_at,
        recent=recent,
        imported=imported,
        trouble=next((str(count["trouble"]) for count in live if count.get("trouble")), awaits),
        paused_at=execution.paused_at,
        paused_by=execution.paused_by,
        paused_seconds=paused_s(execution.paused_seconds, execution.paused_at, now=clock.now()),
    )


def recent_minutes(tx: Transaction, *, execution_id: int, now: int) -> RecentMinutes | None:
    """Return what an execution did lately: a handful of rows, whatever its size."""
    since = now - round(RECENT.total_seconds() * 1_000_000)
    sums = ", ".join(f"coalesce(sum({name}), 0)" for name in _RECENT_COLUMNS)
    rows = tx.execute(
        f"SELECT {sums} FROM series WHERE execution_id = ? AND step_s = 60 AND at >= ?",  # noqa: S608 - our columns
        (execution_id, since),
    )
    counts = Counter({name: int(number) for name, number in zip(_RECENT_COLUMNS, rows[0], strict=True)})
    attempts, answers = attempts_of(counts), sum(counts[name] for name in STATUSES)
    if not attempts and not answers:
        return None
    errors = counts["status_4xx"] + counts["status_5xx"]
    return RecentMinutes(
        pages=counts["pages"],
        attempts=attempts,
        failed=failures_of(counts),
        error_share=round(errors / answers, 4) if answers else None,
        p95_s=percentile_of(counts, 0.95),
    )


def _run_seconds(execution: execution_queries.ExecutionRow, now: datetime) -> float:
    """Return the time at work; what a worker does under its lease is added to the row only when it ends."""
    if execution.state != "running" or execution.held_since is None or execution.heard_at is None:
        return execution.run_seconds
    # A night without power is no time at work: what counts ends with the last heartbeat.
    until = now if now - execution.heard_at < _SILENT else execution.heard_at
    return execution.run_seconds + worked_s(execution.held_since, until, paused_at=execution.paused_at)


def _away(rows: list[tuple[str, int, int]], now: datetime) -> list[dict[str, Any]]:
    """Return the domains that are waited for, as rows of what is slow."""
    found = []
    for domain, since, until in rows:
        wait_s = (from_micros(until) - now).total_seconds()
        why = f"cannot be reached since {from_micros(since):%H:%M:%S} UTC, tried again in {wait_s:.0f} s"
        found.append({"domain": domain, "seconds": round(wait_s, 1), "why": why})
    return found


def _paused(rows: list[tuple[str, int]], now: datetime) -> list[dict[str, Any]]:
    """Return the domains that an operator paused, as rows of what is slow."""
    return [
        {
            "domain": domain,
            "seconds": round((now - from_micros(since)).total_seconds(), 1),
            "why": f"paused; go on with: holdfast domain resume {domain}",
        }
        for domain, since in rows
    ]


def _sum(counts: list[dict[str, Any]], key: str) -> int:
    return sum(count.get(key, 0) for count in counts)


def is_abandoned(raw_db: RawDatabase, clock: Clock, execution_id: int, *, folder: Path) -> bool:
    """Return whether a crawl without a job is said to run and no process, of any machine, works on it."""
    # Before its state: who left in between has written how it ended in the same step.
    if living_owners(raw_db, clock, execution_id=execution_id, folder=folder):
        return False
    with raw_db.read() as tx:
        holding = execution_queries.holding(tx, execution_id=execution_id)
    return not holding.is_of_job and holding.state == "running"


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
    # By number and not by time: two machines' clocks may differ.
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
    """An execution that no worker has begun."""

    execution_id: int
    job_id: int
    source: str
    kind: str
    queued_at: int
    enabled: bool
    awaits: str | None
    """The machine that has its files, in words; None if any machine may start it."""


def queued_runs(tx: Transaction, *, limit: int) -> list[QueuedRun]:
    """Return what is queued, in the order in which workers take it."""
    rows = tx.execute(
        "SELECT e.id, e.job_id, s.code, j.kind, e.queued_at, s.enabled FROM executions e"
        " JOIN jobs j ON j.id = e.job_id JOIN sources s ON s.id = j.source_id"
        " WHERE e.state = 'queued' ORDER BY e.queued_at, e.id LIMIT ?",
        (limit,),
    )
    machine = execution_queries.awaited_machine
    return [QueuedRun(*(*row[:5], bool(row[5]), machine(tx, execution_id=row[0]))) for row in rows]


def queued_count(tx: Transaction, *, most: int) -> int:
    """Return how many executions wait for a worker, counted no further than this."""
    # Counted up to a bound: `status` must not take longer the worse things stand.
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
        "SELECT count(*) FROM (SELECT 1 FROM executions WHERE index_state IN ('pending','indexing')"
        " AND state IN ('completed','failed','cancelled') LIMIT ?) c",
        (most,),
    )
    return int(rows[0][0])


def locked_by(tx: Transaction) -> dict[str, int]:
    """Return how many jobs each holder has now."""
    rows: list[Row] = tx.execute(
        "SELECT lock_owner, count(*) FROM jobs WHERE lock_token IS NOT NULL GROUP BY lock_owner ORDER BY lock_owner"
    )
    return {str(row[0]): int(row[1]) for row in rows}


class FiringAlert(NamedTuple):
    """Something that is wrong."""

    name: str
    severity: str
    since: int
    value: float
    message: str


def firing_alerts(tx: Transaction, *, limit: int) -> list[FiringAlert]:
    """Return the alerts that are not resolved, oldest first."""
    rows = tx.execute(
        "SELECT name, severity, since, value, message FROM alerts WHERE resolved_at IS NULL ORDER BY id LIMIT ?",
        (limit,),
    )
    return [FiringAlert(*row) for row in rows]


LATELY: Final = timedelta(days=7)
_SHOWN: Final = 5
_LOOKED_AT: Final = 500
_MOST: Final = 10_000
# Looks of a scheduler after which a job that is due and not queued says that none is at work.
_OVERDUE_POLLS: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingRun:
    """A queued execution, and what it waits for."""

    run: QueuedRun
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AtWork:
    """A worker whose row is open: it has not ended, or died without saying so."""

    name: str
    seen: OwnerRow
    jobs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsOverview:
    """How the jobs stand altogether."""

    failed: tuple[FailedRun, ...]
    """Those first after which no run of the same job went well."""
    skipped: tuple[SkippedRun, ...]
    waiting: tuple[WaitingRun, ...]
    """The first few, in the order in which they will be taken."""
    queued: int
    overdue: int
    """Jobs that are due and that no scheduler has queued."""
    unindexed: int
    workers: tuple[AtWork, ...]
    low_disk: bool
    low_volume: Path | None = None
    """Which of the volumes has too little room."""
    alerts: tuple[FiringAlert, ...] = ()
    refusal: WriteRefusal | None = None
    """The last write, if the database refused it for want of room."""

    @property
    def stale(self) -> tuple[AtWork, ...]:
        """Workers that died or fell silent."""
        return tuple(worker for worker in self.workers if worker.seen.is_gone)


def read_overview(raw_db: RawDatabase, clock: Clock, settings: Settings, *, run_folder: Path) -> JobsOverview:
    """Return how the jobs stand now; what it costs does not grow with the history."""
    now = clock.now()
    since, due = to_micros(now - LATELY), now - timedelta(seconds=_OVERDUE_POLLS * settings.jobs.poll_s)
    with raw_db.read() as tx:
        failed = failed_runs(tx, since=since, limit=_SHOWN, mended=False)
        # What was mended is shown only where there is room: the rest needs a person.
        failed += failed_runs(tx, since=since, limit=_SHOWN - len(failed), mended=True)
        skipped = skipped_runs(tx, since=since, looked_at=_LOOKED_AT)[:_SHOWN]
        first = queued_runs(tx, limit=_SHOWN)
        queued = queued_count(tx, most=_MOST)
        overdue = overdue_count(tx, before=to_micros(due), most=_MOST)
        unindexed = unindexed_count(tx, most=_MOST)
        locks = locked_by(tx)
        alerts = firing_alerts(tx, limit=_LOOKED_AT)
    workers = tuple(
        AtWork(name=f"{seen.host}/{seen.id}", seen=seen, jobs=locks.get(f"{seen.host}/{seen.id}", 0))
        for kind in WORKER_KINDS
        for seen in seen_owners(raw_db, clock, kind=kind, folder=run_folder)
    )
    full = low_volume(settings)
    low = full is not None
    alive = [worker for worker in workers if not worker.seen.is_gone]
    waiting = tuple(WaitingRun(run=run, why=_why(run, now, low=low, alive=alive)) for run in first)
    return JobsOverview(
        failed=tuple(failed),
        skipped=tuple(skipped),
        waiting=waiting,
        queued=queued,
        overdue=overdue,
        unindexed=unindexed,
        workers=workers,
        low_disk=low,
        low_volume=full,
        alerts=tuple(alerts),
        refusal=last_refusal(settings.home),
    )


def _why(run: QueuedRun, now: datetime, *, low: bool, alive: list[AtWork]) -> str:
    at = from_micros(run.queued_at)
    if at > now:
        return f"not before {at:%Y-%m-%d %H:%M}"
    if not run.enabled:
        return "its source is disabled"
    if run.awaits is not None:
        return run.awaits
    if low:
        return "the disk is too full for new work"
    if not alive:
        return "no worker runs"
    return "all workers are busy" if all(worker.jobs for worker in alive) else "its turn is next"
