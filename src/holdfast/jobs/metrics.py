"""How the scheduler is doing, as one value (NC-024). Counting costs the same whatever the length of the history."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy.orm import Session

from holdfast.jobs.listing.queries import state_counts
from holdfast.jobs.schedule import queries
from holdfast.jobs.states import State

WINDOW: Final = timedelta(hours=24)
LOW_SUCCESS: Final = 0.8
_STALE_OFTEN: Final = 3
_ENOUGH_RUNS: Final = 5
"""A rate of fewer runs says nothing: the first run that fails would be "only 0% succeeded"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerMetrics:
    """Counts over all jobs, and how the runs of the last 24 hours went."""

    jobs: dict[str, int]
    """By state, all seven."""
    executions_total: int
    """Of all time."""
    average_duration_ms: float
    success_rate: float
    """1.0 if nothing ran."""
    finished_recently: int
    """Runs that the rate is of: those of the last 24 hours that succeeded or failed."""
    stale_locks_cleared: int
    """Of all time."""
    stale_locks_recent: int
    last_check_at: datetime | None
    """When the scheduler looked for due jobs last."""
    last_metrics_update: datetime

    def warnings(self) -> tuple[str, ...]:
        """Return what deserves a look: many failures, or holders that keep falling silent."""
        found = []
        if self.success_rate < LOW_SUCCESS and self.finished_recently >= _ENOUGH_RUNS:
            found.append(f"only {self.success_rate:.0%} of the runs of the last 24 hours succeeded")
        if self.stale_locks_recent >= _STALE_OFTEN:
            found.append(f"{self.stale_locks_recent} stale locks in 24 hours: workers die or hang")
        return tuple(found)


def count_metrics(session: Session, *, now: datetime, last_check_at: datetime | None) -> SchedulerMetrics:
    """Count the jobs by state and add up the hours."""
    states = state_counts(session)
    ever, lately = queries.hours_since(session, None), queries.hours_since(session, now - WINDOW)
    finished = lately["succeeded"] + lately["failed"]
    runs = finished + lately["cancelled"]
    return SchedulerMetrics(
        jobs={state.value: states.get(state.value, 0) for state in State},
        executions_total=ever["succeeded"] + ever["failed"] + ever["cancelled"],
        average_duration_ms=lately["duration_ms"] / runs if runs else 0.0,
        success_rate=lately["succeeded"] / finished if finished else 1.0, finished_recently=finished,
        stale_locks_cleared=ever["stale_locks"], stale_locks_recent=lately["stale_locks"],
        last_check_at=last_check_at, last_metrics_update=now,
    )  # fmt: skip
