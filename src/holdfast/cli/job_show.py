"""`holdfast job show`, which loads only what it needs: a file of its own (`catalogue.APART`)."""

from __future__ import annotations

import json as jsonlib
from typing import Any

import typer

from holdfast import config
from holdfast.cli.formatting import counted, dumps, fields
from holdfast.cli.job_formatting import (
    JobArgument,
    JobOption,
    ended_text,
    find_job,
    interval_text,
    job_number,
    slowed_text,
)
from holdfast.cli.parameters import AsJson, Home, leaves
from holdfast.db.engine import open_database
from holdfast.errors import Invalid
from holdfast.jobs.administration.repair import effective
from holdfast.jobs.views.dialects import command_job
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
        told = {
            **command_job(found),
            "effective_config": whole,
            "invalid": wrong,
            "stats": stats_of(found.job)._asdict(),
            "warc_files": size.number if size else 0,
            "warc_bytes": size.size if size else 0,
        }
        print(dumps(told))
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
            f"latest execution {latest.id} (number {latest.number}): {latest.state}"
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
        return effective(found.job, found.source).stored(), None
    except Invalid as exc:
        return found.job.config, str(exc)
