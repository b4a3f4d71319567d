"""Selection of jobs and executions by commands: by number, or all of them; and their description as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

import typer

from holdfast.cli.formatting import counted, duration
from holdfast.config import Settings
from holdfast.db.engine import Database, open_database
from holdfast.db.models import Execution, Job
from holdfast.errors import Conflict, NotFound
from holdfast.jobs import endings
from holdfast.jobs.endings import sentence_of
from holdfast.jobs.kinds import CRAWL, FEED, UNCAPPED
from holdfast.jobs.pauses import RunWait
from holdfast.jobs.records import job_record
from holdfast.jobs.store import JobNotFound, interval_of, schedule_of_job
from holdfast.jobs.views import listing
from holdfast.jobs.views.listing import JobRow, shown_job
from holdfast.records import Spelling, encode
from holdfast.sources.schedule import words_of

RUN = "job=job.id execution=execution.id source=source.code"
"""The fields of `--json` that identify a run (`printing.picked`)."""
JOB_KINDS = (CRAWL, *UNCAPPED, FEED, "canary")
"""Kinds that a worker runs; ad-hoc crawls and imports have commands of their own."""


class NamedJob(NamedTuple):
    """A job by its number, which is written as an argument or as an option."""

    job: Annotated[int | None, typer.Argument(help="The job's number.", metavar="JOB")] = None
    job_id: Annotated[int | None, typer.Option("--id", help="The job's number, written as an option.")] = None

    @property
    def number(self) -> int:
        """Its number; exit code 2 if none is given, or two."""
        # Use a set: `job show 3 --id 3` names one job twice.
        given = {one for one in self if one is not None}
        if len(given) != 1:
            raise typer.BadParameter("name one job by its number; see them with: holdfast job list", param_hint="JOB")
        return given.pop()


@contextmanager
def open_for_jobs(settings: Settings) -> Iterator[tuple[Settings, Database]]:
    """Open the database with the settings, by which waiting runs are explained."""
    with open_database(settings) as database:
        yield settings, database


def find_job(database: Database, job_id: int) -> JobRow:
    """Return a job, whether the scheduler runs it or not; raise NotFound if it is missing."""
    try:
        with database.read() as session:
            return shown_job(session, job_id, scheduled=False)
    except JobNotFound as exc:
        raise NotFound(f"there is no job {job_id}; see them with: holdfast job list") from exc


def job_json(row: JobRow, waits: Mapping[int, RunWait] = MappingProxyType({})) -> dict[str, Any]:
    """Return a job for `--json`: `status` is that of `/api/admin/jobs`, `state` is the job's own state."""
    return {**encode(job_record(row, waits), spelling=Spelling.COMMAND), "status": row.admin_status}


def interval_text(job: Job) -> str:
    """Return as text how often a job runs."""
    schedule = schedule_of_job(job)
    # `slowed_text` says how often an adaptive job runs at present.
    return words_of(schedule and replace(schedule, adapts=False))


def slowed_text(job: Job) -> str | None:
    """Return how often a job currently runs, if an unchanged start page has slowed it down."""
    baseline = interval_of(job.interval_minutes, job.interval_type)
    if baseline is None or job.anchor is not None or not (job.schedule_enabled and job.adaptive_scheduling):
        return None
    present = endings.interval(baseline, job.unchanged_count)
    if present == baseline:
        return None
    often = f"{job.unchanged_count} times" if job.unchanged_count > 1 else "once"
    return f"every {duration(present.total_seconds())}: its start page stayed the same {often}"


def ended_text(row: Execution) -> str | None:
    """Return as text how an execution ended and its shortfalls; None while it has not ended."""
    if row.state in ("queued", "running"):
        return None
    return sentence_of(row.state, row.reason, row.shortfalls)


_NAMED = 10


class SelectedExecutions(NamedTuple):
    """The selected executions, and the job that was named."""

    job_id: int | None = None
    executions: tuple[int, ...] | None = None
    """Oldest first; None for all."""

    def each(self) -> tuple[int | None, ...]:
        """Return the selected ids one by one; a single None stands for all."""
        return (None,) if self.executions is None else self.executions

    @property
    def only(self) -> int:
        """The only selected execution; fails if there are several."""
        assert self.executions is not None
        [one] = self.executions
        return one

    def label(self) -> str:
        """Return the selection as text."""
        if self.executions is None:
            return "all executions"
        count = len(self.executions)
        words = counted(count, "execution")
        if 0 < count <= _NAMED:
            words = f"execution{'s' if count > 1 else ''} {', '.join(map(str, self.executions))}"
        return words if self.job_id is None else f"job {self.job_id}, {words}"

    def facts(self) -> dict[str, Any]:
        return {"job": self.job_id, "executions": None if self.executions is None else list(self.executions)}


class OfExecutions(NamedTuple):
    """Options of commands for all executions, those of a job, or one."""

    job_id: Annotated[int | None, typer.Option("--id", help="Only this job's; all if left out.", metavar="JOB")] = None
    execution: Annotated[int | None, typer.Option(help="Only this execution's.", metavar="EXECUTION")] = None

    def find(self, database: Database) -> SelectedExecutions:
        """Return the executions; NotFound."""
        if self.execution is not None:
            return _one(database, self.job_id, self.execution)
        if self.job_id is None:
            return SelectedExecutions()
        return SelectedExecutions(self.job_id, tuple(sorted(_history(database, self.job_id))))


class OneExecution(NamedTuple):
    """Options of commands for one execution."""

    job_id: Annotated[
        int | None,
        typer.Option("--id", help="The job's number; its newest completed execution is used.", metavar="JOB"),
    ] = None
    execution: Annotated[int | None, typer.Option(help="An execution's number instead.", metavar="EXECUTION")] = None

    def find(self, database: Database) -> SelectedExecutions:
        """Return the execution; exit code 2 if none is named; NotFound, also if the job has completed none."""
        if self.execution is not None:
            return _one(database, self.job_id, self.execution)
        if self.job_id is None:
            raise typer.BadParameter("name a job (see: holdfast job list), or an --execution", param_hint="--id")
        if completed := _history(database, self.job_id, state="completed"):
            return SelectedExecutions(self.job_id, (completed[0],))
        raise NotFound(
            f"job {self.job_id} has no completed execution; name another with --execution, see: "
            f"holdfast job executions {self.job_id}"
        )


def _one(database: Database, job_id: int | None, execution_id: int) -> SelectedExecutions:
    with database.read() as session:
        found = listing.execution(session, execution_id)
    if found is None or job_id not in (None, found.job_id):
        of = "" if job_id is None else f" of job {job_id}"
        raise NotFound(f"there is no execution {execution_id}{of}; see them with: holdfast status")
    return SelectedExecutions(found.job_id, (execution_id,))


def _history(database: Database, job_id: int, *, state: str | None = None) -> list[int]:
    try:
        find_job(database, job_id)
    except NotFound as exc:
        raise NotFound(f"{exc}; an execution is named with --execution") from exc
    with database.read() as session:
        return listing.execution_ids(session, job_id=job_id, state=state)


@contextmanager
def naming(database: Database, job_id: int) -> Iterator[None]:
    """Raise an error that names the job, if it is missing or the scheduler does not run it."""
    try:
        yield
    except JobNotFound as exc:
        kind = find_job(database, job_id).job.kind
        raise Conflict(
            f"job {job_id} is of kind {kind}: its own command runs and ends it (holdfast crawl, stop, import)"
        ) from exc
