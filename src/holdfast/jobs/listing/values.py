"""What a list of jobs is asked for, and what comes back. Limits are kept here, so that no caller can forget them."""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple

from holdfast.db.models import Execution, Job, Source
from holdfast.jobs.projection import Latest, admin_state

DEFAULT_LIMIT: Final = 50
MAX_LIMIT: Final = 250
"""Of document 003's lists (NC-004)."""
ADMIN_MAX_LIMIT: Final = 500
MAX_OFFSET: Final = 10_000_000
SORTS: Final = ("created_at", "updated_at", "status", "source_name", "next_run_at", "last_run_at", "type")


class JobFilter(NamedTuple):
    """Which jobs of document 003 are listed, and in which order."""

    states: tuple[str, ...] = ()
    source_id: int | None = None
    kind: str | None = None
    search: str = ""
    sort_by: str = "created_at"
    descending: bool = True
    limit: int = DEFAULT_LIMIT
    offset: int = 0


class AdminFilter(NamedTuple):
    """Which jobs of document 000 are listed, newest first."""

    source: str | None = None
    """A source's code."""
    status: str | None = None
    """One of `projection.ADMIN_STATES`."""
    limit: int = DEFAULT_LIMIT
    offset: int = 0


class ListedJob(NamedTuple):
    """A job, its source, and its newest execution if it has any (without its stack and metrics)."""

    job: Job
    source: Source
    latest: Execution | None

    @property
    def retries(self) -> int:
        """How many retries its present run has burnt; trouble of the machine burns none."""
        return self.job.current_retry_count

    @property
    def admin_status(self) -> str:
        """Its state in document 000's words."""
        latest = None if self.latest is None else Latest(self.latest.state, self.latest.index_state)
        tried = self.job.current_retry_count + self.job.infra_retry_count
        failed = self.job.error_message is not None
        return admin_state(self.job.state, retries=tried, latest=latest, failed=failed)


class Files(NamedTuple):
    """The WARC files of an execution."""

    number: int = 0
    size: int = 0


class Pages(NamedTuple):
    """How far a crawl is: while it runs, from what its processes last wrote."""

    crawled: int = 0
    total: int = 0
    failed: int = 0


class JobStats(NamedTuple):
    """A job's history in a few figures (NC-009); as many as document 003 names, under its names."""

    total_executions: int
    successful_runs: int
    failed_runs: int
    average_duration_ms: float
    last_execution_at: datetime | None
    next_scheduled_at: datetime | None
    success_rate: float


def sort_word(word: str) -> str:
    """Return the order that is used for a word: an unknown one falls back to created_at (NC-004)."""
    return word if word in SORTS else "created_at"


def bounded_limit(limit: int, *, most: int = MAX_LIMIT) -> int:
    """Return how many rows are read for a wish: at most what the list allows; 0 and less count as 50."""
    return min(limit, most) if limit > 0 else DEFAULT_LIMIT


def stats_of(job: Job) -> JobStats:
    """Return a job's stats; they stand in its row, whatever the length of its history."""
    finished = job.successful_runs + job.failed_runs
    return JobStats(
        total_executions=job.total_runs, successful_runs=job.successful_runs, failed_runs=job.failed_runs,
        average_duration_ms=job.total_duration_ms / job.total_runs if job.total_runs else 0.0,
        last_execution_at=job.last_execution_at, next_scheduled_at=job.next_run_at,
        success_rate=job.successful_runs / finished if finished else 0.0,
    )  # fmt: skip
