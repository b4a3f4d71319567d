"""Jobs and executions as commands name and print them: a number in, lines out."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.formatting import duration
from holdfast.db.engine import Database
from holdfast.db.models import Execution, Job
from holdfast.errors import NotFound
from holdfast.jobs import endings
from holdfast.jobs.endings import sentence_of
from holdfast.jobs.store import CRAWL, FEED, UNCAPPED, interval_of
from holdfast.jobs.views.listing import ListedJob, shown_job

JobArgument = Annotated[int | None, typer.Argument(help="The job's number.", metavar="JOB")]
JobOption = Annotated[int | None, typer.Option("--id", help="The job's number, as the documents write it.")]


JOB_KINDS = (CRAWL, *UNCAPPED, FEED, "canary")
"""Kinds that a worker runs; ad-hoc crawls and imports have commands of their own."""


def job_number(argument: int | None, option: int | None) -> int:
    """Return the job that is meant, however it was named; exit code 2 if it was not, or twice."""
    given = {one for one in (argument, option) if one is not None}
    if len(given) != 1:
        raise typer.BadParameter("name one job by its number; see them with: holdfast job list", param_hint="JOB")
    return given.pop()


def find_job(database: Database, job_id: int) -> ListedJob:
    """Return a job, whether the scheduler runs it or not; NotFound."""
    with database.read() as session:
        found = shown_job(session, job_id, scheduled=False)
    if found is None:
        raise NotFound(f"there is no job {job_id}; see them with: holdfast job list")
    return found


def interval_text(job: Job) -> str:
    """Return how often a job runs, in words."""
    if job.interval_minutes is None or not job.schedule_enabled:
        return "once"
    unit = job.interval_type.removesuffix("s")
    return f"every {unit}" if job.interval_minutes == 1 else f"every {job.interval_minutes} {job.interval_type}"


def slowed_text(job: Job) -> str | None:
    """Return how often a job runs at present, if a start page that stays the same has slowed it down."""
    baseline = interval_of(job.interval_minutes, job.interval_type)
    if baseline is None or not (job.schedule_enabled and job.adaptive_scheduling):
        return None
    present = endings.interval(baseline, job.unchanged_count)
    if present == baseline:
        return None
    often = f"{job.unchanged_count} times" if job.unchanged_count > 1 else "once"
    return f"every {duration(present.total_seconds())}: its start page stayed the same {often}"


def ended_text(row: Execution) -> str | None:
    """Return in words how an execution ended and what it fell short of; None while it has not ended."""
    if row.state in ("queued", "running"):
        return None
    return sentence_of(row.state, row.reason, row.shortfalls)
