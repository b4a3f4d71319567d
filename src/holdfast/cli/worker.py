"""`holdfast worker`: runs jobs, queues due ones, and cleans up after dead workers."""

from __future__ import annotations

import sys
from contextlib import nullcontext, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from holdfast import config, log
from holdfast.cli.archive import read_executions
from holdfast.cli.formatting import counted, fields, table
from holdfast.cli.job_selector import JOB_KINDS
from holdfast.cli.parameters import Apply, AsJson, Home, command_group, one_of, read_codes
from holdfast.cli.printing import picked
from holdfast.cli.resource import Done, Reading, command
from holdfast.cli.runner import example
from holdfast.cli.seeds import find_contact
from holdfast.config import Settings
from holdfast.crawl.recovery import recover_leases
from holdfast.crawl.stopping import obeying_signals
from holdfast.db.raw import synchronise
from holdfast.errors import Unavailable
from holdfast.jobs import indexing
from holdfast.jobs.administration.source_jobs import sync_enabled_sources
from holdfast.jobs.schedule_queries import last_scheduled_at, stale_held, stale_locks
from holdfast.jobs.slots import preview_rebalance, record_rebalance, show_distribution
from holdfast.jobs.slots import rebalance as do_rebalance
from holdfast.jobs.views.listing import count_metrics
from holdfast.operations.runner import ALL_RUNNERS
from holdfast.processes.owners import OwnerProcess
from holdfast.processes.runfile import RunFile
from holdfast.records import Spelling, encode
from holdfast.wiring import open_runtime
from holdfast.wiring.jobs import Jobs, open_jobs
from holdfast.worker.feeds import FeedJobs
from holdfast.worker.loop import BACKGROUND_TASKS, RunnerTable, WorkerOptions, work

_MOST = 10_000
_log = log.get()

app_command = command_group("Run jobs, queue them, and clean up after dead workers. Example: holdfast worker start")

_command = partial(command, app_command, opened=nullcontext)
"""Of a function that takes the settings."""
_job_command = partial(command, app_command, opened=open_jobs)


@_command(example="start-worker --concurrency 2")
def start(
    settings: Settings,
    once: Annotated[bool, typer.Option("--once", help="Run due jobs now, index and compare them, then exit.")] = False,
    poll_interval: Annotated[float | None, typer.Option(min=0.05, help="Seconds between two looks for work.")] = None,
    concurrency: Annotated[int | None, typer.Option(min=1, max=64, help="Executions to run at once.")] = None,
    kinds: Annotated[list[str] | None, typer.Option(help=f"Only jobs of these kinds ({', '.join(JOB_KINDS)}).")] = None,
    scheduler: Annotated[
        bool, typer.Option("--scheduler/--no-scheduler", help="Also queue due jobs; another process may do that.")
    ] = True,
) -> Done:
    """Run jobs that are due, index what they captured, and compare it: the process that keeps an archive alive.

    The first Ctrl-C (or TERM) drains: crawls finish requests in progress and are released. The second does not
    wait.
    """
    wanted = read_codes(kinds)
    for kind in wanted:
        one_of(kind, JOB_KINDS, "--kinds")
    # Write JSON lines unless on a terminal: programs read the log of a service.
    log.configure(settings.log_level, as_json=not sys.stderr.isatty())
    # Without a contact a worker waits for one: an administrator enters it with the first website. A timer cannot wait.
    if once or settings.contact:
        find_contact(settings, has_option=False)
    options = WorkerOptions(
        once=once,
        poll_s=poll_interval if poll_interval is not None else settings.timings.jobs_poll_s,
        concurrency=concurrency or settings.worker.concurrency,
        kinds=wanted or None,
        schedules=scheduler,
    )
    with obeying_signals() as stops:
        report = work(settings, options, stops, RunnerTable(ALL_RUNNERS, BACKGROUND_TASKS))
    # Scripts know the errors by this key.
    facts = picked(report, "executions endings low_disk chore_errors=background_errors")
    endings = ", ".join(f"{count} {word}" for word, count in sorted(report.endings.items())) or "nothing was due"
    errors = ["work is waiting because the disk is too full; see: holdfast status"] if report.low_disk else []
    errors += [f"{name}: {error}" for name, error in report.background_errors.items()]
    # A timer that runs `--once` must notice that some work remains.
    is_success = not (once and (report.low_disk or report.background_errors))
    return Done(facts, f"{counted(len(report.executions), 'run')}: {endings}", is_success, errors)


@app_command.command()
@example("start-scheduler")
def schedule(
    poll_interval: Annotated[
        float | None, typer.Option(min=0.05, help="Seconds between two looks at the clock.")
    ] = None,
    home: Home = None,
) -> None:
    """Only queue due jobs and clear stale locks; workers elsewhere run the jobs. Any number of these may run."""
    settings = config.load(home=home)
    log.configure(settings.log_level, as_json=not sys.stderr.isatty())
    if poll_interval is not None:
        settings = settings.model_copy(update={"jobs": settings.jobs.model_copy(update={"poll_s": poll_interval})})
    with obeying_signals() as stops, open_runtime(settings) as runtime, open_jobs(settings) as jobs:
        # Do this before the first tick: it ends dead owners, and never mistakes "running" for "orphaned".
        recover_leases(runtime)
        jobs.scheduler.start()
        owner = OwnerProcess(
            runtime.raw_db, runtime.clock, run=RunFile(runtime.run_folder), kind="scheduler", execution_id=None
        )

        feed_jobs = FeedJobs(jobs)

        def beat() -> None:
            # Workers that leave the schedule to this process also leave the feed jobs to it.
            synchronise(runtime.clock, jobs.clock)
            feed_jobs.look()
            with runtime.raw_db.write() as tx:
                owner.beat(tx)

        try:
            jobs.scheduler.run(stops, on_tick=beat)
        finally:
            # If the database is unavailable, the next worker start closes our row.
            with suppress(Unavailable):
                owner.end()


@_job_command("recover-stale", example="recover-stale-jobs --older-than-minutes 10 --apply")
def recover_stale(
    jobs: Jobs,
    older_than_minutes: Annotated[
        float, typer.Option(min=0.0, help="Silence of a holder after which it counts as gone.")
    ],
    apply: Apply = False,
) -> Done:
    """Release jobs whose worker sent no heartbeat for this long; another worker continues their executions."""
    before = jobs.clock.now() - timedelta(minutes=older_than_minutes)
    with jobs.database.read() as session:
        found = stale_held(session, stale_locks(before), limit=_MOST)
    freed = jobs.scheduler.sweep(before=before) if apply else 0
    lines = [f"job {one.job}: {one.owner} has been silent since {one.silent_since:%Y-%m-%d %H:%M:%S}" for one in found]
    lines.append(_summary(len(found), freed, "released", apply=apply))
    return Done({"stale": found, "freed": freed}, lines)


@_job_command("reconcile-indexing", example="reconcile-completed-indexing --apply")
def reconcile_indexing(
    jobs: Jobs,
    limit: Annotated[int, typer.Option(min=1, max=_MOST, help="Executions at most, oldest first.")] = 1000,
    now: Annotated[bool, typer.Option("--now/--later", help="Read them here, or leave that to a worker.")] = True,
    apply: Apply = False,
    json: AsJson = False,
) -> Done:
    """Index waiting executions, and those that were crawled without a worker and have WARC files."""
    found = indexing.find_unindexed(jobs.database, _has_files, limit=limit)
    asked: list[int] = []
    for one in found if apply else ():
        if one.index_state is None:
            # Skip it if it was requested meanwhile.
            with suppress(indexing.NotIndexable), jobs.database.write() as session:
                indexing.ask_again(session, one.execution, now=jobs.clock.now())
        asked.append(one.execution)
    errors = read_executions(jobs.settings, asked, quiet=json) if now else []
    indexed = len(asked) - len(errors)
    facts = {"unindexed": found, "asked": len(asked), "indexed": indexed if now else 0, "errors": errors}
    lines = [
        f"execution {one.execution} of {one.source} ({one.kind}): {counted(one.files, 'registered file')}"
        for one in found
    ]
    word = "indexed" if now else "will be indexed by the next worker"
    lines.append(_summary(len(found), indexed, word, apply=apply))
    return Done(facts, lines, not errors, [f"failed: {error}" for error in errors])


def _has_files(output_dir: str) -> bool:
    folder = Path(output_dir)
    return bool(output_dir) and folder.is_dir() and any(folder.rglob("*.warc*"))


def _summary(found: int, done: int, word: str, *, apply: bool) -> str:
    if not found:
        return "nothing to do"
    return f"{done} {word}" if apply else f"{found} found"


scheduler = command_group("The schedule: figures, load by hour, rebalance. Example: holdfast scheduler distribution")
_schedule_command = partial(command, scheduler, opened=open_jobs)


@_schedule_command(example="scheduler metrics --json")
def metrics(jobs: Jobs, session: Reading) -> Done:
    """Count jobs by state, and the results of the runs of the last 24 hours."""
    found = count_metrics(session, now=jobs.clock.now(), last_check_at=last_scheduled_at(session))
    runs = found.executions
    lines = [
        fields(list(found.jobs.items())),
        f"{counted(runs.total, 'run')} in all, {found.stale_locks_cleared} stale locks cleared",
        f"the last 24 hours: {runs.success_rate:.0%} good, {runs.average_duration_ms / 1000:.1f} s on average",
        *(f"warning: {warning}" for warning in found.warnings),
    ]
    return Done(found, lines)


@_schedule_command(example="scheduler distribution")
def distribution(jobs: Jobs, session: Reading) -> Done:
    """Show how the runs of the next 24 hours are distributed over the hours (UTC), and how evenly."""
    found = show_distribution(session, now=jobs.clock.now())
    widest = max(found.peak_count, 1)
    lines = [
        f"{one.hour:02d}:00  {one.job_count:>6}  {'#' * round(40 * one.job_count / widest)}".rstrip()
        for one in found.hourly_distribution
    ]
    advice = "; a rebalance is advised: holdfast scheduler preview" if found.rebalance_advised else ""
    lines.append(f"{counted(found.total_jobs, 'job')}, score {found.distribution_score:.2f}{advice}")
    return Done(found, lines)


@_schedule_command(example="scheduler preview")
def preview(jobs: Jobs) -> Done:
    """Show what a rebalance would do: every scheduled job as moved or skipped, with its reason."""
    return _rebalanced(jobs, applied=False)


@_schedule_command(example="scheduler rebalance --apply")
def rebalance(jobs: Jobs, apply: Apply = False) -> Done:
    """Move scheduled jobs into less busy slots; jobs that run, run soon or were recently moved stay."""
    return _rebalanced(jobs, applied=apply)


def _rebalanced(jobs: Jobs, *, applied: bool) -> Done:
    now = jobs.clock.now()
    if applied:
        plan = do_rebalance(jobs.database, now=now)
        with jobs.database.write() as session:
            record_rebalance(session, jobs.clock, plan)
    else:
        with jobs.database.read() as session:
            plan = preview_rebalance(session, now=now)
    rows: list[tuple[object, ...]] = [
        (one.job_id, "moved" if applied else "would move", one.old_time, one.new_time) for one in plan.moved
    ]
    rows += [(one.job_id, f"stays: {one.reason}", None, None) for one in plan.skipped]
    score = plan.new_distribution_score
    lines = [table(("job", "what", "from", "to"), rows)] if rows else []
    lines.append(f"{len(plan.moved)} moved, {len(plan.skipped)} stay, score {score:.2f}")
    return Done({**encode(plan, spelling=Spelling.COMMAND), "applied": applied}, lines)


@_schedule_command(example="sync-enabled-sources", is_quiet=True)
def sync(
    jobs: Jobs,
    interval_minutes: Annotated[
        int | None, typer.Option(min=1, help="Of new jobs; from the settings if left out.")
    ] = None,
) -> Done:
    """Create missing crawl jobs of enabled sources, and resume those paused while their source was disabled.

    Acts at once; it removes nothing.
    """
    minutes = interval_minutes or jobs.settings.jobs.auto_interval_minutes
    done = sync_enabled_sources(jobs.database.write, jobs.clock, jobs.actions, interval_minutes=minutes)
    for error in done.errors:
        typer.echo(error, err=True)
    sentence = (
        f"{counted(done.sources_seen, 'source')}, {done.sources_enabled} enabled: {done.created} jobs made, "
        f"{done.already_has_job} had one, {done.resumed} resumed"
    )
    return Done(done, sentence, is_success=not done.errors)
