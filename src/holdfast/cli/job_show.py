"""`holdfast job show`, `executions`, `logs` and `events`: what is known of a job and its runs.

`job show` is typed often: this file loads only what they need (`catalogue.APART`).
"""

from __future__ import annotations

import json as jsonlib
import logging
import time
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from holdfast import config
from holdfast.cli.formatting import counted, dumps, duration, fields, table, text
from holdfast.cli.job_selector import (
    JobArgument,
    JobOption,
    ended_text,
    find_job,
    interval_text,
    job_number,
    slowed_text,
)
from holdfast.cli.parameters import AsJson, Home, leaves
from holdfast.db.engine import Database, open_database
from holdfast.db.models import Execution, JobEvent, LogLine
from holdfast.errors import Invalid, NotFound
from holdfast.jobs.endings import ending_word
from holdfast.jobs.journal import REPLAYED, all_lines, entry, last_lines, level_number, payload, read_events, read_lines
from holdfast.jobs.specs import effective_config
from holdfast.jobs.views import listing
from holdfast.jobs.views.dialects import command_job
from holdfast.jobs.views.job_view import execution_view
from holdfast.jobs.views.listing import ListedJob, files_of, stats_of

app_command = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app_command.command()
def show(job: JobArgument = None, job_id: JobOption = None, json: AsJson = False, home: Home = None) -> None:
    """Show a job: its plan, the configuration it runs with, its history in figures, its latest execution.

    Example: holdfast job show 3
    """
    with open_database(config.load(home=home)) as database:
        found = find_job(database, job_number(job, job_id))
        with database.read() as session:
            files = files_of(session, [found.latest.id]) if found.latest else {}
    size = files.get(found.latest.id) if found.latest else None
    whole, wrong = _whole(found)
    if json:
        output = {
            **command_job(found),
            "effective_config": whole,
            "invalid": wrong,
            "stats": stats_of(found.job)._asdict(),
            "warc_files": size.number if size else 0,
            "warc_bytes": size.size if size else 0,
        }
        print(dumps(output))
        return
    row, latest = found.job, found.latest
    print(
        fields(
            [
                ("job", row.id),
                ("name", row.name),
                ("source", found.source.code),
                ("kind", row.kind),
                ("state", row.state),
                ("status", found.admin_status),
                ("url", row.url),
                ("runs", interval_text(row) if row.state else None),
                ("at present", slowed_text(row)),
                ("paused by", row.paused_by),
                ("next run", row.next_run_at),
                ("last run", row.last_execution_at),
                ("held by", row.lock_owner),
                ("its run", found.awaited),
                ("retries", f"{found.retries} of {row.max_retries}" if found.retries else None),
                ("error", row.error_message),
                ("history", f"{counted(row.total_runs, 'run')}, {row.successful_runs} good, {row.failed_runs} failed"),
                ("edition", row.edition_id),
                ("shard", row.shard_key),
                ("acceptance", row.acceptance_state),
            ]
        )
    )
    for name, value in leaves(whole):
        print(f"  {name} = {jsonlib.dumps(value, ensure_ascii=False)}")
    if wrong:
        print(f"it cannot run like this: {wrong}")
    if latest is not None:
        print(
            f"latest execution {latest.id} (number {latest.number}): {_state(latest)}"
            + (f", index {latest.index_state}" if latest.index_state else "")
            + (f", {counted(size.number, 'WARC file')}, {size.size:,} bytes" if size else "")
            + (f"\n{latest.error}" if latest.error and latest.error != row.error_message else "")
        )
        if latest.shortfalls:
            print(f"  {ended_text(latest)}")


def _whole(found: ListedJob) -> tuple[dict[str, Any], str | None]:
    """Return the configuration that a job runs with, or its own part of it and why that cannot be used."""
    if found.job.state is None:
        return found.job.config, None
    try:
        return effective_config(found.job, found.source).stored(), None
    except Invalid as exc:
        return found.job.config, str(exc)


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
    with open_database(config.load(home=home)) as database:
        find_job(database, number)
        with database.read() as session:
            rows, total = listing.executions_of(session, job_id=number, limit=limit, offset=offset)
            waits = listing.awaited_machines(session, rows)
    if json:
        shown = [execution_view(row, awaited=waits.get(row.id)) for row in rows]
        print(dumps({"executions": shown, "total": total, "limit": limit, "offset": offset}))
    elif not rows:
        print(f"job {number} has no executions" + (" there" if total else " yet"))
    else:
        print(
            table(
                ("no", "execution", "state", "index", "started", "took", "pages", "fails", "why"),
                [_row(row, waits.get(row.id)) for row in rows],
            )
        )


def _state(row: Execution) -> str:
    """Return the state of an execution, and whether an operator lets it wait; a job's own pause is another thing."""
    return f"{row.state} (paused)" if row.paused_at is not None else ending_word(row.state, row.reason) or row.state


def _row(row: Execution, awaited: str | None) -> tuple[object, ...]:
    took = duration(row.duration_ms / 1000) if row.duration_ms is not None else None
    short = ended_text(row) if row.shortfalls else None
    error = " ".join((row.error or short or row.reason or awaited or "").split())[:80]
    start = row.number, row.id, _state(row), row.index_state, row.started_at
    return (*start, took, row.items_crawled, row.items_failed, error)


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
    with open_database(config.load(home=home)) as database:
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
    """Yield lines as they are written, until the execution is closed and all of it was shown."""
    while True:
        with database.read() as session:
            run = listing.execution(session, execution_id)
            lines = read_lines(session, execution_id, after=after, level=level)
        yield from lines
        if lines:
            after = lines[-1].id
        # Only after a look that found no line: what is written while a run ends is shown, too.
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
    with open_database(config.load(home=home)) as database:
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
