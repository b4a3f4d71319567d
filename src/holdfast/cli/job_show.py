"""`holdfast job show`, `executions`, `logs` and `events`: information about a job and its runs.

`job show` is used often: this file imports only what these commands need (`catalogue.APART`).
"""

from __future__ import annotations

import json as jsonlib
import logging
import time
from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any

import typer

from holdfast.cli.formatting import counted, duration, table, text
from holdfast.cli.job_selector import (
    NamedJob,
    ended_text,
    find_job,
    interval_text,
    job_json,
    open_for_jobs,
    slowed_text,
)
from holdfast.cli.parameters import leaves, one_of
from holdfast.cli.printing import Done, command, described, picked
from holdfast.clock import SystemClock
from holdfast.config import Settings
from holdfast.db.engine import Database, open_database
from holdfast.db.models import Execution, JobEvent, LogLine
from holdfast.errors import Invalid, NotFound
from holdfast.jobs.endings import ending_word
from holdfast.jobs.journal import REPLAYED, all_lines, entry, last_lines, level_number, payload, read_events, read_lines
from holdfast.jobs.pauses import RunWait
from holdfast.jobs.records import ExecutionList, detailed_execution, stats_record
from holdfast.jobs.specs import effective_config
from holdfast.jobs.store import OPEN
from holdfast.jobs.views import listing
from holdfast.jobs.views.listing import JobRow, files_of
from holdfast.jobs.waiting import waits_of

app_command = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
others = typer.Typer()
_LOOK_S = 0.5
_LEVELS = ("debug", "info", "warning", "error")
JsonLines = Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Keep showing new lines until it ends, or Ctrl-C.")]


_command = partial(command, others, opened=open_database)
_timed_command = partial(command, opened=open_for_jobs)


@_timed_command(app_command, example="job show 3")
def show(opened: tuple[Settings, Database], job: NamedJob) -> Done:
    """Show a job: its plan, effective configuration, figures of its history, and latest execution."""
    settings, database = opened
    found = find_job(database, job.number)
    row, latest = found.job, found.latest
    with database.read() as session:
        count, size = files_of(session, [latest.id]).get(latest.id, (0, 0)) if latest else (0, 0)
    waits = waits_of(settings, SystemClock(), [latest])
    whole, wrong = _whole(found)
    more = {"effective_config": whole, "invalid": wrong, "stats": stats_record(row)}
    output = {**job_json(found, waits), **more, "warc_files": count, "warc_bytes": size}
    shown = {
        **picked(found, "job=job.id name=job.name source=source.code kind=job.kind state=job.state"),
        **picked(found, "status=admin_status url=job.url"),
        "runs": interval_text(row) if row.state else None,
        "at_present": slowed_text(row),
        **picked(row, "paused_by next_run=next_run_at last_run=last_execution_at held_by=lock_owner"),
        "waiting": next((wait.sentence for wait in waits.values()), None),
        "retries": f"{found.retries} of {row.max_retries}" if found.retries else None,
        "error": row.error_message,
        "history": f"{counted(row.total_runs, 'run')}, {row.successful_runs} good, {row.failed_runs} failed",
        **picked(row, "edition=edition_id shard=shard_key acceptance=acceptance_state"),
    }
    lines = [described(shown)]
    lines += [f"  {name} = {jsonlib.dumps(value, ensure_ascii=False)}" for name, value in leaves(whole)]
    lines += [f"it cannot run like this: {wrong}"] if wrong else []
    if latest is not None:
        lines.append(
            f"latest execution {latest.id} (number {latest.number}): {_state(latest)}"
            + (f", index {latest.index_state}" if latest.index_state else "")
            + (f", {counted(count, 'WARC file')}, {size:,} bytes" if count else "")
        )
        lines += [latest.error] if latest.error and latest.error != row.error_message else []
        lines += [f"  {ended_text(latest)}"] if latest.shortfalls else []
    return Done(output, lines)


def _whole(found: JobRow) -> tuple[dict[str, Any], str | None]:
    """Return a job's effective configuration, or only its own part and why that is invalid."""
    if found.job.state is None:
        return found.job.config, None
    try:
        return effective_config(found.job, found.source).stored(), None
    except Invalid as exc:
        return found.job.config, str(exc)


@_timed_command(others, example="job executions 3")
def executions(
    opened: tuple[Settings, Database],
    job: NamedJob,
    limit: Annotated[int, typer.Option(min=1, max=250)] = 20,
    offset: Annotated[int, typer.Option(min=0)] = 0,
) -> Done:
    """List the executions of a job, newest first."""
    settings, database = opened
    number = job.number
    find_job(database, number)
    with database.read() as session:
        rows, total = listing.executions_of(session, job_id=number, limit=limit, offset=offset)
    waits = waits_of(settings, SystemClock(), rows)
    shown = [detailed_execution(row, wait=waits.get(row.id)) for row in rows]
    page = ExecutionList(executions=shown, total=total, limit=limit, offset=offset)
    if not rows:
        return Done(page, f"job {number} has no executions" + (" there" if total else " yet"))
    head = ("no", "execution", "state", "index", "started", "took", "pages", "fails", "why")
    return Done(page, table(head, [_row(row, waits.get(row.id)) for row in rows]))


def _state(row: Execution) -> str:
    """Return the state of an execution, including an operator's pause, which is separate from a pause of the job."""
    return f"{row.state} (paused)" if row.paused_at is not None else ending_word(row.state, row.reason) or row.state


def _row(row: Execution, wait: RunWait | None) -> tuple[object, ...]:
    took = duration(row.duration_ms / 1000) if row.duration_ms is not None else None
    short = ended_text(row) if row.shortfalls else None
    waits = wait.sentence if wait is not None else ""
    error = " ".join((row.error or short or row.reason or waits).split())[:80]
    start = row.number, row.id, _state(row), row.index_state, row.started_at
    return (*start, took, row.items_crawled, row.items_failed, error)


@_command(example="job logs 3 --follow")
def logs(
    database: Database,
    job: NamedJob,
    execution: Annotated[int | None, typer.Option(max=2**31 - 1, help="Its number; the newest if left out.")] = None,
    level: Annotated[str, typer.Option(help="Least level: debug, info, warning, error.")] = "debug",
    tail: Annotated[int, typer.Option(min=1, help="Newest lines to show.")] = REPLAYED,
    everything: Annotated[bool, typer.Option("--all", help="Show the whole log instead.")] = False,
    follow: Follow = False,
    json: JsonLines = False,
) -> None:
    """Print the log of a job's newest execution, or of another one, also while it runs."""
    number = job.number
    one_of(level, _LEVELS, "--level")
    find_job(database, number)
    with database.read() as session:
        run = listing.numbered_execution(session, job_id=number, number=execution)
        lines = last_lines(session, run.id, limit=tail, level=level) if run is not None and not everything else []
    if run is None:
        raise NotFound(f"job {number} has no such execution; see them with: holdfast job executions {number}")
    shown: Iterator[LogLine] = all_lines(database, run.id) if everything else iter(lines)
    last = 0
    for line in shown:
        last = line.id
        if line.level >= level_number(level):
            _print_line(line, number, json=json)
    if not last:
        typer.echo(f"execution {run.id} (number {run.number}, {run.state}) has no such lines", err=True)
    for line in news(database, run.id, last, level) if follow else ():
        _print_line(line, number, json=json)


def news(database: Database, execution_id: int, after: int, level: str) -> Iterator[LogLine]:
    """Yield lines as they are written, until the execution is closed and all lines have been yielded."""
    while True:
        with database.read() as session:
            run = listing.execution(session, execution_id)
            lines = read_lines(session, execution_id, after=after, level=level)
        yield from lines
        if lines:
            after = lines[-1].id
        # Stop only after a read without lines, so that lines written while a run ends are shown, too.
        elif run is None or run.state not in OPEN:
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


@_command(example="job events 3 --json")
def events(
    database: Database,
    job: NamedJob,
    after: Annotated[int, typer.Option(min=0, help="Only those after this event.")] = 0,
    limit: Annotated[int, typer.Option(min=1, max=10_000)] = 100,
    follow: Follow = False,
    json: JsonLines = False,
) -> None:
    """Print the events of a job, or of all jobs if none is named, oldest first."""
    number = None if job == NamedJob() else job.number
    if number is not None:
        find_job(database, number)
    while True:
        with database.read() as session:
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
    output = {**row.data, **(row.data.get("details") or {})}
    words = " ".join(
        f"{name}={text(value)}" for name, value in output.items() if name != "details" and value is not None
    )
    run = f" execution {row.execution_id}" if row.execution_id is not None else ""
    print(f"{text(row.at)} {row.id:>6} job {row.job_id}{run} {row.name} {words}", flush=True)
