"""`holdfast job`: when and how sources are crawled. Every change of state goes through the table of `jobs.states`."""

from __future__ import annotations

import json as jsonlib
import shlex
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from holdfast import config
from holdfast.archive_tool.contract import Host, read_patch, tool_command
from holdfast.cli import job_show, lists
from holdfast.cli.formatting import counted, dumps
from holdfast.cli.job_selector import JobArgument, JobOption, find_job, interval_text, job_number, naming
from holdfast.cli.parameters import Apply, AsJson, Home, read_assignments, read_size, read_time
from holdfast.db.models import Source
from holdfast.errors import Conflict, Invalid
from holdfast.jobs.administration import actions
from holdfast.jobs.administration.actions import Reset, Retried, Upserted, patch_zimit, retry
from holdfast.jobs.administration.actions import reset_retries as reset
from holdfast.jobs.specs import JobSpec, check_uncapped, effective_config
from holdfast.jobs.states import IllegalTransition, JobAction, State
from holdfast.jobs.views.dialects import command_job
from holdfast.sources.config import merge_fields, read_config
from holdfast.sources.queries import find_source
from holdfast.sources.registry import content_of
from holdfast.sources.schedule import Schedule, ScheduleRefused, read_schedule
from holdfast.wiring.jobs import Jobs, check_annual, check_backend, open_jobs, zimit_config

Every = Annotated[
    str | None,
    typer.Option(
        "--every",
        "--schedule",
        help="When: 30m, 6h or 7d, or in words, as 'monthly on day 31 at 03:00'; without it: once.",
    ),
]
Seeds = Annotated[list[str] | None, typer.Option("--seed", help="One more address to begin at; repeatable.")]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", help="A field of the source's configuration that this job has otherwise; repeatable."),
]
PageLimit = Annotated[
    int | None, typer.Option("--page-limit", min=1, help="At most so many pages; not for annual jobs.")
]
MaxBytes = Annotated[str | None, typer.Option("--max-bytes", help="At most so much from the network, as 5GB.")]
MaxTime = Annotated[str | None, typer.Option("--max-time", help="At most so long at work, as 30m, 6h or 7d.")]
Depth = Annotated[int | None, typer.Option("--depth", min=-1, help="Links to follow from a seed; not for annual jobs.")]
Name = Annotated[str | None, typer.Option("--name", help="Its name; by the source's template if left out.")]
Address = Annotated[str | None, typer.Option("--url", help="The start page; the first seed if left out.")]
Retries = Annotated[int | None, typer.Option("--max-retries", min=0, max=100, help="Tries after a failure.")]
Backoff = Annotated[int | None, typer.Option("--retry-backoff", min=0, max=3600, help="Seconds before the first one.")]
Adaptive = Annotated[
    bool | None, typer.Option("--adaptive/--no-adaptive", help="Whether a page that does not change slows it down.")
]
Once = Annotated[bool, typer.Option("--once", help="Run once, also where there was a schedule.")]


class Overrides(NamedTuple):
    """What a job has otherwise than its source, as it was typed."""

    seeds: list[str] | None
    sets: list[str] | None
    page_limit: int | None
    depth: int | None
    max_bytes: str | None = None
    max_time: str | None = None

    def fields(self, present: dict[str, Any], base: Source) -> dict[str, Any]:
        """Return the fields of the configuration: those that the job had, and what is said anew."""
        made = merge_fields(present, read_assignments(self.sets or ()))
        there = made.get("seeds", read_config(content_of(base), needs_seeds=False).seeds)
        # Beside the seeds that there are: `--seed` adds one, `--set seeds=` writes them anew. What is no list is
        # refused when the whole is checked.
        if self.seeds and isinstance(there, list | tuple):
            made["seeds"] = [*there, *self.seeds]
        limits = {
            "max_pages": self.page_limit,
            "max_depth": self.depth,
            "quota_bytes": read_size(self.max_bytes),
            "max_time_s": read_time(self.max_time),
        }
        for name, value in limits.items():
            if value is not None:
                made[name] = value
        return made


def create(
    source: Annotated[str, typer.Option("--source", help="The source's code.", metavar="CODE")],
    every: Every = None,
    once: Once = False,
    name: Name = None,
    url: Address = None,
    seed: Seeds = None,
    sets: Sets = None,
    page_limit: PageLimit = None,
    depth: Depth = None,
    max_bytes: MaxBytes = None,
    max_time: MaxTime = None,
    max_retries: Retries = None,
    retry_backoff: Backoff = None,
    adaptive: Adaptive = None,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Make the crawl job of a source, or give the one that it has a new plan: on a schedule, or once and at once.

    Example: holdfast create-job --source hc --every 6h --set delay_s=2
    """
    wish = Overrides(seed, sets, page_limit, depth, max_bytes, max_time)
    with open_jobs(config.load(home=home)) as jobs:
        schedule = _schedule(every, once=once, now=jobs.clock.now())
        with jobs.database.write() as session:
            row = find_source(session, source)
            spec = JobSpec(
                source_id=row.id,
                url=url,
                # By the source's template: directories of runs and exports show it.
                name=name or read_config(content_of(row), needs_seeds=False).job_name(row.code, jobs.clock.now()),
                config=wish.fields({}, row),
                **_given(max_retries=max_retries, retry_backoff_seconds=retry_backoff, adaptive_scheduling=adaptive),
            )
            done = jobs.actions.upsert(session, spec.at(schedule), replaces_schedule=every is not None or once)
        _print(jobs, done, json=json)


def edit(
    job: JobArgument = None,
    job_id: JobOption = None,
    every: Every = None,
    once: Once = False,
    name: Name = None,
    url: Address = None,
    seed: Seeds = None,
    sets: Sets = None,
    page_limit: PageLimit = None,
    depth: Depth = None,
    max_bytes: MaxBytes = None,
    max_time: MaxTime = None,
    max_retries: Retries = None,
    retry_backoff: Backoff = None,
    adaptive: Adaptive = None,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Change the plan of a job; what is not named stays. --set FIELD=null lets a field follow the source again.

    Example: holdfast job edit 3 --every 12h --max-retries 5
    """
    number = job_number(job, job_id)
    wish = Overrides(seed, sets, page_limit, depth, max_bytes, max_time)
    values = _given(
        name=name, url=url, max_retries=max_retries, retry_backoff_seconds=retry_backoff, adaptive_scheduling=adaptive
    )
    is_replanned = every is not None or once
    if not values and not is_replanned and not any(one is not None for one in wish):
        raise typer.BadParameter("say what to change, for example --every 6h or --set delay_s=5")
    with open_jobs(config.load(home=home)) as jobs:
        schedule = _schedule(every, once=once, now=jobs.clock.now())
        with naming(jobs.database, number), jobs.database.write() as session:
            found, source = jobs.actions.hold(session, number)
            overrides = wish.fields(dict(found.config), source)
            spec = replace(JobSpec.of(found), **values, config=overrides)
            done = jobs.actions.edit(session, number, spec.at(schedule) if is_replanned else spec)
        _print(jobs, done, json=json)


def _schedule(every: str | None, *, once: bool, now: datetime) -> Schedule | None:
    if every is not None and once:
        raise typer.BadParameter("it does not go with --once", param_hint="--every")
    try:
        return None if every is None else read_schedule(every, now=now)
    except ScheduleRefused as exc:
        raise typer.BadParameter(exc.reason, param_hint="--every") from exc


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _print(jobs: Jobs, done: Upserted, *, json: bool) -> None:
    found = find_job(jobs.database, done.job.id)
    if json:
        print(dumps({**command_job(found), "created": done.created, "warnings": list(done.warnings)}))
        return
    row = found.job
    when = f", next run {row.next_run_at:%Y-%m-%d %H:%M:%S}" if row.next_run_at else ""
    print(
        f"job {row.id} {'made' if done.created else 'changed'}: {found.source.code}, {interval_text(row)}, "
        f"{row.state}{when}"
    )
    for warning in done.warnings:
        print(f"warning: {warning}")


def validate_config(job: JobArgument = None, job_id: JobOption = None, json: AsJson = False, home: Home = None) -> None:
    """Check a job's configuration as it would run, its row untouched; exit 1 names the field that is wrong.

    Example: holdfast validate-job-config --id 3
    """
    settings = config.load(home=home)
    with open_jobs(settings) as jobs:
        found = find_job(jobs.database, job_number(job, job_id))
    whole = effective_config(found.job, found.source, check=check_backend(settings))
    check_uncapped(found.job.kind, whole, check_annual(settings))
    warnings, command = list(whole.warnings()), None
    if whole.backend == "zimit":
        checked, host = zimit_config(whole, settings), Host.of(settings.zimit)
        command = shlex.join(tool_command(checked, host, name=found.source.code, output_dir=Path("OUTPUT")))
    if json:
        print(
            jsonlib.dumps(
                {
                    "id": found.job.id,
                    "valid": True,
                    "backend": whole.backend,
                    "config": whole.stored(),
                    "command": command,
                    "warnings": warnings,
                },
                ensure_ascii=False,
            )
        )
        return
    print(f"job {found.job.id}: valid, {counted(len(whole.seeds), 'seed')}, backend {whole.backend}")
    if command:
        print(f"it would run: {command}")
    for warning in warnings:
        print(f"warning: {warning}")


def patch_config(
    job: JobArgument = None,
    job_id: JobOption = None,
    options: Annotated[
        list[str] | None, typer.Option("--set-tool-option", help="A tool option; repeatable.", metavar="KEY=VALUE")
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option("--set-execution-policy", help="A value of the policy; repeatable.", metavar="KEY=VALUE"),
    ] = None,
    apply: Apply = False,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Change tool options and execution policy of a job that is queued, retryable or failed.

    Example: holdfast patch-job-config --id 3 --set-tool-option initial_workers=4 --apply
    """
    number, settings = job_number(job, job_id), config.load(home=home)
    wanted = read_patch(options or (), policy or ())
    changes = {group: given for group, given in wanted._asdict().items() if given}
    if not changes:
        raise Invalid("nothing to set: name --set-tool-option or --set-execution-policy, as KEY=VALUE")
    with open_jobs(settings) as jobs, naming(jobs.database, number), jobs.database.write() as session:
        done = patch_zimit(session, jobs.clock, number, changes, check=check_backend(settings), apply=apply)
        found = find_job(jobs.database, number)
    backend = effective_config(found.job, found.source).backend
    if json:
        print(
            jsonlib.dumps(
                {"id": number, "applied": apply, "backend": backend, "before": done.before, "after": done.after}
            )
        )
        return
    for group, given in changes.items():
        for name in given:
            before, after = (side[group].get(name) for side in done)
            print(f"{group}.{name}: {jsonlib.dumps(before)} -> {jsonlib.dumps(after)}")
    if backend != "zimit":
        print(f"it crawls with backend {backend}, which knows none of these; see: holdfast job edit {number} --set")
    print(f"job {number}: changed" if apply else "nothing was written; add --apply to do so")


def reset_retries(
    ids: Annotated[list[int] | None, typer.Option("--id", help="A job; repeatable, then with --reason.")] = None,
    source: Annotated[str | None, typer.Option("--source", help="All of this source's.", metavar="CODE")] = None,
    state: Annotated[list[str] | None, typer.Option("--state", help="All in this state; repeatable.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, max=10_000, help="Most jobs of a bulk.")] = None,
    reason: Annotated[str | None, typer.Option("--reason", help="Why; it lands in the audit log.")] = None,
    apply: Apply = False,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Give jobs their whole retry budget back; those that a worker holds are skipped.

    Several jobs need --reason, and a bulk (--source, --state) needs --limit too.
    Example: holdfast reset-retry-count --id 3 --apply
    """
    bulk = source is not None or bool(state)
    if bool(ids) == bulk:
        raise typer.BadParameter("name jobs with --id, or many with --source or --state")
    if bulk and limit is None:
        raise typer.BadParameter("many at once need a limit, for example --limit 20", param_hint="--limit")
    if (bulk or len(set(ids or ())) > 1) and not (reason or "").strip():
        raise typer.BadParameter("several jobs need a reason; it lands in the audit log", param_hint="--reason")
    for one in state or ():
        if one not in tuple(State):
            raise typer.BadParameter(f"{one[:40]!r} is none of {', '.join(State)}", param_hint="--state")
    with open_jobs(config.load(home=home)) as jobs, jobs.database.write() as session:
        chosen = list(ids or ())
        if bulk:
            source_id = find_source(session, source).id if source is not None else None
            chosen = actions.retried_ids(session, source_id=source_id, states=state or (), limit=limit or 1)
        done = reset(session, jobs.clock, chosen, reason=reason, apply=apply)
    _print_reset(done, apply=apply, json=json)


def _print_reset(done: Reset, *, apply: bool, json: bool) -> None:
    if json:
        print(
            jsonlib.dumps(
                {
                    "applied": apply,
                    "reset": done.reset,
                    "unchanged": done.unchanged,
                    "locked": done.locked,
                    "missing": done.missing,
                }
            )
        )
    else:
        values = [
            ("reset" if apply else "would be reset", done.reset),
            ("nothing to reset", done.unchanged),
            ("skipped, somebody works on it", done.locked),
            ("not found", done.missing),
        ]
        print("\n".join(f"{word}: {', '.join(map(str, found))}" for word, found in values if found) or "no such jobs")
        if done.reset and not apply:
            print("nothing was written; add --apply to do so")
    if done.missing:
        raise typer.Exit(1)


app_command = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Jobs: when and how sources are crawled. Example: holdfast job create --source hc --every 6h",
)
app_command.command(name="list")(lists.list_all)
app_command.command(name="show")(job_show.show)
app_command.command(name="create")(create)
app_command.command(name="edit")(edit)
app_command.command(name="executions")(job_show.executions)
app_command.command(name="logs")(job_show.logs)
app_command.command(name="events")(job_show.events)
app_command.command(name="validate-config")(validate_config)
app_command.command(name="patch-config")(patch_config)
app_command.command(name="reset-retries")(reset_retries)
# What can be done with a job in each state, where something else was asked for.
_NEXT = {
    State.PENDING.value: "it waits for a worker: holdfast start-worker",
    State.SCHEDULED.value: "let it run with: holdfast job run-now {id}",
    State.RUNNING.value: "let its run wait with: holdfast pause; end the job with: holdfast job cancel {id}",
    State.PAUSED.value: "let it go on with: holdfast job resume {id}",
    State.COMPLETED.value: "give it another run with: holdfast create-job --source {source} --once",
    State.FAILED.value: "give it another try with: holdfast retry-job --id {id}",
    State.CANCELLED.value: "make it anew with: holdfast create-job --source {source} --once",
}


@app_command.command()
def pause(job: JobArgument = None, job_id: JobOption = None, json: AsJson = False, home: Home = None) -> None:
    """Pause a scheduled job; a run that is queued is taken back.

    Example: holdfast job pause 3
    """
    _act(JobAction.PAUSE, job_number(job, job_id), json=json, home=home)


@app_command.command()
def resume(job: JobArgument = None, job_id: JobOption = None, json: AsJson = False, home: Home = None) -> None:
    """Resume a paused job, in the emptiest slot.

    Example: holdfast job resume 3
    """
    _act(JobAction.RESUME, job_number(job, job_id), json=json, home=home)


@app_command.command()
def cancel(job: JobArgument = None, job_id: JobOption = None, json: AsJson = False, home: Home = None) -> None:
    """Cancel a job for good; a run drains first, and what it captured is kept.

    Example: holdfast job cancel 3
    """
    _act(JobAction.CANCEL, job_number(job, job_id), json=json, home=home)


@app_command.command(name="run-now")
def run_now(job: JobArgument = None, job_id: JobOption = None, json: AsJson = False, home: Home = None) -> None:
    """Let a scheduled job run once at once; its rhythm stays.

    Example: holdfast job run-now 3
    """
    _act(JobAction.FORCE_RUN, job_number(job, job_id), json=json, home=home)


@app_command.command(name="retry")
def retry_job(job: JobArgument = None, job_id: JobOption = None, json: AsJson = False, home: Home = None) -> None:
    """Give a failed job another run; where only the index failed, the index alone is computed again.

    Example: holdfast retry-job --id 3
    """
    number = job_number(job, job_id)
    with open_jobs(config.load(home=home)) as jobs:
        with naming(jobs.database, number), jobs.database.write() as session:
            done = retry(session, jobs.clock, jobs.actions, number)
        found = find_job(jobs.database, number)
    if json:
        print(dumps({**command_job(found), "retried": done.value}))
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
        jobs.actions.delete(session, number)
    print(jsonlib.dumps({"id": number, "deleted": True}) if json else f"job {number}: deleted")


def _act(action: JobAction, number: int, *, json: bool, home: Home) -> None:
    with open_jobs(config.load(home=home)) as jobs:
        try:
            with naming(jobs.database, number), jobs.database.write() as session:
                jobs.actions.act(session, number, action)
        except IllegalTransition as exc:
            there = find_job(jobs.database, number)
            what = _NEXT[there.job.state or ""].format(id=number, source=there.source.code)
            if there.latest is not None and there.latest.paused_at is not None:
                what = f"its run is paused; let that go on with: holdfast resume {there.latest.id}"
            # The state that refuses says what can be done instead.
            raise Conflict(f"job {number}: {exc}; {what}") from exc
        found = find_job(jobs.database, number)
    if json:
        print(dumps(command_job(found)))
    else:
        when = f"; next run {found.job.next_run_at:%Y-%m-%d %H:%M:%S}" if found.job.next_run_at else ""
        print(f"job {number}: {found.job.state}{when}")
