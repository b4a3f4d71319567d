"""What a job is asked to be, checked before anything of it is written; the field that is wrong is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from holdfast.db.models import Job
from holdfast.db.text import clean
from holdfast.errors import Conflict, Invalid, NotFound, UrlRefused
from holdfast.jobs.intervals import interval_of
from holdfast.sources.config import SourceConfig
from holdfast.urls import parse_seed

BackendCheck = Callable[[SourceConfig], object]
"""Refuses, with Invalid, a configuration that its backend could not run; wired from the room that knows the backend."""


class JobRefused(Invalid):
    """A job cannot be like this; `field` says which part of it is wrong."""

    code = "job_refused"

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field, self.reason = field, reason


class JobNotFound(NotFound):
    """There is no such job, or it was deleted."""

    code = "job_not_found"
    summary = "Job not found"

    def __init__(self) -> None:
        super().__init__("Job not found; see them with: holdfast job list, or GET /api/v1/jobs")


class ScheduleKept(Conflict):
    """A source's job recurs, and a wish for one run would end that without having said so."""

    code = "schedule_kept"

    def __init__(self, code: str, job_id: int) -> None:
        super().__init__(
            f"{code} has job {job_id} already, which recurs; let it run with: holdfast job run-now {job_id}, change it "
            f"with: holdfast job edit {job_id}, or replace its schedule: --every or --once (over HTTP: say "
            "schedule_enabled)"
        )


class JobBusy(Conflict):
    """A job that runs cannot be deleted."""

    code = "job_busy"

    def __init__(self, job_id: int) -> None:
        super().__init__(f"job {job_id} is running; cancel it first, and delete it when it has stopped")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """When and how a source is to be crawled."""

    source_id: int
    url: str | None = None
    """The start page, a seed besides the source's; the first of those if left out."""
    name: str | None = None
    interval_minutes: int | None = None
    interval_type: str = "minutes"
    schedule_enabled: bool = False
    adaptive_scheduling: bool = True
    max_retries: int = 3
    retry_backoff_seconds: int = 60
    config: dict[str, Any] = field(default_factory=dict)
    """Fields of the source's configuration that this job has otherwise."""
    details: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, job: Job) -> JobSpec:
        """Return the plan that a job has: what an edit begins with."""
        return cls(
            source_id=job.source_id,
            url=job.url if job.url_given else None,
            name=job.name,
            interval_minutes=job.interval_minutes,
            interval_type=job.interval_type,
            schedule_enabled=job.schedule_enabled,
            adaptive_scheduling=job.adaptive_scheduling,
            max_retries=job.max_retries,
            retry_backoff_seconds=job.retry_backoff_seconds,
            config=dict(job.config),
            details=dict(job.details),
        )

    @property
    def interval(self) -> timedelta | None:
        """The time between two runs, None for a job that runs once."""
        return interval_of(self.interval_minutes, self.interval_type)

    @property
    def recurring(self) -> bool:
        """Whether the job is scheduled rather than run once."""
        return self.schedule_enabled and self.interval_minutes is not None

    def check(self) -> None:
        """Raise Invalid with the first field that is wrong."""
        if self.interval is None and self.schedule_enabled:
            raise JobRefused("interval_minutes", "a schedule needs one; with schedule_enabled false the job runs once")
        for name, most in (("max_retries", 100), ("retry_backoff_seconds", 3600)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
                raise JobRefused(name, f"it must be a whole number from 0 to {most}")
        if self.name is not None and clean(self.name, len(self.name)) != self.name:
            raise JobRefused("name", "it holds a character that cannot be stored: NUL, or half of one")
        if self.url is not None:
            try:
                parse_seed(self.url)
            except UrlRefused as exc:
                raise JobRefused("url", str(exc)) from exc
