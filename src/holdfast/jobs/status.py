"""How an execution stands: one value for the live display, `holdfast status` and the final summary."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from holdfast.clock import Clock, from_micros, to_micros
from holdfast.coordination.owners import living_owners
from holdfast.db.hot import Hot
from holdfast.errors import NotFound
from holdfast.jobs.live import queries
from holdfast.jobs.reading import Rule, rule_of, sentence_of
from holdfast.values import dataclass

_FRESH_S = 10.0
"""Totals that were written longer ago come from a process that is gone or stuck: they count, but say nothing of now."""
_SILENT = timedelta(minutes=2)
"""A worker that was not heard of for so long counts as gone: what passes since then is no time at work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
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
    """running, draining, or no_space: the worst of the processes'."""
    slow: tuple[dict[str, Any], ...]
    config: dict[str, Any]
    frontier_id: int
    shortfalls: dict[str, int]
    error: str | None
    retry_at: datetime | None
    """When its job is tried again, if that is set."""
    trouble: str | None = None
    """What keeps it from going on now, in words, with what helps."""
    seeds_left: int = 0
    """Seeds that are still to be read into the queue; only its own supervisor knows."""

    @property
    def rule(self) -> Rule:
        """What follows from how it ended; of one that runs, nothing yet."""
        return rule_of(self.state, self.reason)

    @property
    def sentence(self) -> str | None:
        """How it ended and what it fell short of, in words; None while it has not."""
        if self.state in ("queued", "running"):
            return None
        return sentence_of(self.state, self.reason, self.shortfalls)


def read_status(hot: Hot, clock: Clock, execution_id: int) -> Status:
    """Return how an execution stands now; cheap, whatever its size."""
    with hot.read() as tx:
        execution = queries.execution(tx, execution_id)
        if execution is None:
            raise NotFound(f"there is no execution {execution_id}; see them with: holdfast status")
        written = queries.counts_of(tx, execution_id=execution.frontier_id)
        queue = queries.queue_of(tx, execution_id=execution.frontier_id)
        is_live = execution.state == "running" and queue > 0
        now = to_micros(clock.now())
        away = queries.away(tx, execution_id=execution.frontier_id, now=now) if is_live else []
        told = 0 if written else queries.crawled_of(tx, execution_id=execution_id)
    counts = [one.counts for one in written]
    fresh = clock.now() - timedelta(seconds=_FRESH_S)
    at_work = [one.counts for one in written if one.written_at >= fresh and not one.has_ended]
    live = at_work if execution.state == "running" else []
    outcomes: Counter[str] = Counter()
    for count in counts:
        outcomes.update(count.get("outcomes", {}))
    conditions = [count.get("state", "running") for count in live]
    slow = [row for count in live for row in count.get("slow", ())] + _away(away, clock.now())
    return Status(
        execution_id=execution.id, source=execution.source, state=execution.state, reason=execution.reason,
        stop_requested=execution.stop_requested, output_dir=Path(execution.output_dir),
        started_at=execution.started_at, finished_at=execution.finished_at,
        run_seconds=_run_seconds(execution, clock.now()),
        queue=queue, pages=_sum(counts, "pages") or told, requests=_sum(counts, "requests"),
        bytes=_sum(counts, "bytes"),
        pages_s=sum(float(count.get("pages_s", 0.0)) for count in live),
        active_domains=_sum(live, "active_domains"), outcomes={k: v for k, v in outcomes.items() if v},
        condition=next((c for c in ("no_space", "draining") if c in conditions), "running"),
        slow=tuple(sorted(slow, key=lambda row: -row["seconds"])[:5]), config=execution.config,
        frontier_id=execution.frontier_id, shortfalls=execution.shortfalls, error=execution.error,
        retry_at=execution.retry_at,
        trouble=next((str(count["trouble"]) for count in live if count.get("trouble")), None),
    )  # fmt: skip


def _run_seconds(execution: queries.ExecutionRow, now: datetime) -> float:
    """Return the time at work; what a worker does under its lease is added to the row only when it ends."""
    if execution.state != "running" or execution.held_since is None or execution.heard_at is None:
        return execution.run_seconds
    until = now if now - execution.heard_at < _SILENT else execution.heard_at
    return execution.run_seconds + max(0.0, (until - execution.held_since).total_seconds())


def _away(rows: list[tuple[str, int, int]], now: datetime) -> list[dict[str, Any]]:
    """Return the domains that are waited for, as rows of what is slow."""
    found = []
    for domain, since, until in rows:
        wait_s = (from_micros(until) - now).total_seconds()
        why = f"cannot be reached since {from_micros(since):%H:%M:%S} UTC, tried again in {wait_s:.0f} s"
        found.append({"domain": domain, "seconds": round(wait_s, 1), "why": why})
    return found


def _sum(counts: list[dict[str, Any]], key: str) -> int:
    return sum(count.get(key, 0) for count in counts)


def is_abandoned(hot: Hot, clock: Clock, execution_id: int, *, folder: Path) -> bool:
    """Return whether a crawl without a job is said to run and no process, of any machine, works on it."""
    with hot.read() as tx:
        holding = queries.holding(tx, execution_id=execution_id)
    if holding.is_of_job or holding.state != "running":
        return False
    return not living_owners(hot, clock, execution_id=execution_id, folder=folder)
