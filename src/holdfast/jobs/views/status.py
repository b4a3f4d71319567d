"""Status of an execution: one value for the live display, `holdfast status` and the final summary."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from holdfast.clock import Clock, from_micros, to_micros
from holdfast.db.raw import RawDatabase, Transaction
from holdfast.errors import NotFound
from holdfast.frontier import queries as frontier_queries
from holdfast.jobs import execution_queries
from holdfast.jobs.endings import ReadingRule, ending_word, rule_of, sentence_of
from holdfast.jobs.execution_queries import ImportedFiles
from holdfast.jobs.pauses import paused_s, worked_s
from holdfast.processes.owners import living_owners
from holdfast.records import Operator, from_row, record
from holdfast.series.counting import LATENCY, OUTCOMES, STATUSES, attempts_of, failures_of, percentile_of

# Totals older than this come from a process that is gone or stuck: they count, but give no current rate.
_FRESH_S = 10.0
# A worker that is silent for this long counts as gone: the time since then is not working time.
_SILENT = timedelta(minutes=2)


RECENT: Final = timedelta(minutes=5)
_RECENT_COLUMNS: Final = ("pages", *OUTCOMES, *STATUSES, *LATENCY)


@record
class RecentMinutes:
    """Activity of an execution in the last five minutes."""

    pages: Operator[int]
    attempts: Operator[int]
    failed: Operator[int]
    error_share: Operator[float | None]
    """Share of 4xx and 5xx among the responses; null without responses."""
    p95_s: Operator[float | None]
    """95th percentile of attempt durations; null without attempts, or above the measured range."""


@record
class ExecutionStatus:
    """Totals over all processes of an execution, and its slow domains."""

    execution_id: Operator[int]
    source: Operator[str]
    state: Operator[str]
    reason: Operator[str | None]
    shortfalls: Operator[dict[str, int]]
    error: Operator[str | None]
    retry_at: Operator[datetime | None]
    """When its job is retried, if set."""
    paused_at: Operator[datetime | None] = None
    """When an operator paused it; its state is still `running`, or `queued` while no worker holds it."""
    paused_by: Operator[str | None] = None
    paused_seconds: Operator[float] = 0.0
    """Total length of its pauses so far."""
    trouble: Operator[str | None] = None
    """The current obstacle, and what to do about it."""
    imported: Operator[ImportedFiles | None] = None
    """Data read by an import, which sends no requests."""
    pages: Operator[int]
    pages_s: Operator[float]
    """Average over about the last ten seconds, measured by its running processes; 0 without any."""
    requests: Operator[int]
    bytes: Operator[int]
    queue: Operator[int]
    recent: Operator[RecentMinutes | None] = None
    """The last five minutes, from the time series; null without activity."""
    active_domains: Operator[int]
    outcomes: Operator[dict[str, int]]
    slow: Operator[list[dict[str, Any]]]
    run_seconds: Operator[float]
    """Working time so far, over all processes."""
    output_dir: Operator[Path]
    started_at: Operator[datetime | None]
    finished_at: Operator[datetime | None]
    stop_requested: str | None
    condition: str
    """running, paused, draining, or no_space: the worst condition of its processes."""
    config: dict[str, Any]
    frontier_id: int
    seeds_left: int = 0
    """Seeds that are not in the queue yet; only its own supervisor knows."""

    @property
    def rule(self) -> ReadingRule:
        """The rule for its ending; a neutral one while it runs."""
        return rule_of(self.state, self.reason)

    @property
    def ending(self) -> Operator[str | None]:
        """Its ending in one word."""
        return ending_word(self.state, self.reason)

    @property
    def research_ready(self) -> Operator[bool | None]:
        """Whether an edition may use it without a decision by a person."""
        return self.rule.is_ready if self.sentence is not None else None

    @property
    def running_condition(self) -> Operator[str | None]:
        """Its condition while it is running."""
        return self.condition if self.state == "running" else None

    @property
    def sentence(self) -> Operator[str | None]:
        """How it ended and what it missed; null until it ends, and for an import."""
        if self.state in ("queued", "running") or self.imported is not None:
            return None
        return sentence_of(self.state, self.reason, self.shortfalls)


def read_status(raw_db: RawDatabase, clock: Clock, execution_id: int) -> ExecutionStatus:
    """Return the current status of an execution; cheap, whatever its size."""
    with raw_db.read() as tx:
        execution = execution_queries.execution(tx, execution_id)
        if execution is None:
            raise NotFound(f"there is no execution {execution_id}; see them with: holdfast status")
        written = execution_queries.counts_of(tx, execution_id=execution.frontier_id)
        queue = frontier_queries.open_count(tx, execution_id=execution.frontier_id)
        is_live = execution.state == "running" and queue > 0
        now = to_micros(clock.now())
        away = frontier_queries.waiting_unreachable(tx, execution_id=execution.frontier_id, now=now) if is_live else []
        paused = frontier_queries.waiting_paused(tx, execution_id=execution.frontier_id) if is_live else []
        imported = None if written else execution_queries.imported_of(tx, execution_id=execution_id)
        recent = recent_minutes(tx, execution_id=execution.frontier_id, now=now) if is_live else None
    counts = [totals for _, _, totals in written]
    fresh = clock.now() - timedelta(seconds=_FRESH_S)
    # A killed process leaves its last totals: count them, but not in pages per second.
    at_work = [totals for at, has_ended, totals in written if at >= fresh and not has_ended]
    live = at_work if execution.state == "running" else []
    outcomes: Counter[str] = Counter()
    for count in counts:
        outcomes.update(count.get("outcomes", {}))
    is_paused = execution.paused_at is not None and execution.stop_requested is None
    conditions = [count.get("state", "running") for count in live]
    slow = [row for count in live for row in count.get("slow", ())] + _away(away, clock.now())
    slow += _paused(paused, clock.now())
    return from_row(
        ExecutionStatus,
        execution,
        execution_id=execution.id,
        output_dir=Path(execution.output_dir),
        run_seconds=round(_run_seconds(execution, clock.now()), 3),
        queue=queue,
        pages=_sum(counts, "pages") if written else execution.items_crawled,
        requests=_sum(counts, "requests"),
        bytes=_sum(counts, "bytes"),
        pages_s=sum(float(count.get("pages_s", 0.0)) for count in live),
        active_domains=_sum(live, "active_domains"),
        outcomes={k: v for k, v in outcomes.items() if v},
        condition=next((c for c in ("no_space", "draining") if c in conditions), "paused" if is_paused else "running"),
        slow=sorted(slow, key=lambda row: -row["seconds"])[:5],
        recent=recent,
        imported=imported,
        trouble=next((str(count["trouble"]) for count in live if count.get("trouble")), None),
        paused_seconds=round(paused_s(execution.paused_seconds, execution.paused_at, now=clock.now()), 1),
        seeds_left=0,
    )


def recent_minutes(tx: Transaction, *, execution_id: int, now: int) -> RecentMinutes | None:
    """Return the recent activity of an execution: reads a handful of rows, whatever its size."""
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
    """Return the working time, including the current lease: the row gains that only when the lease ends."""
    if execution.state != "running" or execution.held_since is None or execution.heard_at is None:
        return execution.run_seconds
    # A night without power is not working time: the time counts up to the last heartbeat.
    until = now if now - execution.heard_at < _SILENT else execution.heard_at
    return execution.run_seconds + worked_s(execution.held_since, until, paused_at=execution.paused_at)


def _away(rows: list[tuple[str, int, int]], now: datetime) -> list[dict[str, Any]]:
    found = []
    for domain, since, until in rows:
        wait_s = (from_micros(until) - now).total_seconds()
        why = f"cannot be reached since {from_micros(since):%H:%M:%S} UTC, tried again in {wait_s:.0f} s"
        found.append({"domain": domain, "seconds": round(wait_s, 1), "why": why})
    return found


def _paused(rows: list[tuple[str, int]], now: datetime) -> list[dict[str, Any]]:
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
    """Return whether a standalone crawl has state running although no process on any machine works on it."""
    return _without_process(raw_db, clock, execution_id, folder=folder) == "running"


def is_without_process(raw_db: RawDatabase, clock: Clock, execution_id: int, *, folder: Path) -> bool:
    """Return whether an unfinished run waits for a worker, or is an abandoned crawl."""
    return _without_process(raw_db, clock, execution_id, folder=folder) in ("queued", "running")


def _without_process(raw_db: RawDatabase, clock: Clock, execution_id: int, *, folder: Path) -> str | None:
    """Return the state of a run on which no process works, as far as known; None if one does."""
    # Read this before its state: a process that leaves in between has written its ending in the same step.
    if living_owners(raw_db, clock, execution_id=execution_id, folder=folder):
        return None
    with raw_db.read() as tx:
        found = execution_queries.holding(tx, execution_id=execution_id)
    # The worker of a job holds it by its lease.
    return None if found.is_of_job and found.state == "running" else found.state
