"""`holdfast worker`: what runs jobs, what queues them, and what clears up after those that fell silent."""

from __future__ import annotations

import json as jsonlib
import sys
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast import config, log
from holdfast.cli.archive import read_executions
from holdfast.cli.formatting import counted, dumps, fields, table
from holdfast.cli.job_selector import JOB_KINDS
from holdfast.cli.parameters import Apply, AsJson, Home, configure_log
from holdfast.cli.seeds import find_contact
from holdfast.coordination.owners import OwnerProcess
from holdfast.coordination.runfile import RunFile
from holdfast.crawl_process.stopping import obeying_signals
from holdfast.db.raw import synchronise
from holdfast.errors import Unavailable
from holdfast.jobs import indexing
from holdfast.jobs.administration.source_jobs import sync_in_portions
from holdfast.jobs.schedule_queries import Silence, last_scheduled_at, stale_held
from holdfast.jobs.slots import Rebalance, preview_rebalance, record_rebalance, show_distribution
from holdfast.jobs.slots import rebalance as do_rebalance
from holdfast.jobs.views.dialects import distribution_object, metrics_object, rebalance_object, sync_object
from holdfast.jobs.views.listing import count_metrics
from holdfast.wiring import open_runtime
from holdfast.wiring.jobs import open_jobs
from holdfast.worker.feeds import FeedJobs
from holdfast.worker.loop import BACKGROUND_TASKS, RUNNERS, RunnerTable, WorkerOptions, WorkerReport, dead_holders, work

_MOST = 10_000
_log = log.get()

app_command = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="What runs jobs, queues them, and clears up after those that fell silent. Example: holdfast worker start",
)


@app_command.command()
def start(
    once: Annotated[bool, typer.Option("--once", help="Run what is due now, index and compare it, then end.")] = False,
    poll_interval: Annotated[
        float | None, typer.Option("--poll-interval", min=0.05, help="Seconds between two looks for work.")
    ] = None,
    concurrency: Annotated[int | None, typer.Option(min=1, max=64, help="Executions to run at once.")] = None,
    kinds: Annotated[
        list[str] | None, typer.Option("--kinds", help=f"Only jobs of these kinds ({', '.join(JOB_KINDS)}).")
    ] = None,
    scheduler: Annotated[
        bool, typer.Option("--scheduler/--no-scheduler", help="Also queue what is due; another process may do that.")
    ] = True,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Run jobs that are due, index what they captured, and compare it: the process that keeps an archive alive.

    The first Ctrl-C (or TERM) drains: crawls finish what is in flight and are handed back. The second does not wait.

    Example: holdfast start-worker --concurrency 2
    """
    wanted, settings = _kinds(kinds or []), config.load(home=home)
    # JSON lines unless a person looks on: the log of a service is read by programs.
    log.configure(settings.log_level, as_json=not sys.stderr.isatty())
    # Without a contact a worker waits for one: an administrator enters it with the first website. A timer cannot wait.
    if once or settings.contact:
        find_contact(settings, has_option=False)
    options = WorkerOptions(
        once=once,
        poll_s=poll_interval if poll_interval is not None else settings.jobs.poll_s,
        concurrency=concurrency or settings.worker.concurrency,
        kinds=wanted,
        schedules=scheduler,
    )
    with obeying_signals() as stops:
        report = work(settings, options, stops, RunnerTable(RUNNERS, BACKGROUND_TASKS))
    print(jsonlib.dumps(_facts(report))) if json else _describe(report)
    # A timer that runs `--once` has to see that something was left undone.
    if once and (report.low_disk or report.background_errors):
        raise typer.Exit(1)


def _kinds(given: list[str]) -> tuple[str, ...] | None:
    kinds = [kind.strip() for one in given for kind in one.split(",") if kind.strip()]
    if unknown := [kind for kind in kinds if kind not in JOB_KINDS]:
        raise typer.BadParameter(f"{unknown[0][:40]!r} is none of {', '.join(JOB_KINDS)}", param_hint="--kinds")
    return tuple(kinds) or None


def _facts(report: WorkerReport) -> dict[str, Any]:
    return {
        "executions": report.executions,
        "endings": dict(report.endings),
        "low_disk": report.low_disk,
        # The key is the one that scripts know.
        "chore_errors": report.background_errors,
    }


def _describe(report: WorkerReport) -> None:
    endings = ", ".join(f"{count} {word}" for word, count in sorted(report.endings.items())) or "nothing was due"
    typer.echo(f"{counted(len(report.executions), 'run')}: {endings}")
    if report.low_disk:
        typer.echo("something waits that was not begun: the disk is too full; see: holdfast status", err=True)
    for name, error in report.background_errors.items():
        typer.echo(f"{name}: {error}", err=True)


@app_command.command()
def schedule(
    poll_interval: Annotated[
        float | None, typer.Option("--poll-interval", min=0.05, help="Seconds between two looks at the clock.")
    ] = None,
    home: Home = None,
) -> None:
    """Only queue what is due and clear stale locks; workers elsewhere run it. Any number of these may run.

    Example: holdfast start-scheduler
    """
    settings = config.load(home=home)
    log.configure(settings.log_level, as_json=not sys.stderr.isatty())
    if poll_interval is not None:
        settings = settings.model_copy(update={"jobs": settings.jobs.model_copy(update={"poll_s": poll_interval})})
    with obeying_signals() as stops, open_runtime(settings) as runtime, open_jobs(settings) as jobs:
        # Before the first tick: it asks who is dead, and never takes "running" for "orphaned".
        jobs.scheduler.start(dead_owners=dead_holders(runtime, jobs.database))
        owner = OwnerProcess(
            runtime.raw_db, runtime.clock, run=RunFile(runtime.run_folder), kind="scheduler", execution_id=None
        )

        feed_jobs = FeedJobs(jobs)

        def beat() -> None:
            # Workers that leave the schedule to this process leave the feed jobs to it as well.
            synchronise(runtime.clock, jobs.clock)
            feed_jobs.look()
            with runtime.raw_db.write() as tx:
                owner.beat(tx)

        try:
            jobs.scheduler.run(stops, on_tick=beat)
        finally:
            # Without a database the next start of a worker closes our row.
            with suppress(Unavailable):
                owner.end()


@app_command.command("recover-stale")
def recover_stale(
    older_than_minutes: Annotated[
        float, typer.Option("--older-than-minutes", min=0.0, help="Silence of a holder after which it counts as gone.")
    ],
    apply: Apply = False,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Free jobs whose worker has been silent for so long; their executions go on with another one.

    Example: holdfast recover-stale-jobs --older-than-minutes 10 --apply
    """
    with open_jobs(config.load(home=home)) as jobs:
        before = jobs.clock.now() - timedelta(minutes=older_than_minutes)
        with jobs.database.read() as session:
            found = stale_held(session, Silence(before), limit=_MOST)
        freed = jobs.scheduler.sweep(before=before) if apply else 0
    rows = [{"job": one.job_id, "owner": one.owner, "silent_since": one.heartbeat_at} for one in found]
    if json:
        print(jsonlib.dumps({"stale": rows, "freed": freed, "applied": apply}, default=str))
        return
    for one in found:
        typer.echo(f"job {one.job_id}: {one.owner} has been silent since {one.heartbeat_at:%Y-%m-%d %H:%M:%S}")
    typer.echo(_summary(len(found), freed, "freed", apply=apply))


@app_command.command("reconcile-indexing")
def reconcile_indexing(
    limit: Annotated[int, typer.Option(min=1, max=_MOST, help="Executions at most, oldest first.")] = 1000,
    now: Annotated[bool, typer.Option("--now/--later", help="Read them here, or leave that to a worker.")] = True,
    apply: Apply = False,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Index executions that wait for it, and those that were crawled outside a worker and have WARC files.

    Example: holdfast reconcile-completed-indexing --apply
    """
    settings = config.load(home=home)
    with open_jobs(settings) as jobs:
        found = indexing.find_unindexed(jobs.database, _has_files, limit=limit)
        asked: list[int] = []
        for one in found if apply else ():
            if one.index_state is None:
                # Unless it was asked for meanwhile.
                with suppress(indexing.NotIndexable), jobs.database.write() as session:
                    indexing.ask_again(session, one.execution_id, now=jobs.clock.now())
            asked.append(one.execution_id)
    errors = read_executions(settings, asked, quiet=json) if now else []
    if json:
        rows = [
            {"execution": one.execution_id, "source": one.source, "kind": one.kind, "files": one.files} for one in found
        ]
        output = {
            "unindexed": rows,
            "asked": len(asked),
            "indexed": len(asked) - len(errors) if now else 0,
            "errors": errors,
            "applied": apply,
        }
        print(jsonlib.dumps(output))
    else:
        for one in found:
            typer.echo(
                f"execution {one.execution_id} of {one.source} ({one.kind}): {counted(one.files, 'registered file')}"
            )
        for error in errors:
            typer.echo(f"failed: {error}", err=True)
        word = "indexed" if now else "will be indexed by the next worker"
        typer.echo(_summary(len(found), len(asked) - len(errors), word, apply=apply))
    if errors:
        raise typer.Exit(1)


def _has_files(output_dir: str) -> bool:
    folder = Path(output_dir)
    return bool(output_dir) and folder.is_dir() and any(folder.rglob("*.warc*"))


def _summary(found: int, done: int, word: str, *, apply: bool) -> str:
    if not found:
        return "nothing to do"
    return f"{done} {word}" if apply else f"{found} found; --apply does it"


scheduler = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="The schedule: figures, load by hour, rebalance. Example: holdfast scheduler distribution",
)


@scheduler.command()
def metrics(json: AsJson = False, home: Home = None) -> None:
    """Count jobs by state, and how the runs of the last 24 hours went.

    Example: holdfast scheduler metrics --json
    """
    with open_jobs(config.load(home=home)) as jobs, jobs.database.read() as session:
        found = count_metrics(session, now=jobs.clock.now(), last_check_at=last_scheduled_at(session))
    if json:
        print(dumps(metrics_object(found)))
        return
    print(fields([(state, count) for state, count in found.jobs.items()]))
    average = found.average_duration_ms / 1000
    print(f"{counted(found.executions_total, 'run')} in all, {found.stale_locks_cleared} stale locks cleared")
    print(f"the last 24 hours: {found.success_rate:.0%} good, {average:.1f} s on average")
    for warning in found.warnings():
        print(f"warning: {warning}")


@scheduler.command()
def distribution(json: AsJson = False, home: Home = None) -> None:
    """Show how the runs of the coming 24 hours are spread over its hours (UTC), and how even that is.

    Example: holdfast scheduler distribution
    """
    with open_jobs(config.load(home=home)) as jobs, jobs.database.read() as session:
        found = show_distribution(session, now=jobs.clock.now())
    if json:
        print(dumps(distribution_object(found)))
        return
    widest = max(found.peak_count, 1)
    for hour, count in enumerate(found.hours):
        print(f"{hour:02d}:00  {count:>6}  {'#' * round(40 * count / widest)}".rstrip())
    print(
        f"{counted(found.total_jobs, 'job')}, score {found.score:.2f}"
        + ("; a rebalance is advised: holdfast scheduler preview" if found.rebalance_advised else "")
    )


@scheduler.command()
def preview(json: AsJson = False, home: Home = None) -> None:
    """Say what a rebalance would do: every scheduled job as moved or skipped, with its reason.

    Example: holdfast scheduler preview
    """
    with open_jobs(config.load(home=home)) as jobs, jobs.database.read() as session:
        plan = preview_rebalance(session, now=jobs.clock.now())
    _print(plan, applied=False, json=json)


@scheduler.command()
def rebalance(
    apply: Apply = False,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Move scheduled jobs into emptier slots; what runs, runs soon or was placed lately stays.

    Example: holdfast scheduler rebalance --apply
    """
    with open_jobs(config.load(home=home)) as jobs:
        now = jobs.clock.now()
        if apply:
            done = do_rebalance(jobs.database, now=now)
            with jobs.database.write() as session:
                record_rebalance(session, jobs.clock, done)
        else:
            with jobs.database.read() as session:
                done = preview_rebalance(session, now=now)
    _print(done, applied=apply, json=json)


def _print(plan: Rebalance, *, applied: bool, json: bool) -> None:
    if json:
        print(dumps({**rebalance_object(plan), "applied": applied}))
        return
    rows: list[tuple[object, ...]] = [
        (one.job_id, "moved" if applied else "would move", one.old_time, one.new_time) for one in plan.moved
    ]
    rows += [(one.job_id, f"stays: {one.reason}", None, None) for one in plan.skipped]
    if rows:
        print(table(("job", "what", "from", "to"), rows))
    print(
        f"{len(plan.moved)} moved, {len(plan.skipped)} stay, score {plan.score:.2f}"
        + ("" if applied or not plan.moved else "; nothing was written, add --apply to rebalance")
    )


@scheduler.command()
def sync(
    interval_minutes: Annotated[
        int | None, typer.Option("--interval-minutes", min=1, help="Of new jobs; from the settings if left out.")
    ] = None,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Give every enabled source a crawl job that has none, and resume what its source's absence had paused.

    Acts at once: it takes nothing away.
    Example: holdfast sync-enabled-sources
    """
    settings = config.load(home=home)
    # What went wrong is told below, once.
    configure_log(settings, unless_set="ERROR", as_json=False)
    minutes = interval_minutes or settings.jobs.auto_interval_minutes
    with open_jobs(settings) as jobs:
        done = sync_in_portions(jobs.database.write, jobs.clock, jobs.actions, interval_minutes=minutes)
    if json:
        print(dumps(sync_object(done)))
    else:
        print(
            f"{counted(done.sources_seen, 'source')}, {done.sources_enabled} enabled: {len(done.created)} jobs made, "
            f"{len(done.with_job)} had one, {len(done.woken)} resumed"
        )
    for code, error in done.errors.items():
        typer.echo(f"{code}: {error}", err=True)
    if done.errors:
        raise typer.Exit(1)
