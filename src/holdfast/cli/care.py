"""What the commands around zimit's directories share: which run is meant, and how facts are printed."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast.archive_tool.discovery import WarcFile, discover_warcs
from holdfast.cli.tables import fields
from holdfast.db.engine import Database
from holdfast.errors import Conflict, NotFound
from holdfast.jobs.care.deeds import find_run
from holdfast.jobs.care.queries import Run, registered
from holdfast.jobs.specs import JobNotFound
from holdfast.worker.care.sights import is_tool_run

JobId = Annotated[int | None, typer.Option("--id", help="The job's number; its newest execution is meant.")]
ExecutionNumber = Annotated[int | None, typer.Option("--execution", help="Another of its executions, by number.")]


def the_run(database: Database, job_id: int | None, execution_id: int | None) -> Run:
    """Return the run that is meant; exit code 2 if none is named, NotFound if it is not there."""
    if job_id is None and execution_id is None:
        raise typer.BadParameter("name a job; see them with: holdfast job list", param_hint="--id")
    try:
        with database.read() as session:
            found = find_run(session, job_id=job_id, execution_id=execution_id)
    except JobNotFound as exc:
        raise NotFound(f"there is no job {job_id}; see them with: holdfast job list") from exc
    if job_id is not None and found.job.id != job_id:
        raise NotFound(f"execution {execution_id} is one of job {found.job.id}, not of job {job_id}")
    return found


def demand_tool(run: Run) -> Run:
    """Return the run if archive-tool made it; Conflict names what our own crawler's files are checked with."""
    if not is_tool_run(run):
        raise Conflict(
            f"execution {run.execution.id} is of our own crawler, and this looks at what archive-tool leaves; check "
            f"its files with: holdfast verify-warcs --execution {run.execution.id}"
        )
    return run


def warcs_of(database: Database, home: Path, run: Run) -> list[WarcFile]:
    """Return every WARC file of a run: what a tool left in its directory, and what else is registered, there or not."""
    found = list(discover_warcs(Path(run.execution.output_dir)).files)
    known = {file.identity for file in found}
    with database.read() as session:
        paths = [home.resolve() / row.path for row in registered(session, execution_id=run.execution.id)
                 if row.state == "sealed"]  # fmt: skip
    for path in paths:
        seen = path.stat() if path.is_file() else None
        file = WarcFile(path, seen.st_size, seen.st_dev, seen.st_ino) if seen else WarcFile(path, 0, 0, 0)
        if seen is None or file.identity not in known:
            found.append(file)
    return found


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
