"""`holdfast watch`: crawls that run by themselves for weeks: how they get on, help for those that do not, figures."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast import config
from holdfast.cli.formatting import dumps, table
from holdfast.cli.parameters import Apply, AsJson, Home
from holdfast.cli.storage import dry_run
from holdfast.errors import HoldfastError
from holdfast.jobs.administration import maintenance
from holdfast.jobs.administration.actions import patch_zimit
from holdfast.jobs.administration.recovering import RESTARTS
from holdfast.jobs.alert_queries import list_alerts
from holdfast.jobs.specs import effective_config
from holdfast.jobs.views.timeseries import DEFAULT_HOURS, STEPS_S, SeriesQuestion, read_series, series_columns
from holdfast.metrics import textfile
from holdfast.operations.crawl_watchdog import (
    Recovered,
    RecoveryCase,
    WatchedRun,
    is_deploying,
    lacking,
    read_figures,
    recover,
    watch_runs,
    write_textfile,
)
from holdfast.operations.storage_watchdog import PathCase, StorageWatchdog
from holdfast.sources.queries import find_source
from holdfast.wiring.jobs import check_backend, open_jobs

_LISTED = 200

app_command = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Crawls that run for weeks: status, recover, storage, metrics. Example: holdfast watch status",
)


@app_command.command()
def status(json: AsJson = False, home: Home = None) -> None:
    """Show every crawl that runs: its pace, since when nothing moved, who holds it; exit 1 if one is stalled.

    Example: holdfast watchdog-status --json
    """
    with open_jobs(config.load(home=home)) as jobs:
        stalled_s = jobs.settings.recovery.stalled_s
        deploying = is_deploying(jobs.settings, jobs.clock)
        watched_runs = watch_runs(jobs)
    found = [{**watched_facts(one), "stalled": one.activity.idle_s >= stalled_s} for one in watched_runs]
    if json:
        print(jsonlib.dumps({"deploying": deploying, "crawls": found}))
    else:
        _print_status(found, deploying=deploying)
    # For timers: the exit code alone says whether a person has to look.
    if any(one["stalled"] for one in found):
        raise typer.Exit(1)


def _print_status(found: list[dict[str, Any]], *, deploying: bool) -> None:
    if found:
        head = ("job", "source", "backend", "pages", "a minute", "idle s", "restarts", "tool", "")
        print(
            table(
                head,
                [
                    (
                        one["job"],
                        one["source"],
                        one["backend"],
                        one["pages"],
                        _rate(one["pages_per_minute"]),
                        round(one["idle_s"]),
                        one["container_restarts"],
                        one["tool_pid"],
                        "STALLED" if one["stalled"] else "paused" if one["paused"] else "",
                    )
                    for one in found
                ],
            )
        )
    print(f"{len(found)} crawls run")
    if deploying:
        print("a deploy.lock asks for quiet: auto-recover does nothing")


def _rate(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:.1f}"


def watched_facts(one: WatchedRun) -> dict[str, Any]:
    """Return what is seen of a crawl for `--json`."""
    return {
        "job": one.run.job.id,
        "execution": one.run.execution.id,
        "source": one.run.source.code,
        "backend": one.run.execution.config.get("backend", "native"),
        "annual": one.is_annual,
        "pages": one.activity.pages,
        "pages_per_minute": one.activity.pages_per_minute,
        "running_s": one.activity.running_s,
        "idle_s": one.activity.idle_s,
        "paused": one.run.execution.paused_at is not None,
        "state_file_ok": one.state_ok,
        "container_restarts": one.restarts,
        "errors": one.errors,
        "log": one.log,
        "tool_pid": one.holder.pid if one.holder else None,
        "lock_owner": one.run.job.lock_owner,
    }


@app_command.command("recover")
def recover_stalled(apply: Apply = False, json: AsJson = False, home: Home = None) -> None:
    """Restart crawls that are stalled, or of zimit and slow for long, where they stopped, with options that they lack.

    At most so often a day, not where it was in vain, not while a deploy.lock asks for quiet (HOLDFAST_RECOVERY_*). Run
    it from a timer, on the machine of the worker.

    Example: holdfast auto-recover --apply
    """
    with open_jobs(config.load(home=home)) as jobs:
        found = recover(jobs, apply=apply)
    if json:
        print(jsonlib.dumps(_recovered(found, applied=apply)))
        return
    if found.deploying:
        print("a deploy.lock asks for quiet: nothing was done")
    for case in found.cases:
        print(_line(case, apply=apply))
    for job_id in found.woken:
        print(f"job {job_id}: its backoff is cut short, too few run")
    if not found.cases and not found.woken and not found.deploying:
        print("nothing to do")
    dry_run(apply, json=json)


def _line(case: RecoveryCase, *, apply: bool) -> str:
    run, decision = case.watched.run, case.decision
    line = f"job {run.job.id} ({run.source.code}): {decision.action.value}, {decision.reason}"
    if case.raised:
        line += f", raising {', '.join(f'{name}={value}' for name, value in case.raised.items())}"
    if apply and decision.action in RESTARTS and not case.done:
        line += "; its tool is not on this machine, or it has ended"
    return line


def _recovered(found: Recovered, *, applied: bool) -> dict[str, Any]:
    return {
        "applied": applied,
        "deploying": found.deploying,
        "woken": list(found.woken),
        "crawls": [
            {
                **watched_facts(case.watched),
                "action": case.decision.action.value,
                "reason": case.decision.reason,
                "raised": case.raised,
                "done": case.done,
            }
            for case in found.cases
        ],
    }


@app_command.command("storage")
def watch_storage(apply: Apply = False, json: AsJson = False, home: Home = None) -> None:
    """Ask the paths that jobs write to whether they answer; one that is dead (errno 107, or it hangs) is freed.

    Its runs end as infra_error, tools that hang on it are asked to end, and HOLDFAST_STORAGE_UNMOUNT_COMMAND and
    HOLDFAST_STORAGE_MOUNT_COMMAND are run, if they are set: at the second look, after two minutes, with 15 minutes
    between, twice an hour, six times a day, three times a day for a job. Run it from a timer; exit 1 if a path is dead.

    Example: holdfast storage-watchdog --apply
    """
    with open_jobs(config.load(home=home)) as jobs:
        found = StorageWatchdog(jobs=jobs).look(apply=apply)
    if json:
        print(
            dumps(
                {
                    "applied": apply,
                    "deploying": found.deploying,
                    "looked_at": list(found.looked_at),
                    "dead": [_path_facts(case) for case in found.cases],
                }
            )
        )
    else:
        if found.deploying:
            print("a deploy.lock asks for quiet: nothing was done")
        for case in found.cases:
            print(f"{case.describe()}: {case.decision.reason} (jobs {', '.join(str(run.job.id) for run in case.runs)})")
            for step in case.steps:
                print(f"  {step.name}: {'done' if step.ok else 'FAILED'}: {step.said}")
        print(f"{len(found.looked_at)} paths looked at, {len(found.cases)} dead")
        dry_run(apply, json=json)
    if not found.is_well:
        raise typer.Exit(1)


def _path_facts(case: PathCase) -> dict[str, Any]:
    return {
        "path": str(case.path),
        "mount": case.is_mount,
        "health": case.probe.health.value,
        "errno": case.probe.errno,
        "jobs": [run.job.id for run in case.runs],
        "acted_for": list(case.decision.jobs),
        "reason": case.decision.reason,
        "healed": case.healed,
        "steps": [{"step": step.name, "ok": step.ok, "said": step.said} for step in case.steps],
    }


@app_command.command()
def metrics(
    out: Annotated[Path | None, typer.Option("--out", help="Write here, whole or not at all; else print it.")] = None,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Write figures of running crawls, of jobs and of the disk for a node exporter's textfile collector.

    Example: holdfast metrics-textfile --out /var/lib/node_exporter/holdfast.prom
    """
    with open_jobs(config.load(home=home)) as jobs:
        figures = read_figures(jobs)
        data = textfile(*figures) if out is None else write_textfile(out, *figures)
    if json:
        report = [
            {"name": sample.name, "labels": sample.labels, "value": sample.value}
            for one in figures
            for family in one.collect()
            for sample in family.samples
        ]
        print(dumps({"path": out, "bytes": len(data), "figures": report}))
    elif out is None:
        print(data.decode(), end="")


@app_command.command()
def alerts(
    every: Annotated[bool, typer.Option("--all", help="Also those that are resolved.")] = False,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Show what is wrong now, as crawls and workers are judged twice a minute; exit 1 if something is.

    Example: holdfast watch alerts --json
    """
    with open_jobs(config.load(home=home)) as jobs, jobs.database.read() as session:
        rows = list_alerts(session, is_firing=None if every else True, before=None, limit=_LISTED)
        found = [
            {
                "name": row.name,
                "severity": row.severity,
                "since": row.since,
                "last_seen_at": row.last_seen_at,
                "resolved_at": row.resolved_at,
                "value": row.value,
                "message": row.message,
            }
            for row in rows
        ]
    if json:
        print(dumps({"alerts": found}))
    else:
        for one in found:
            state = f"resolved {one['resolved_at']:%Y-%m-%d %H:%M}" if one["resolved_at"] else "FIRING"
            print(f"{state}  {one['name']} since {one['since']:%Y-%m-%d %H:%M}: {one['message']}")
        print(f"{sum(one['resolved_at'] is None for one in found)} alerts fire")
    if any(one["resolved_at"] is None for one in found):
        raise typer.Exit(1)


@app_command.command()
def series(
    hours: Annotated[int, typer.Option("--hours", min=1, max=43_800, help="How far back.")] = DEFAULT_HOURS,
    step: Annotated[
        int | None, typer.Option("--step", help=f"Seconds of a point: {', '.join(map(str, STEPS_S))}.")
    ] = None,
    execution: Annotated[int | None, typer.Option("--execution", min=1, help="Only this execution.")] = None,
    source: Annotated[str | None, typer.Option("--source", help="Only this source's code.")] = None,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Show what crawls did over time: pages, failures, bytes, requests, retries and the queue of each step.

    Example: holdfast watch series --hours 6 --step 900
    """
    if step is not None and step not in STEPS_S:
        raise typer.BadParameter(f"it is none of {', '.join(map(str, STEPS_S))}", param_hint="--step")
    asked = SeriesQuestion(hours=hours, step_s=step, execution_id=execution, source=source)
    with open_jobs(config.load(home=home)) as jobs, jobs.database.read() as session:
        if source is not None:
            find_source(session, source)
        found = read_series(session, jobs.clock, jobs.settings.jobs, asked)
    columns = series_columns(found.points)
    if json:
        print(dumps({"from": found.since, "to": found.until, "step_seconds": found.step_s, **columns}))
        return
    shown = ("pages_crawled", "pages_failed", "bytes_downloaded", "requests", "retries", "queue")
    rows = zip(columns["timestamps"], *(columns[name] for name in shown), strict=True)
    head = ("from", "pages", "failed", "bytes", "requests", "retries", "queue")
    # Only where something happened: most of a day is quiet.
    print(table(head, [(f"{at:%Y-%m-%d %H:%M}", *row) for at, *row in rows if any(row)]))


@app_command.command("reconcile-options")
def reconcile(
    year: Annotated[int, typer.Option("--year", min=1970, max=2100, help="The campaign's year.")],
    sources: Annotated[list[str] | None, typer.Option("--sources", help="Only these codes; repeatable.")] = None,
    apply: Apply = False,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Raise the tool options of a year's annual jobs to their minima; a job that runs is told, and left alone.

    Example: holdfast reconcile-annual-tool-options --year 2026 --apply
    """
    settings = config.load(home=home)
    codes = [code.strip() for one in sources or [] for code in one.split(",") if code.strip()]
    rows: list[dict[str, Any]] = []
    with open_jobs(settings) as jobs:
        with jobs.database.read() as session:
            for code in codes:
                find_source(session, code)
            found = maintenance.annual_jobs(session, year=year, sources=codes)
        for job, source in found:
            raised = lacking(effective_config(job, source).zimit.tool_options, annual=True)
            row: dict[str, Any] = {"job": job.id, "name": job.name, "source": source.code, "raised": raised}
            try:
                if raised:
                    with jobs.database.write() as session:
                        patch_zimit(
                            session,
                            jobs.clock,
                            job.id,
                            {"tool_options": raised},
                            check=check_backend(settings),
                            apply=apply,
                        )
            # A job that runs is told and left alone; the others are raised all the same.
            except HoldfastError as exc:
                row["skipped"] = str(exc)
            rows.append(row)
    if json:
        print(jsonlib.dumps({"year": year, "applied": apply, "jobs": rows}))
    else:
        for row in rows:
            report = ", ".join(f"{name}={value}" for name, value in row["raised"].items()) or "as it should be"
            print(f"job {row['job']} ({row['source']}): {row.get('skipped') or report}")
        print(f"{len(rows)} annual jobs of {year}")
        dry_run(apply, json=json)
