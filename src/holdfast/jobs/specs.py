"""Specification of a job, validated before anything is written; errors name the field."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from datetime import timedelta
from typing import Any, Final

from holdfast.db.models import Job, Source
from holdfast.errors import Conflict, Invalid, UrlRefused
from holdfast.jobs.kinds import UNCAPPED
from holdfast.jobs.store import interval_of
from holdfast.outside_text import clean
from holdfast.sources.config import UNLIMITED, SourceConfig, SourceRefused, merged, read_config, zimit_job
from holdfast.sources.plan import CrawlPlan, Polled
from holdfast.sources.registry import content_of
from holdfast.sources.schedule import DATED, Schedule
from holdfast.urls import parse_seed
from holdfast.values import dataclass

BackendCheck = Callable[[SourceConfig], object]
"""Raises Invalid for a configuration that its backend could not run; `wiring.jobs` creates it."""


class JobRefused(Invalid):
    """An invalid job specification; `field` names the invalid part."""

    code = "job_refused"

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field, self.reason = field, reason


class ScheduleKept(Conflict):
    """The source's job recurs, and a request for one run would end that without saying so explicitly."""

    code = "schedule_kept"

    def __init__(self, code: str, job_id: int) -> None:
        super().__init__(
            f"{code} has job {job_id} already, which recurs; let it run with: holdfast job run-now {job_id}, change it "
            f"with: holdfast job edit {job_id}, or replace its schedule: --every or --once (over HTTP: say "
            "schedule_enabled)"
        )


class JobBusy(Conflict):
    """A running job cannot be deleted."""

    code = "job_busy"

    def __init__(self, job_id: int) -> None:
        super().__init__(f"job {job_id} is running; cancel it first, and delete it when it has stopped")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    source_id: int
    url: str | None = None
    """The start page, a seed in addition to the source's; defaults to the first of those."""
    name: str | None = None
    interval_minutes: int | None = None
    interval_type: str = "minutes"
    anchor: str | None = None
    """The first turn of a schedule that sets the time; see `holdfast.sources.schedule`."""
    schedule_enabled: bool = False
    adaptive_scheduling: bool = True
    max_retries: int = 3
    retry_backoff_seconds: int = 60
    config: dict[str, Any] = field(default_factory=dict)
    """Overrides of the source's configuration for this job."""
    details: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, job: Job) -> JobSpec:
        assert job.source_id is not None, f"job {job.id} is an operation"
        return cls(
            source_id=job.source_id,
            url=job.url if job.url_given else None,
            config=dict(job.config),
            details=dict(job.details),
            **{name: getattr(job, name) for name in COLUMNS},
        )

    @property
    def interval(self) -> timedelta | None:
        return interval_of(self.interval_minutes, self.interval_type)

    @property
    def recurring(self) -> bool:
        return self.schedule_enabled and self.interval_minutes is not None

    def at(self, schedule: Schedule | None) -> JobSpec:
        """Return the specification with another schedule; None runs once."""
        if schedule is None:
            return replace(self, interval_minutes=None, interval_type="minutes", anchor=None, schedule_enabled=False)
        return replace(
            self,
            interval_minutes=schedule.number,
            interval_type=schedule.unit,
            anchor=schedule.anchor,
            schedule_enabled=True,
        )

    @property
    def rhythm(self) -> tuple[timedelta | None, str | None]:
        """Interval and anchor: two schedules are the same if these are equal."""
        return self.interval, self.anchor

    def check(self) -> None:
        if self.interval is None and self.schedule_enabled:
            raise JobRefused("interval_minutes", "a schedule needs one; with schedule_enabled false the job runs once")
        if self.anchor is None and self.interval_minutes is not None and self.interval_type in DATED:
            raise JobRefused(
                "interval_type", "months and years need a date; write `schedule`: yearly on 1 January at 03:00"
            )
        for name, most in (("max_retries", 100), ("retry_backoff_seconds", 3600)):
            value = getattr(self, name)
            # In Python True is an int and would mean one retry.
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
                raise JobRefused(name, f"it must be a whole number from 0 to {most}")
        # PostgreSQL stores no NUL, and no half of a surrogate pair can be written as UTF-8.
        if self.name is not None and clean(self.name, len(self.name)) != self.name:
            raise JobRefused("name", "it holds a character that cannot be stored: NUL, or half of one")
        if self.url is not None:
            try:
                parse_seed(self.url)
            except UrlRefused as exc:
                raise JobRefused("url", str(exc)) from exc


COLUMNS: Final = (
    *("name", "interval_minutes", "interval_type", "anchor", "schedule_enabled", "adaptive_scheduling"),
    *("max_retries", "retry_backoff_seconds"),
)
"""Fields of a specification that a job's row has under the same name."""
POLL_S = 3600.0
"""Time limit of one poll in seconds; items that it did not reach wait for the next."""


def job_config(job: Job, source: Source) -> SourceConfig:
    """Return the effective configuration of a job: its source's, with the job's overrides; raise Invalid."""
    return planned_config(source, job.config, start=job.url if job.url_given else None)


def effective_config(job: Job, source: Source, *, check: BackendCheck | None = None) -> SourceConfig:
    """Return the effective configuration of a job; raise JobRefused, or the error of `check`."""
    return checked_config(source, job.config, start=job.url if job.url_given else None, check=check)


def checked_config(
    source: Source, overrides: Mapping[str, Any], *, start: str | None, check: BackendCheck | None
) -> SourceConfig:
    """Return `planned_config`; raise JobRefused, or the error of `check`."""
    try:
        made = planned_config(source, overrides, start=start)
    except SourceRefused as exc:
        raise JobRefused(f"config.{exc.field}", exc.reason) from exc
    if check is not None:
        check(made)
    return made


def check_uncapped(kind: str, config: SourceConfig, annual_check: BackendCheck | None = None) -> None:
    """Raise JobRefused for page or depth limits on jobs bounded only by scope; `annual_check` validates the tool's."""
    if kind not in UNCAPPED:
        return
    for name, value, free in (("max_pages", config.max_pages, None), ("max_depth", config.max_depth, UNLIMITED)):
        if value != free:
            why = f"an annual job has no cap on pages or depth: its scope rules alone bound it; {value} is one"
            raise JobRefused(f"config.{name}", why)
    if annual_check is not None:
        annual_check(config)


def shown_config(job: Job, source: Source, *, delay_s: float) -> dict[str, Any]:
    """Return a job's configuration for display: zimit's in the format of `archive-tool`, as stored if unreadable.

    `delay_s` is the default delay of a native crawl.
    """
    try:
        config = job_config(job, source)
    except Invalid:
        return job.config
    if config.backend == "zimit":
        return zimit_job(config)
    return {
        "seeds": list(config.seeds),
        "scope": config.scope,
        "max_depth": config.max_depth,
        "max_pages": config.max_pages,
        "delay_s": delay_s if config.delay_s is None else config.delay_s,
        "robots": config.robots,
        "include": [str(rule) for rule in config.include],
        "exclude": [str(rule) for rule in config.exclude],
    }


def planned_config(source: Source, overrides: Mapping[str, Any], *, start: str | None) -> SourceConfig:
    """Return the configuration of a job with these overrides, and its start page, if any.

    A start page becomes the first seed: with one, the source need not have any. Raise Invalid naming the field.
    """
    return merged(read_config(content_of(source), needs_seeds=False), overrides=overrides, start=start)


def start_url(job: Job, source: Source) -> str | None:
    """Return the page by which a job detects changes; falls back to `job.url` on an invalid configuration."""
    if job.url_given:
        return job.url
    try:
        return job_config(job, source).seeds[0]
    except Invalid:
        return job.url


def feed_plan(plan: CrawlPlan, lists: Sequence[Polled], *, search: bool) -> CrawlPlan:
    """Return the plan of a poll: fetch due feeds, and capture new items with their requisites, no further.

    Its time limit of one hour releases the worker if a server requests a delay of hours.
    """
    return replace(
        plan,
        feeds="poll",
        lists=tuple(lists),
        search=search,
        # Set no depth: a poll captures the items of a feed; links of those pages belong to the crawl job.
        max_depth=0,
        max_pages=None,
        max_time_s=POLL_S,
    )
