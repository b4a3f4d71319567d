"""`holdfast scheduler`: how scheduled runs are spread and how they went; a rebalance is previewed unless --apply."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast import audit, config
from holdfast.cli.logs import configure_log
from holdfast.cli.objects import dumps
from holdfast.cli.options import Apply, AsJson, Home
from holdfast.cli.tables import fields, table
from holdfast.cli.wording import counted
from holdfast.jobs.following import sync_in_portions
from holdfast.jobs.metrics import count_metrics
from holdfast.jobs.placement import preview_rebalance, show_distribution
from holdfast.jobs.placement import rebalance as do_rebalance
from holdfast.jobs.schedule.queries import last_scheduled_at
from holdfast.jobs.shapes import distribution_shape, metrics_shape, rebalance_shape, sync_shape
from holdfast.jobs.slots import Rebalance
from holdfast.wiring.jobs import open_jobs

app_command = typer.Typer(
    add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None, no_args_is_help=True,
    help="The schedule: figures, load by hour, rebalance. Example: holdfast scheduler distribution",
)  # fmt: skip


@app_command.command()
def metrics(json: AsJson = False, home: Home = None) -> None:
    """Count jobs by state, and how the runs of the last 24 hours went.

    Example: holdfast scheduler metrics --json
    """
    with open_jobs(config.load(home=home)) as jobs, jobs.database.read() as session:
        found = count_metrics(session, now=jobs.clock.now(), last_check_at=last_scheduled_at(session))
    if json:
        print(dumps(metrics_shape(found)))
        return
    print(fields([(state, count) for state, count in found.jobs.items()]))
    average = found.average_duration_ms / 1000
    print(f"{counted(found.executions_total, 'run')} in all, {found.stale_locks_cleared} stale locks cleared")
    print(f"the last 24 hours: {found.success_rate:.0%} good, {average:.1f} s on average")
    for warning in found.warnings():
        print(f"warning: {warning}")


@app_command.command()
def distribution(json: AsJson = False, home: Home = None) -> None:
    """Show how the runs of the coming 24 hours are spread over its hours (UTC), and how even that is.

    Example: holdfast scheduler distribution
    """
    with open_jobs(config.load(home=home)) as jobs, jobs.database.read() as session:
        found = show_distribution(session, now=jobs.clock.now())
    if json:
        print(dumps(distribution_shape(found)))
        return
    widest = max(found.peak_count, 1)
    for hour, count in enumerate(found.hours):
        print(f"{hour:02d}:00  {count:>6}  {'#' * round(40 * count / widest)}".rstrip())
    print(f"{counted(found.total_jobs, 'job')}, score {found.score:.2f}"
          + ("; a rebalance is advised: holdfast scheduler preview" if found.rebalance_advised else ""))  # fmt: skip


@app_command.command()
def preview(json: AsJson = False, home: Home = None) -> None:
    """Say what a rebalance would do: every scheduled job as moved or skipped, with its reason.

    Example: holdfast scheduler preview
    """
    with open_jobs(config.load(home=home)) as jobs, jobs.database.read() as session:
        plan = preview_rebalance(session, now=jobs.clock.now())
    _print(plan, applied=False, json=json)


@app_command.command()
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
                audit.record(session, jobs.clock, action="scheduler.rebalanced", subject="scheduler",
                             detail={"moved": len(done.moved), "skipped": len(done.skipped)})  # fmt: skip
        else:
            with jobs.database.read() as session:
                done = preview_rebalance(session, now=now)
    _print(done, applied=apply, json=json)


def _print(plan: Rebalance, *, applied: bool, json: bool) -> None:
    if json:
        print(dumps({**rebalance_shape(plan), "applied": applied}))
        return
    rows: list[tuple[object, ...]] = [
        (one.job_id, "moved" if applied else "would move", one.old_time, one.new_time) for one in plan.moved
    ]
    rows += [(one.job_id, f"stays: {one.reason}", None, None) for one in plan.skipped]
    if rows:
        print(table(("job", "what", "from", "to"), rows))
    print(f"{len(plan.moved)} moved, {len(plan.skipped)} stay, score {plan.score:.2f}"
          + ("" if applied or not plan.moved else "; nothing was written, add --apply to rebalance"))  # fmt: skip


@app_command.command()
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
    configure_log(settings, unless_set="ERROR", as_json=False)  # what went wrong is told below, once
    minutes = interval_minutes or settings.jobs.auto_interval_minutes
    with open_jobs(settings) as jobs:
        done = sync_in_portions(jobs.database.write, jobs.clock, jobs.board, interval_minutes=minutes)
    if json:
        print(dumps(sync_shape(done)))
    else:
        print(f"{counted(done.sources_seen, 'source')}, {done.sources_enabled} enabled: {len(done.created)} jobs made, "
              f"{done.already_has_job} had one, {done.resumed} resumed")  # fmt: skip
    for code, error in done.errors.items():
        typer.echo(f"{code}: {error}", err=True)
    if done.errors:
        raise typer.Exit(1)
