"""`holdfast job executions`, `logs` and `events`: what happened to a job, also while it happens."""

from __future__ import annotations

import json as jsonlib
import logging
import time
from collections.abc import Iterator
from typing import Annotated

import typer

from holdfast import config
from holdfast.cli.formatting import dumps, duration, table, text
from holdfast.cli.job_formatting import JobArgument, JobOption, ended_text, find_job, job_number
from holdfast.cli.parameters import AsJson, Home
from holdfast.db.engine import Database
from holdfast.db.models import Execution, JobEvent, LogLine
from holdfast.errors import NotFound
from holdfast.jobs.journal import REPLAYED, all_lines, entry, last_lines, level_number, payload, read_events, read_lines
from holdfast.jobs.views import listing
from holdfast.jobs.views.job_view import execution_view
from holdfast.wiring.jobs import open_jobs

_LOOK_S = 0.5
_OPEN = ("queued", "running", "stopped")
_LEVELS = ("debug", "info", "warning", "error")
JsonLines = Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Go on showing what is new until it ends, or Ctrl-C.")]


def executions(
    job: JobArgument = None,
    job_id: JobOption = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=250)] = 20,
    offset: Annotated[int, typer.Option("--offset", min=0)] = 0,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """List the executions of a job, newest first.

    Example: holdfast job executions 3
    """
    number = job_number(job, job_id)
    with open_jobs(config.load(home=home)) as jobs:
        find_job(jobs.database, number)
        with jobs.database.read() as session:
            rows, total = listing.executions_of(session, job_id=number, limit=limit, offset=offset)
    if json:
        shown = [execution_view(row) for row in rows]
        print(dumps({"executions": shown, "total": total, "limit": limit, "offset": offset}))
    elif not rows:
        print(f"job {number} has no executions" + (" there" if total else " yet"))
    else:
        print(
            table(
                ("no", "execution", "state", "index", "started", "took", "pages", "fails", "why"),
                [_row(row) for row in rows],
            )
        )


def _row(row: Execution) -> tuple[object, ...]:
    took = duration(row.duration_ms / 1000) if row.duration_ms is not None else None
    short = ended_text(row) if row.shortfalls else None
    error = " ".join((row.error or short or row.reason or "").split())[:80]
    return (
        row.number,
        row.id,
        row.state,
        row.index_state,
        row.started_at,
        took,
        row.items_crawled,
        row.items_failed,
        error,
    )


def logs(
    job: JobArgument = None,
    job_id: JobOption = None,
    execution: Annotated[
        int | None, typer.Option("--execution", max=2**31 - 1, help="Its number; the newest if left out.")
    ] = None,
    level: Annotated[str, typer.Option("--level", help="Least level: debug, info, warning, error.")] = "debug",
    tail: Annotated[int, typer.Option("--tail", min=1, help="Newest lines to show.")] = REPLAYED,
    everything: Annotated[bool, typer.Option("--all", help="Show the whole log instead.")] = False,
    follow: Follow = False,
    json: JsonLines = False,
    home: Home = None,
) -> None:
    """Print the log of a job's newest execution, or of another one, also while it runs.

    Example: holdfast job logs 3 --follow
    """
    number = job_number(job, job_id)
    if level not in _LEVELS:
        raise typer.BadParameter(f"write one of {', '.join(_LEVELS)}", param_hint="--level")
    with open_jobs(config.load(home=home)) as jobs:
        find_job(jobs.database, number)
        with jobs.database.read() as session:
            run = listing.numbered_execution(session, job_id=number, number=execution)
            lines = last_lines(session, run.id, limit=tail, level=level) if run is not None and not everything else []
        if run is None:
            raise NotFound(f"job {number} has no such execution; see them with: holdfast job executions {number}")
        shown: Iterator[LogLine] = all_lines(jobs.database, run.id) if everything else iter(lines)
        last = 0
        for line in shown:
            last = line.id
            if line.level >= level_number(level):
                _print_line(line, number, json=json)
        if not last:
            typer.echo(f"execution {run.id} (number {run.number}, {run.state}) has no such lines", err=True)
        for line in news(jobs.database, run.id, last, level) if follow else ():
            _print_line(line, number, json=json)


def news(database: Database, execution_id: int, after: int, level: str) -> Iterator[LogLine]:
    """Yield lines as they are written, until the execution is closed and all of it was shown."""
    while True:
        with database.read() as session:
            run = listing.execution(session, execution_id)
            lines = read_lines(session, execution_id, after=after, level=level)
        yield from lines
        if lines:
            after = lines[-1].id
        elif run is None or run.state not in _OPEN:
            return
        else:
            time.sleep(_LOOK_S)


def _print_line(line: LogLine, job_id: int, *, json: bool) -> None:
    if json:
        print(jsonlib.dumps(entry(line, job_id=job_id), ensure_ascii=False), flush=True)
        return
    more = "".join(f" {name}={text(value)}" for name, value in line.fields.items())
    level = logging.getLevelName(line.level).lower()
    print(
        f"{text(line.at)} {level:<7} {line.category.removeprefix('crawler.'):<10} {text(line.message)}{more}",
        flush=True,
    )


def events(
    job: JobArgument = None,
    job_id: JobOption = None,
    after: Annotated[int, typer.Option("--after", min=0, help="Only those after this event.")] = 0,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000)] = 100,
    follow: Follow = False,
    json: JsonLines = False,
    home: Home = None,
) -> None:
    """Print the events of a job, or of all jobs if none is named, oldest first.

    Example: holdfast job events 3 --json
    """
    number = None if job is None and job_id is None else job_number(job, job_id)
    with open_jobs(config.load(home=home)) as jobs:
        if number is not None:
            find_job(jobs.database, number)
        while True:
            with jobs.database.read() as session:
                rows = read_events(session, after=after, job_id=number, limit=limit)
            for row in rows:
                _print_event(row, json=json)
                after = row.id
            if not follow:
                if not rows:
                    typer.echo("no such events; they are kept for HOLDFAST_JOBS_EVENTS_DAYS days", err=True)
                return
            time.sleep(_LOOK_S)


def _print_event(row: JobEvent, *, json: bool) -> None:
    if json:
        print(jsonlib.dumps({"id": row.id, "event": row.name, **payload(row)}, ensure_ascii=False), flush=True)
        return
    told = {**row.data, **(row.data.get("details") or {})}
    words = " ".join(f"{name}={text(value)}" for name, value in told.items() if name != "details" and value is not None)
    run = f" execution {row.execution_id}" if row.execution_id is not None else ""
    print(f"{text(row.at)} {row.id:>6} job {row.job_id}{run} {row.name} {words}", flush=True)
