"""`holdfast job`: when and how sources are crawled. Every change of state goes through the table of `jobs.states`."""

from __future__ import annotations

import json as jsonlib

import typer

from holdfast import config
from holdfast.cli import job_config, job_history, job_list, job_plan, job_show
from holdfast.cli.job_naming import naming
from holdfast.cli.job_words import (
    JobArgument,
    JobOption,
    find_job,
    job_number,
    job_object,
)
from holdfast.cli.options import AsJson, Home
from holdfast.errors import Conflict
from holdfast.jobs.listing.queries import shown_job
from holdfast.jobs.operating.repair import Retried, retry
from holdfast.jobs.specs import JobNotFound
from holdfast.jobs.states import Action, IllegalTransition, State
from holdfast.wiring.jobs import open_jobs

app_command = typer.Typer(
    add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None, no_args_is_help=True,
    help="Jobs: when and how sources are crawled. Example: holdfast job create --source hc --every 6h",
)  # fmt: skip
app_command.command(name="list")(job_list.list_all)
app_command.command(name="show")(job_show.show)
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
