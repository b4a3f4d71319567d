"""`holdfast job`: when and how sources are crawled. Every change of state goes through the table of `jobs.states`."""

from __future__ import annotations

import json as jsonlib
from typing import Annotated, Any

import typer

from holdfast import config
from holdfast.cli import job_config, job_history, job_plan
from holdfast.cli.assignments import leaves
from holdfast.cli.job_words import (
    KINDS,
    JobArgument,
    JobOption,
    ended_text,
    find_job,
    interval_text,
    job_number,
    job_object,
    naming,
    slowed_text,
    stats_object,
)
from holdfast.cli.options import AsJson, Home
from holdfast.cli.tables import fields, table
from holdfast.cli.wording import counted
from holdfast.errors import Conflict, Invalid
from holdfast.jobs.listing.queries import files_of, list_admin_jobs, list_jobs, shown_job
from holdfast.jobs.listing.values import SORTS, AdminFilter, JobFilter, ListedJob
from holdfast.jobs.operating.configuring import effective
from holdfast.jobs.operating.repair import Retried, retry
from holdfast.jobs.projection import ADMIN_STATES
from holdfast.jobs.specs import JobNotFound
from holdfast.jobs.states import Action, IllegalTransition, State
from holdfast.sources.registry import find
from holdfast.wiring.jobs import open_jobs

app_command = typer.Typer(
    add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None, no_args_is_help=True,
    help="Jobs: when and how sources are crawled. Example: holdfast job create --source hc --every 6h",
)  # fmt: skip
app_command.command(name="create")(job_plan.create)
app_command.command(name="edit")(job_plan.edit)
app_command.command(name="executions")(job_history.executions)
app_command.command(name="logs")(job_history.logs)
app_command.command(name="events")(job_history.events)
app_command.command(name="validate-config")(job_config.validate_config)
app_command.command(name="patch-config")(job_config.patch_config)
app_command.command(name="reset-retries")(job_config.reset_retries)
_NEXT = {
    State.PENDING.value: "it waits for a worker: holdfast start-worker",
    State.SCHEDULED.value: "let it run with: holdfast job run-now {id}",
    State.RUNNING.value: "end it with: holdfast job cancel {id}",
    State.PAUSED.value: "let it go on with: holdfast job resume {id}",
    State.COMPLETED.value: "give it another run with: holdfast create-job --source {source} --once",
    State.FAILED.value: "give it another try with: holdfast retry-job --id {id}",
    State.CANCELLED.value: "make it anew with: holdfast create-job --source {source} --once",
}
"""What can be done with a job in each state, where something else was asked for."""


@app_command.command(name="list")
def list_all(
    source: Annotated[str | None, typer.Option("--source", help="Only this source's.", metavar="CODE")] = None,
    status: Annotated[str | None, typer.Option("--status", help=f"One of {', '.join(ADMIN_STATES)}.")] = None,
    state: Annotated[
        list[str] | None, typer.Option("--state", help=f"One of {', '.join(State)}; repeatable. Scheduled jobs only.")
    ] = None,
    kind: Annotated[str | None, typer.Option("--kind", help=f"One of {', '.join(KINDS)}. Scheduled jobs only.")] = None,
    search: Annotated[str | None, typer.Option("--search", help="In names, codes and addresses.")] = None,
    sort: Annotated[str | None, typer.Option("--sort", help=f"By {', '.join(SORTS)}; newest first.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=250)] = 50,
    offset: Annotated[int, typer.Option("--offset", min=0)] = 0,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """List jobs, newest first: all of them, or with --state, --kind, --search and --sort those that the scheduler runs.

    Example: holdfast job list --status failed --source hc
    """
    for option, word, known in (("--status", status, ADMIN_STATES), ("--sort", sort, SORTS), ("--kind", kind, KINDS),
                                *(("--state", one, tuple(State)) for one in state or ())):  # fmt: skip
        if word is not None and word not in known:
            raise typer.BadParameter(f"{word[:40]!r} is none of {', '.join(known)}", param_hint=option)
    scheduled = state or kind or search or sort
    if status and scheduled:
        raise typer.BadParameter("it goes with --source alone; --state knows the other words", param_hint="--status")
    with open_jobs(config.load(home=home)) as jobs, jobs.database.read() as session:
        source_id = find(session, source).id if source is not None else None
        if scheduled:
            wish = JobFilter(states=tuple(state or ()), source_id=source_id, kind=kind, search=search or "",
                             sort_by=sort or "created_at", limit=limit, offset=offset)  # fmt: skip
            rows, total = list_jobs(session, wish)
        else:
            rows, total = list_admin_jobs(session, AdminFilter(source, status, limit, offset))
    if json:
        told = {"jobs": [job_object(row) for row in rows], "total": total, "limit": limit, "offset": offset}
        print(jsonlib.dumps(told, ensure_ascii=False))
        return
    if rows:
        _print_list(rows, total, offset)
    elif total or offset or source or status or scheduled:
        print("no such jobs")
    else:
        print("no jobs yet; make one with: holdfast job create --source CODE")


def _print_list(rows: list[ListedJob], total: int, offset: int) -> None:
    print(table(("job", "source", "kind", "status", "runs", "next run", "tries", "name"),
                [(row.job.id, row.source.code, row.job.kind, row.admin_status, interval_text(row.job),
                  row.job.next_run_at, row.retries or None, row.job.name) for row in rows]))  # fmt: skip
    if total > len(rows):
        print(f"{offset + 1} to {offset + len(rows)} of {total}; go on with --offset {offset + len(rows)}")


@app_command.command()
def show(job: JobArgument = None, job_id: JobOption = None, json: AsJson = False, home: Home = None) -> None:
    """Show a job: its plan, the configuration it runs with, its history in figures, its latest execution.

    Example: holdfast job show 3
    """
    with open_jobs(config.load(home=home)) as jobs:
        found = find_job(jobs.database, job_number(job, job_id))
        with jobs.database.read() as session:
            files = files_of(session, [found.latest.id]) if found.latest else {}
    size = files.get(found.latest.id) if found.latest else None
    whole, wrong = _whole(found)
    if json:
        told = {**job_object(found), "effective_config": whole, "invalid": wrong, "stats": stats_object(found.job),
                "warc_files": size.number if size else 0, "warc_bytes": size.size if size else 0}  # fmt: skip
        print(jsonlib.dumps(told, ensure_ascii=False))
        return
    row, latest = found.job, found.latest
    print(fields([
        ("job", row.id), ("name", row.name), ("source", found.source.code), ("kind", row.kind), ("state", row.state),
        ("status", found.admin_status), ("url", row.url), ("runs", interval_text(row) if row.state else None),
        ("at present", slowed_text(row)), ("paused by", row.paused_by),
        ("next run", row.next_run_at), ("last run", row.last_execution_at), ("held by", row.lock_owner),
        ("retries", f"{found.retries} of {row.max_retries}" if found.retries else None), ("error", row.error_message),
        ("history", f"{counted(row.total_runs, 'run')}, {row.successful_runs} good, {row.failed_runs} failed"),
        ("edition", row.edition_id), ("shard", row.shard_key), ("acceptance", row.acceptance_state),
    ]))  # fmt: skip
    for name, value in leaves(whole):
        print(f"  {name} = {jsonlib.dumps(value, ensure_ascii=False)}")
    if wrong:
        print(f"it cannot run like this: {wrong}")
    if latest is not None:
        print(f"latest execution {latest.id} (number {latest.number}): {latest.state}"
              + (f", index {latest.index_state}" if latest.index_state else "")
              + (f", {counted(size.number, 'WARC file')}, {size.size:,} bytes" if size else "")
              + (f"\n{latest.error}" if latest.error and latest.error != row.error_message else ""))  # fmt: skip
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


@app_command.command()
def pause(job: JobArgument = None, job_id: JobOption = None, json: AsJson = False, home: Home = None) -> None:
    """Pause a scheduled job; a run that is queued is taken back.

    Example: holdfast job pause 3
    """
    _act(Action.PAUSE, job_number(job, job_id), json=json, home=home)


@app_command.command()
def resume(job: JobArgument = None, job_id: JobOption = None, json: AsJson = False, home: Home = None) -> None:
    """Resume a paused job, in the emptiest slot.

    Example: holdfast job resume 3
    """
    _act(Action.RESUME, job_number(job, job_id), json=json, home=home)


@app_command.command()
def cancel(job: JobArgument = None, job_id: JobOption = None, json: AsJson = False, home: Home = None) -> None:
    """Cancel a job for good; a run drains first, and what it captured is kept.

    Example: holdfast job cancel 3
    """
    _act(Action.CANCEL, job_number(job, job_id), json=json, home=home)


@app_command.command(name="run-now")
def run_now(job: JobArgument = None, job_id: JobOption = None, json: AsJson = False, home: Home = None) -> None:
    """Let a scheduled job run once at once; its rhythm stays.

    Example: holdfast job run-now 3
    """
    _act(Action.FORCE_RUN, job_number(job, job_id), json=json, home=home)


@app_command.command(name="retry")
def retry_job(job: JobArgument = None, job_id: JobOption = None, json: AsJson = False, home: Home = None) -> None:
    """Give a failed job another run; where only the index failed, the index alone is computed again.

    Example: holdfast retry-job --id 3
    """
    number = job_number(job, job_id)
    with open_jobs(config.load(home=home)) as jobs:
        with naming(jobs.database, number), jobs.database.write() as session:
            done = retry(session, jobs.clock, jobs.board, number)
        found = find_job(jobs.database, number)
    if json:
        print(jsonlib.dumps({**job_object(found), "retried": done.value}, ensure_ascii=False))
    elif done is Retried.INDEX_RESET:
        print(f"job {number}: its latest execution will be indexed again; start a worker, or: holdfast index")
    else:
        print(f"job {number}: {found.admin_status}, to run again with its whole retry budget")


@app_command.command()
def delete(job: JobArgument = None, job_id: JobOption = None, json: AsJson = False, home: Home = None) -> None:
    """Remove a job; its captures stay. One that runs must be cancelled first.

    Example: holdfast job delete 3
    """
    number = job_number(job, job_id)
    with open_jobs(config.load(home=home)) as jobs, naming(jobs.database, number), jobs.database.write() as session:
        if shown_job(session, number) is None:
            raise JobNotFound
        jobs.board.delete(session, number)
    print(jsonlib.dumps({"id": number, "deleted": True}) if json else f"job {number}: deleted")


def _act(action: Action, number: int, *, json: bool, home: Home) -> None:
    with open_jobs(config.load(home=home)) as jobs:
        try:
            with naming(jobs.database, number), jobs.database.write() as session:
                jobs.board.act(session, number, action)
        except IllegalTransition as exc:
            there = find_job(jobs.database, number)
            what = _NEXT[there.job.state or ""].format(id=number, source=there.source.code)
            raise Conflict(f"job {number}: {exc}; {what}") from exc
        found = find_job(jobs.database, number)
    if json:
        print(jsonlib.dumps(job_object(found), ensure_ascii=False))
    else:
        when = f"; next run {found.job.next_run_at:%Y-%m-%d %H:%M:%S}" if found.job.next_run_at else ""
        print(f"job {number}: {found.job.state}{when}")
