"""`holdfast job create` and `edit`: a job's plan from options. It is checked before anything is queued."""

from __future__ import annotations

import json as jsonlib
from dataclasses import replace
from typing import Annotated, Any, NamedTuple

import typer

from holdfast import config
from holdfast.cli.assignments import read_assignments
from holdfast.cli.job_naming import naming
from holdfast.cli.job_words import (
    JobArgument,
    JobOption,
    find_job,
    interval_text,
    job_number,
    job_object,
)
from holdfast.cli.options import AsJson, Home
from holdfast.cli.values import read_size, read_time
from holdfast.db.models import Source
from holdfast.jobs.board.board import Upserted
from holdfast.jobs.board.queries import locked_job
from holdfast.jobs.listing.queries import shown_job
from holdfast.jobs.specs import JobNotFound, JobSpec
from holdfast.sources.config import merge_fields, read_config
from holdfast.sources.registry import content_of, find
from holdfast.wiring.jobs import Jobs, open_jobs

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "": "minutes"}

Every = Annotated[str | None, typer.Option("--every", help="Interval, as 30m, 6h or 7d; without it: once.")]
Seeds = Annotated[list[str] | None, typer.Option("--seed", help="One more address to begin at; repeatable.")]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", help="A field of the source's configuration that this job has otherwise; repeatable."),
]
PageLimit = Annotated[
    int | None, typer.Option("--page-limit", min=1, help="At most so many pages; not for annual jobs.")
]
MaxBytes = Annotated[str | None, typer.Option("--max-bytes", help="At most so much from the network, as 5GB.")]
MaxTime = Annotated[str | None, typer.Option("--max-time", help="At most so long at work, as 30m, 6h or 7d.")]
Depth = Annotated[int | None, typer.Option("--depth", min=-1, help="Links to follow from a seed; not for annual jobs.")]
Name = Annotated[str | None, typer.Option("--name", help="Its name; by the source's template if left out.")]
Address = Annotated[str | None, typer.Option("--url", help="The start page; the first seed if left out.")]
Retries = Annotated[int | None, typer.Option("--max-retries", min=0, max=100, help="Tries after a failure.")]
Backoff = Annotated[int | None, typer.Option("--retry-backoff", min=0, max=3600, help="Seconds before the first one.")]
Adaptive = Annotated[
    bool | None, typer.Option("--adaptive/--no-adaptive", help="Whether a page that does not change slows it down.")
]
Once = Annotated[bool, typer.Option("--once", help="Run once, also where there was a schedule.")]


class Overrides(NamedTuple):
    """What a job has otherwise than its source, as it was typed."""

    seeds: list[str] | None
    sets: list[str] | None
    page_limit: int | None
    depth: int | None
    max_bytes: str | None = None
    max_time: str | None = None

    def fields(self, present: dict[str, Any], base: Source) -> dict[str, Any]:
        """Return the fields of the configuration: those that the job had, and what is said anew."""
        made = merge_fields(present, read_assignments(self.sets or ()))
        there = made.get("seeds", read_config(content_of(base), needs_seeds=False).seeds)
        if self.seeds and isinstance(there, list | tuple):  # anything else is refused by the board
            made["seeds"] = [*there, *self.seeds]
        limits = {
            "max_pages": self.page_limit,
            "max_depth": self.depth,
            "quota_bytes": read_size(self.max_bytes),
            "max_time_s": read_time(self.max_time),
        }
        for name, value in limits.items():
            if value is not None:
                made[name] = value
        return made


def create(
    source: Annotated[str, typer.Option("--source", help="The source's code.", metavar="CODE")],
    every: Every = None, once: Once = False, name: Name = None, url: Address = None, seed: Seeds = None,
    sets: Sets = None, page_limit: PageLimit = None, depth: Depth = None, max_bytes: MaxBytes = None,
    max_time: MaxTime = None, max_retries: Retries = None,
    retry_backoff: Backoff = None, adaptive: Adaptive = None, json: AsJson = False, home: Home = None,
) -> None:  # fmt: skip
    """Make the crawl job of a source, or give the one that it has a new plan: on a schedule, or once and at once.

    Example: holdfast create-job --source hc --every 6h --set delay_s=2
    """
    interval, wish = _interval(every, once=once), Overrides(seed, sets, page_limit, depth, max_bytes, max_time)
    with open_jobs(config.load(home=home)) as jobs:
        with jobs.database.write() as session:
            row = find(session, source)
            number, unit = interval or (None, "minutes")
            spec = JobSpec(
                source_id=row.id, url=url, interval_minutes=number, interval_type=unit,
                name=name or read_config(content_of(row), needs_seeds=False).job_name(row.code, jobs.clock.now()),
                schedule_enabled=number is not None, config=wish.fields({}, row),
                **_given(max_retries=max_retries, retry_backoff_seconds=retry_backoff, adaptive_scheduling=adaptive),
            )  # fmt: skip
            done = jobs.board.upsert(session, spec, replaces_schedule=interval is not None or once)
        _print(jobs, done, json=json)


def edit(
    job: JobArgument = None, job_id: JobOption = None, every: Every = None, once: Once = False, name: Name = None,
    url: Address = None, seed: Seeds = None, sets: Sets = None, page_limit: PageLimit = None, depth: Depth = None,
    max_bytes: MaxBytes = None, max_time: MaxTime = None, max_retries: Retries = None, retry_backoff: Backoff = None,
    adaptive: Adaptive = None, json: AsJson = False, home: Home = None,
) -> None:  # fmt: skip
    """Change the plan of a job; what is not named stays. --set FIELD=null lets a field follow the source again.

    Example: holdfast job edit 3 --every 12h --max-retries 5
    """
    number, interval = job_number(job, job_id), _interval(every, once=once)
    wish = Overrides(seed, sets, page_limit, depth, max_bytes, max_time)
    told = _given(name=name, url=url, max_retries=max_retries, retry_backoff_seconds=retry_backoff,
                  adaptive_scheduling=adaptive)  # fmt: skip
    if interval is not None or once:
        told |= {"interval_minutes": interval and interval[0], "interval_type": interval[1] if interval else "minutes",
                 "schedule_enabled": interval is not None}  # fmt: skip
    if not told and not any(one is not None for one in wish):
        raise typer.BadParameter("say what to change, for example --every 6h or --set delay_s=5")
    with open_jobs(config.load(home=home)) as jobs:
        with naming(jobs.database, number), jobs.database.write() as session:
            locked_job(session, number)
            found = shown_job(session, number)
            if found is None:
                raise JobNotFound
            overrides = wish.fields(dict(found.job.config), found.source)
            done = jobs.board.edit(session, number, replace(JobSpec.of(found.job), **told, config=overrides))
        _print(jobs, done, json=json)


def _interval(every: str | None, *, once: bool) -> tuple[int, str] | None:
    if every is None:
        return None
    written = every.strip().lower()
    number, unit = written.rstrip("mhd"), written[-1:]
    if once or not number.isascii() or not number.isdecimal() or unit not in (*_UNITS, *"0123456789"):
        why = "it does not go with --once" if once else f"{every[:40]!r} is none; write for example 30m, 6h or 7d"
        raise typer.BadParameter(why, param_hint="--every")
    return int(number), _UNITS.get(unit, "minutes")


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _print(jobs: Jobs, done: Upserted, *, json: bool) -> None:
    found = find_job(jobs.database, done.job.id)
    if json:
        told = {**job_object(found), "created": done.created, "warnings": list(done.warnings)}
        print(jsonlib.dumps(told, ensure_ascii=False))
        return
    row = found.job
    when = f", next run {row.next_run_at:%Y-%m-%d %H:%M:%S}" if row.next_run_at else ""
    print(f"job {row.id} {'made' if done.created else 'changed'}: {found.source.code}, {interval_text(row)}, "
          f"{row.state}{when}")  # fmt: skip
    for warning in done.warnings:
        print(f"warning: {warning}")
