"""`holdfast job`: when and how sources are crawled. Every change of state follows the table in `jobs.states`."""

from __future__ import annotations

import json as jsonlib
import shlex
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from holdfast.cli import job_show, lists
from holdfast.cli.formatting import counted
from holdfast.cli.job_selector import NamedJob, find_job, interval_text, job_json, naming
from holdfast.cli.parameters import (
    Apply,
    OfSource,
    SourceCode,
    command_group,
    one_of,
    read_assignments,
    read_size,
    read_time,
)
from holdfast.cli.resource import Done, command
from holdfast.db.models import Source
from holdfast.errors import Conflict, Invalid
from holdfast.jobs.administration import actions
from holdfast.jobs.administration.actions import Retried, Upserted, patch_zimit, retry
from holdfast.jobs.administration.actions import reset_retries as reset
from holdfast.jobs.specs import JobSpec, check_uncapped, effective_config
from holdfast.jobs.states import IllegalTransition, JobAction, State
from holdfast.jobs.store import locked_both
from holdfast.sources.config import merge_fields, read_config
from holdfast.sources.queries import find_source, source_id_of
from holdfast.sources.registry import content_of
from holdfast.sources.schedule import Schedule, ScheduleRefused, read_schedule
from holdfast.wiring.jobs import Jobs, check_annual, check_backend, open_jobs, zimit_config
from holdfast.zimit.flags import read_patch, tool_command

Every = Annotated[
    str | None,
    typer.Option(
        "--every",
        "--schedule",
        help="When: 30m, 6h or 7d, or in words, as 'monthly on day 31 at 03:00'; without it: once.",
    ),
]

app_command = command_group(
    "Jobs: when and how sources are crawled. Example: holdfast job create --source hc --every 6h"
)
for one in (lists.job_list, job_show.app_command, job_show.others):
    app_command.registered_commands += one.registered_commands
_command = partial(command, app_command, opened=open_jobs)


class JobPlan(NamedTuple):
    """The plan of a job, and what it has otherwise than its source, as it was typed."""

    every: Every = None
    once: Annotated[bool, typer.Option("--once", help="Run once, also where there was a schedule.")] = False
    name: Annotated[str | None, typer.Option(help="Its name; by the source's template if left out.")] = None
    url: Annotated[str | None, typer.Option(help="The start page; the first seed if left out.")] = None
    seed: Annotated[list[str] | None, typer.Option(help="One more address to begin at; repeatable.")] = None
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", help="A field of the source's configuration that this job has otherwise; repeatable."),
    ] = None
    page_limit: Annotated[int | None, typer.Option(min=1, help="Maximum number of pages; not for annual jobs.")] = None
    depth: Annotated[int | None, typer.Option(min=-1, help="Links to follow from a seed; not for annual jobs.")] = None
    max_bytes: Annotated[str | None, typer.Option(help="At most so much from the network, as 5GB.")] = None
    max_time: Annotated[str | None, typer.Option(help="At most so long at work, as 30m, 6h or 7d.")] = None
    max_retries: Annotated[int | None, typer.Option(min=0, max=100, help="Tries after a failure.")] = None
    retry_backoff: Annotated[int | None, typer.Option(min=0, max=3600, help="Seconds before the first one.")] = None
    adaptive: Annotated[
        bool | None, typer.Option("--adaptive/--no-adaptive", help="Whether a page that does not change slows it down.")
    ] = None

    def config(self, present: dict[str, Any], base: Source) -> dict[str, Any]:
        """Return the fields of the configuration: those that the job had, and those that are given."""
        made = merge_fields(present, read_assignments(self.sets or ()))
        there = made.get("seeds", read_config(content_of(base), needs_seeds=False).seeds)
        # `--seed` adds to the present seeds, `--set seeds=` replaces them. The check of the whole configuration rejects
        # seeds that are not a list.
        if self.seed and isinstance(there, list | tuple):
            made["seeds"] = [*there, *self.seed]
        size, seconds = read_size(self.max_bytes), read_time(self.max_time)
        return made | _given(max_pages=self.page_limit, max_depth=self.depth, quota_bytes=size, max_time_s=seconds)

    def retrying(self) -> dict[str, Any]:
        """Return the given fields that say how the job is retried and slowed down."""
        return _given(
            max_retries=self.max_retries,
            retry_backoff_seconds=self.retry_backoff,
            adaptive_scheduling=self.adaptive,
        )

    def schedule(self, now: datetime) -> Schedule | None:
        if self.every is not None and self.once:
            raise typer.BadParameter("it does not go with --once", param_hint="--every")
        try:
            return None if self.every is None else read_schedule(self.every, now=now)
        except ScheduleRefused as exc:
            raise typer.BadParameter(exc.reason, param_hint="--every") from exc


@_command(example="create-job --source hc --every 6h --set delay_s=2")
def create(jobs: Jobs, source: SourceCode, plan: JobPlan) -> Done:
    """Create the crawl job of a source, or update the existing one: on a schedule, or once and at once."""
    schedule = plan.schedule(jobs.clock.now())
    with jobs.database.write() as session:
        row = find_source(session, source)
        # Use the source's template: directories of runs and exports show the name.
        name = plan.name or read_config(content_of(row), needs_seeds=False).job_name(row.code, jobs.clock.now())
        config = plan.config({}, row)
        spec = JobSpec(source_id=row.id, url=plan.url, name=name, config=config, **plan.retrying())
        done = jobs.actions.upsert(session, spec.at(schedule), replaces_schedule=plan.every is not None or plan.once)
    return _upserted(jobs, done)


@_command(example="job edit 3 --every 12h --max-retries 5")
def edit(jobs: Jobs, plan: JobPlan, job: NamedJob) -> Done:
    """Change the plan of a job; other fields keep their values. --set FIELD=null uses the source's value again."""
    number = job.number
    if plan == JobPlan():
        raise typer.BadParameter("say what to change, for example --every 6h or --set delay_s=5")
    schedule = plan.schedule(jobs.clock.now())
    values = _given(name=plan.name, url=plan.url, **plan.retrying())
    with naming(jobs.database, number), jobs.database.write() as session:
        found, source = locked_both(session, number)
        spec = replace(JobSpec.of(found), **values, config=plan.config(dict(found.config), source))
        has_schedule = plan.every is not None or plan.once
        done = jobs.actions.edit(session, number, spec.at(schedule) if has_schedule else spec)
    return _upserted(jobs, done)


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _upserted(jobs: Jobs, done: Upserted) -> Done:
    found = find_job(jobs.database, done.job.id)
    row = found.job
    when = f", next run {row.next_run_at:%Y-%m-%d %H:%M:%S}" if row.next_run_at else ""
    head = (
        f"job {row.id} {'made' if done.created else 'changed'}: {found.source.code}, {interval_text(row)}, "
        f"{row.state}{when}"
    )
    lines = [head, *(f"warning: {warning}" for warning in done.warnings)]
    return Done({**job_json(found), "created": done.created, "warnings": done.warnings}, lines)


@_command("validate-config", example="validate-job-config --id 3")
def validate_config(jobs: Jobs, job: NamedJob) -> Done:
    """Check a job's configuration as it would run, without changing its row; exit 1 names the invalid field."""
    settings, found = jobs.settings, find_job(jobs.database, job.number)
    whole = effective_config(found.job, found.source, check=check_backend(settings))
    check_uncapped(found.job.kind, whole, check_annual(settings))
    warnings, command_line = list(whole.warnings()), None
    if whole.backend == "zimit":
        checked, host = zimit_config(whole, settings), settings.zimit
        command_line = shlex.join(tool_command(checked, host, name=found.source.code, output_dir=Path("OUTPUT")))
    lines = [
        f"job {found.job.id}: valid, {counted(len(whole.seeds), 'seed')}, backend {whole.backend}",
        *([f"it would run: {command_line}"] if command_line else ()),
        *(f"warning: {warning}" for warning in warnings),
    ]
    record = {"id": found.job.id, "valid": True, "backend": whole.backend, "config": whole.stored()}
    return Done({**record, "command": command_line, "warnings": warnings}, lines)


@_command("patch-config", example="patch-job-config --id 3 --set-tool-option initial_workers=4 --apply")
def patch_config(
    jobs: Jobs,
    job: NamedJob,
    options: Annotated[
        list[str] | None, typer.Option("--set-tool-option", help="A tool option; repeatable.", metavar="KEY=VALUE")
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option("--set-execution-policy", help="A value of the policy; repeatable.", metavar="KEY=VALUE"),
    ] = None,
    apply: Apply = False,
) -> Done:
    """Change tool options and execution policy of a job that is queued, retryable or failed."""
    number, changes = job.number, read_patch(options or (), policy or ())
    if not changes:
        raise Invalid("nothing to set: name --set-tool-option or --set-execution-policy, as KEY=VALUE")
    with naming(jobs.database, number), jobs.database.write() as session:
        before, after = patch_zimit(
            session, jobs.clock, number, changes, check=check_backend(jobs.settings), apply=apply
        )
        found = find_job(jobs.database, number)
    backend = effective_config(found.job, found.source).backend
    lines = [
        f"{group}.{name}: {jsonlib.dumps(before[group].get(name))} -> {jsonlib.dumps(after[group].get(name))}"
        for group, given in changes.items()
        for name in given
    ]
    if backend != "zimit":
        lines.append(f"it crawls with backend {backend}, which ignores these; see: holdfast job edit {number} --set")
    lines += [f"job {number}: changed"] if apply else []
    return Done({"id": number, "backend": backend, "before": before, "after": after}, lines)


@_command("reset-retries", example="reset-retry-count --id 3 --apply")
def reset_retries(
    jobs: Jobs,
    ids: Annotated[list[int] | None, typer.Option("--id", help="A job; repeatable, then with --reason.")] = None,
    source: OfSource = None,
    state: Annotated[list[str] | None, typer.Option(help="All in this state; repeatable.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, max=10_000, help="Most jobs of a bulk.")] = None,
    reason: Annotated[str | None, typer.Option(help="Why; it lands in the audit log.")] = None,
    apply: Apply = False,
) -> Done:
    """Restore the full retry budget of jobs; those that a worker holds are skipped.

    Several jobs need --reason, and a bulk (--source, --state) needs --limit too.
    """
    bulk = source is not None or bool(state)
    if bool(ids) == bulk:
        raise typer.BadParameter("name jobs with --id, or many with --source or --state")
    if bulk and limit is None:
        raise typer.BadParameter("many at once need a limit, for example --limit 20", param_hint="--limit")
    if (bulk or len(set(ids or ())) > 1) and not (reason or "").strip():
        raise typer.BadParameter("several jobs need a reason; it lands in the audit log", param_hint="--reason")
    for one in state or ():
        one_of(one, tuple(State), "--state")
    with jobs.database.write() as session:
        chosen = list(ids or ())
        if bulk:
            source_id = source_id_of(session, source)
            chosen = actions.retried_ids(session, source_id=source_id, states=state or (), limit=limit or 1)
        done = reset(session, jobs.clock, chosen, reason=reason, apply=apply)
    values = [
        ("reset" if apply else "would be reset", done.reset),
        ("nothing to reset", done.unchanged),
        ("skipped, a worker is using it", done.locked),
        ("not found", done.missing),
    ]
    lines = [f"{word}: {', '.join(map(str, found))}" for word, found in values if found] or ["no such jobs"]
    return Done(done, lines, is_success=not done.missing)


# The next step for a job in each state, for the error of an action that the state does not allow.
_NEXT = {
    State.PENDING.value: "it waits for a worker: holdfast start-worker",
    State.SCHEDULED.value: "let it run with: holdfast job run-now {id}",
    State.RUNNING.value: "let its run wait with: holdfast pause; end the job with: holdfast job cancel {id}",
    State.PAUSED.value: "let it go on with: holdfast job resume {id}",
    State.COMPLETED.value: "give it another run with: holdfast create-job --source {source} --once",
    State.FAILED.value: "give it another try with: holdfast retry-job --id {id}",
    State.CANCELLED.value: "create it again with: holdfast create-job --source {source} --once",
}


def _act(jobs: Jobs, action: JobAction, job: NamedJob) -> Done:
    number = job.number
    try:
        with naming(jobs.database, number), jobs.database.write() as session:
            jobs.actions.act(session, number, action)
    except IllegalTransition as exc:
        there = find_job(jobs.database, number)
        what = _NEXT[there.job.state or ""].format(id=number, source=there.source.code)
        if there.latest is not None and there.latest.paused_at is not None:
            what = f"its run is paused; resume it with: holdfast resume {there.latest.id}"
        # The error names what this state allows.
        raise Conflict(f"job {number}: {exc}; {what}") from exc
    found = find_job(jobs.database, number)
    when = f"; next run {found.job.next_run_at:%Y-%m-%d %H:%M:%S}" if found.job.next_run_at else ""
    return Done(job_json(found), f"job {number}: {found.job.state}{when}")


for _action, _about in (
    (JobAction.PAUSE, "Pause a scheduled job; a run that is queued is taken back."),
    (JobAction.RESUME, "Resume a paused job, in the emptiest slot."),
    (JobAction.CANCEL, "Cancel a job for good; a run drains first, and what it captured is kept."),
    (JobAction.FORCE_RUN, "Run a scheduled job once, now; its schedule stays the same."),
):
    _name = "run-now" if _action is JobAction.FORCE_RUN else _action.value
    _command(_name, about=_about, example=f"job {_name} 3", given=(_action,))(_act)


@_command("retry", example="retry-job --id 3")
def retry_job(jobs: Jobs, job: NamedJob) -> Done:
    """Run a failed job again; if only indexing failed, only that is repeated."""
    number = job.number
    with naming(jobs.database, number), jobs.database.write() as session:
        done = retry(session, jobs.clock, jobs.actions, number)
    found = find_job(jobs.database, number)
    sentence = f"{found.admin_status}, to run again with its whole retry budget"
    if done is Retried.INDEX_RESET:
        sentence = "its latest execution will be indexed again; start a worker, or: holdfast index"
    return Done({**job_json(found), "retried": done.value}, f"job {number}: {sentence}")


@_command(example="job delete 3")
def delete(jobs: Jobs, job: NamedJob) -> Done:
    """Delete a job; its captures stay. Cancel a running job first."""
    number = job.number
    with naming(jobs.database, number), jobs.database.write() as session:
        jobs.actions.delete(session, number)
    return Done({"id": number, "deleted": True}, f"job {number}: deleted")
