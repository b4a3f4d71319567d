"""What the commands around zimit's directories share: which run is meant, and how facts are printed."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from holdfast.cli.tables import fields
from holdfast.db.engine import Database
from holdfast.errors import NotFound
from holdfast.jobs.care.deeds import find_run
from holdfast.jobs.care.queries import Run
from holdfast.jobs.specs import JobNotFound

JobId = Annotated[int | None, typer.Option("--id", help="The job's number; its newest execution is meant.")]
ExecutionNumber = Annotated[int | None, typer.Option("--execution", help="Another of its executions, by number.")]
Apply = Annotated[bool, typer.Option("--apply", help="Do it; without this nothing is changed.")]


def the_run(database: Database, job_id: int | None, execution_id: int | None) -> Run:
    """Return the run that is meant; exit code 2 if none is named, NotFound if it is not there."""
    if job_id is None and execution_id is None:
        raise typer.BadParameter("name a job; see them with: holdfast job list", param_hint="--id")
    try:
        with database.read() as session:
            return find_run(session, job_id=job_id, execution_id=execution_id)
    except JobNotFound as exc:
        raise NotFound(f"there is no job {job_id}; see them with: holdfast job list") from exc


def run_facts(run: Run) -> dict[str, Any]:
    """Return which run a report is about."""
    return {
        "job": run.job.id, "execution": run.execution.id, "source": run.source.code,
        "output_dir": run.execution.output_dir,
    }  # fmt: skip


def tell(facts: Mapping[str, Any], *, json: bool) -> None:
    """Print facts: one object, or a line each."""
    if json:
        print(jsonlib.dumps(facts, default=str))
    else:
        print(fields((name.replace("_", " "), value) for name, value in facts.items()))


def dry_run(apply: bool, *, json: bool) -> None:
    """Say that nothing was changed, unless it was, or unless a program listens."""
    if not apply and not json:
        print("dry run: nothing was changed; do it with --apply")
