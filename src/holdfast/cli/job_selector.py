"""Jobs and executions as commands name them: by a number, or all of them; and how they are put in words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated, Any, NamedTuple

import typer

from holdfast.cli.formatting import counted, duration
from holdfast.db.engine import Database
from holdfast.db.models import Execution, Job
from holdfast.errors import Conflict, NotFound
from holdfast.jobs import endings
from holdfast.jobs.endings import sentence_of
from holdfast.jobs.store import CRAWL, FEED, UNCAPPED, JobNotFound, interval_of, schedule_of_job
from holdfast.jobs.views import listing
from holdfast.jobs.views.listing import ListedJob, shown_job
from holdfast.sources.schedule import words_of

JobArgument = Annotated[int | None, typer.Argument(help="The job's number.", metavar="JOB")]
JobOption = Annotated[int | None, typer.Option("--id", help="The job's number, written as an option.")]


JOB_KINDS = (CRAWL, *UNCAPPED, FEED, "canary")
"""Kinds that a worker runs; ad-hoc crawls and imports have commands of their own."""


def job_number(argument: int | None, option: int | None) -> int:
    """Return the job that is meant, however it was named; exit code 2 if it was not, or twice."""
    # A set: `job show 3 --id 3` names one job twice and means it.
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
    schedule = schedule_of_job(job)
    # What an adaptive one does at present is told beside it.
    return words_of(schedule and replace(schedule, adapts=False))


def slowed_text(job: Job) -> str | None:
    """Return how often a job runs at present, if a start page that stays the same has slowed it down."""
    baseline = interval_of(job.interval_minutes, job.interval_type)
    if baseline is None or job.anchor is not None or not (job.schedule_enabled and job.adaptive_scheduling):
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


_PAGE = 200
_TOLD = 10
OfJob = Annotated[int | None, typer.Option("--id", help="Only this job's; all if left out.", metavar="JOB")]
OfExecution = Annotated[int | None, typer.Option("--execution", help="Only this execution's.", metavar="EXECUTION")]
NewestOfJob = Annotated[
    int | None, typer.Option("--id", help="The job's number; its newest completed execution is meant.", metavar="JOB")
]
OneExecution = Annotated[
    int | None, typer.Option("--execution", help="An execution's number instead.", metavar="EXECUTION")
]


class SelectedExecutions(NamedTuple):
    """The executions that are meant, and the job by which they were named."""

    job_id: int | None = None
    executions: tuple[int, ...] | None = None
    """Oldest first; None: all there are."""

    def each(self) -> tuple[int | None, ...]:
        """Return what to pass on, one after the other; a None alone stands for all."""
        return (None,) if self.executions is None else self.executions

    @property
    def only(self) -> int:
        """The execution, where one alone is meant."""
        assert self.executions is not None
        [one] = self.executions
        return one

    def told(self) -> str:
        """Return in words what is meant."""
        if self.executions is None:
            return "all executions"
        count = len(self.executions)
        words = f"execution{'s' if count > 1 else ''} {', '.join(map(str, self.executions))}"
        if not 0 < count <= _TOLD:
            words = counted(count, "execution")
        return words if self.job_id is None else f"job {self.job_id}, {words}"

    def facts(self) -> dict[str, Any]:
        """Return the same for `--json`."""
        return {"job": self.job_id, "executions": None if self.executions is None else list(self.executions)}


def find_executions(database: Database, job_id: int | None, execution_id: int | None) -> SelectedExecutions:
    """Return the executions that are meant: this one, all of this job, or all; NotFound if it is not there."""
    if execution_id is not None:
        return _one(database, job_id, execution_id)
    if job_id is None:
        return SelectedExecutions()
    return SelectedExecutions(job_id, tuple(sorted(one.id for one in _history(database, job_id))))


def find_completed(database: Database, job_id: int | None, execution_id: int | None) -> SelectedExecutions:
    """Return the one that is meant: this execution, or the newest completed one of this job; exit code 2 for neither.

    NotFound if it is not there, or if the job has completed none.
    """
    if execution_id is not None:
        return _one(database, job_id, execution_id)
    if job_id is None:
        raise typer.BadParameter("name a job (see: holdfast job list), or an --execution", param_hint="--id")
    for one in _history(database, job_id):
        if one.state == "completed":
            return SelectedExecutions(job_id, (one.id,))
    raise NotFound(
        f"job {job_id} has no completed execution; name another with --execution, see: holdfast job executions {job_id}"
    )


def _one(database: Database, job_id: int | None, execution_id: int) -> SelectedExecutions:
    with database.read() as session:
        found = listing.execution(session, execution_id)
    if found is None or job_id not in (None, found.job_id):
        of = "" if job_id is None else f" of job {job_id}"
        raise NotFound(f"there is no execution {execution_id}{of}; see them with: holdfast status")
    return SelectedExecutions(found.job_id, (execution_id,))


def _history(database: Database, job_id: int) -> Iterator[Execution]:
    """Yield the executions of a job, newest first; NotFound, before any, if there is no such job."""
    try:
        find_job(database, job_id)
    except NotFound as exc:
        raise NotFound(f"{exc}; an execution is named with --execution") from exc
    offset = 0
    while True:
        with database.read() as session:
            page, _ = listing.executions_of(session, job_id=job_id, limit=_PAGE, offset=offset)
        yield from page
        if len(page) < _PAGE:
            return
        offset += len(page)


@contextmanager
def naming(database: Database, job_id: int) -> Iterator[None]:
    """Say which job was not found, or that it is one that no scheduler runs."""
    try:
        yield
    except JobNotFound as exc:
        kind = find_job(database, job_id).job.kind
        raise Conflict(
            f"job {job_id} is of kind {kind}: its own command runs and ends it (holdfast crawl, stop, import)"
        ) from exc
