"""`holdfast scheduler`: how scheduled runs are spread and how they went; a rebalance is previewed unless --apply."""

from __future__ import annotations

import json as jsonlib
from typing import Annotated, Any

import typer

from holdfast import config, log
from holdfast.cli.options import AsJson, Home
from holdfast.cli.tables import fields, table
from holdfast.jobs.following import sync_in_portions
from holdfast.jobs.metrics import count_metrics
from holdfast.jobs.placement import preview_rebalance, show_distribution
from holdfast.jobs.placement import rebalance as do_rebalance
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
        found = count_metrics(session, now=jobs.clock.now(), last_check_at=None)
    if json:
        print(jsonlib.dumps({
            "jobs": found.jobs,
            "executions": {"total": found.executions_total, "average_duration_ms": found.average_duration_ms,
                           "success_rate": found.success_rate},
            "stale_locks_cleared": found.stale_locks_cleared, "warnings": found.warnings(),
            "last_metrics_update": found.last_metrics_update.isoformat(),
        }))  # fmt: skip
        return
    print(fields([(state, count) for state, count in found.jobs.items()]))
    average = found.average_duration_ms / 1000
    print(
        f"{found.executions_total:,} runs in all; the last 24 hours: {found.success_rate:.0%} good, "
        f"{average:.1f} s on average; {found.stale_locks_cleared} stale locks cleared"
    )
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
        print(jsonlib.dumps({
            "window_hours": found.window_hours, "slot_minutes": found.slot_minutes, "total_jobs": found.total_jobs,
            "hourly_distribution": [{"hour": hour, "job_count": count} for hour, count in enumerate(found.hours)],
            "distribution_score": found.score, "peak_hour": found.peak_hour, "peak_count": found.peak_count,
            "rebalance_advised": found.rebalance_advised,
        }))  # fmt: skip
        return
    widest = max(found.peak_count, 1)
    for hour, count in enumerate(found.hours):
        print(f"{hour:02d}:00  {count:>6}  {'#' * round(40 * count / widest)}".rstrip())
    print(f"{found.total_jobs} jobs, score {found.score:.2f}"
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
    apply: Annotated[bool, typer.Option("--apply", help="Do it; without this, only say what would be done.")] = False,
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
        else:
            with jobs.database.read() as session:
                done = preview_rebalance(session, now=now)
    _print(done, applied=apply, json=json)


def _print(plan: Rebalance, *, applied: bool, json: bool) -> None:
    if json:
        told: dict[str, Any] = {
            "moved": [{"job_id": one.job_id, "old_time": one.old_time.isoformat(), "new_time": one.new_time.isoformat()}
                      for one in plan.moved],
            "skipped": [{"job_id": one.job_id, "reason": one.reason.value} for one in plan.skipped],
            "new_distribution_score": plan.score, "applied": applied,
        }  # fmt: skip
        print(jsonlib.dumps(told))
        return
    rows = [(one.job_id, "moved" if applied else "would move", one.old_time, one.new_time) for one in plan.moved]
    rows += [(one.job_id, f"stays: {one.reason}", None, None) for one in plan.skipped]  # type: ignore[misc]
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

    Example: holdfast sync-enabled-sources
    """
    settings = config.load(home=home)
    log.configure("ERROR", as_json=False)  # what went wrong is told below, once
    minutes = interval_minutes or settings.jobs.auto_interval_minutes
    with open_jobs(settings) as jobs:
        done = sync_in_portions(jobs.database.write, jobs.clock, jobs.board, interval_minutes=minutes)
    if json:
        print(jsonlib.dumps({
            "sources_seen": done.sources_seen, "sources_enabled": done.sources_enabled, "created": len(done.created),
            "created_for": done.created, "already_has_job": done.already_has_job, "resumed": done.resumed,
            "skipped_disabled": done.skipped_disabled, "errors": done.errors,
        }))  # fmt: skip
    else:
        print(f"{done.sources_seen} sources, {done.sources_enabled} enabled: {len(done.created)} jobs made, "
              f"{done.already_has_job} had one, {done.resumed} resumed")  # fmt: skip
    for code, error in done.errors.items():
        typer.echo(f"{code}: {error}", err=True)
    if done.errors:
        raise typer.Exit(1)
