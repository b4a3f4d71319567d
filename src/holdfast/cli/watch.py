"""`holdfast watch`: long-running unattended crawls: their progress, recovery of stalled ones, metrics."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast.cli.formatting import table
from holdfast.cli.job_selector import RUN
from holdfast.cli.parameters import Apply, OfSource, command_group, read_codes
from holdfast.cli.printing import picked
from holdfast.cli.resource import Done, Reading, command
from holdfast.errors import HoldfastError
from holdfast.jobs.administration import maintenance
from holdfast.jobs.administration.actions import patch_zimit
from holdfast.jobs.alerts import alert_record, list_alerts
from holdfast.jobs.specs import effective_config
from holdfast.jobs.views.timeseries import DEFAULT_HOURS, STEPS_S, read_series
from holdfast.metrics import textfile
from holdfast.operations.crawl_watchdog import (
    RESTARTS,
    RecoveryCase,
    WatchedRun,
    is_deploying,
    read_figures,
    recover,
    watch_runs,
    write_textfile,
)
from holdfast.operations.storage_watchdog import StorageWatchdog
from holdfast.sources.queries import find_source, source_id_of
from holdfast.wiring.jobs import Jobs, check_backend, open_jobs
from holdfast.zimit.flags import below_minimum

_LISTED = 200
_WATCHED = (
    "annual=is_annual pages=activity.pages pages_per_minute=activity.pages_per_minute running_s=activity.running_s "
    "idle_s=activity.idle_s state_file_ok=state_ok container_restarts=restarts errors log tool_pid=holder "
    "lock_owner=run.job.lock_owner"
)
_DEPLOYING = "a deploy.lock asks for quiet: nothing was done"
app_command = command_group(
    "Crawls that run for weeks: status, recover, storage, metrics. Example: holdfast watch status"
)
_command = partial(command, app_command, opened=open_jobs)


@_command(example="watchdog-status --json")
def status(jobs: Jobs) -> Done:
    """Show every crawl that runs: its pace, how long it has been idle, its tool; exit 1 if one is stalled."""
    stalled_s, deploying = jobs.settings.recovery.stalled_s, is_deploying(jobs.settings, jobs.clock)
    found = [{**watched_facts(one), "stalled": one.activity.idle_s >= stalled_s} for one in watch_runs(jobs)]
    names = ("job", "source", "backend", "pages", "pages_per_minute", "idle_s", "container_restarts", "tool_pid")
    rows = [
        [
            *(round(one[name], 1) if isinstance(one[name], float) else one[name] for name in names),
            "STALLED" if one["stalled"] else "paused" if one["paused"] else "",
        ]
        for one in found
    ]
    lines = [table([*(name.replace("_", " ") for name in names), ""], rows)] if rows else []
    lines.append(f"{len(found)} crawls run")
    lines += ["a deploy.lock asks for quiet: auto-recover does nothing"] if deploying else []
    # For timers, the exit code alone shows whether a person has to look.
    is_well = not any(one["stalled"] for one in found)
    return Done({"deploying": deploying, "crawls": found}, lines, is_well)


def watched_facts(one: WatchedRun) -> dict[str, Any]:
    """Return a watched crawl for `--json`."""
    execution = one.run.execution
    backend, is_paused = execution.config.get("backend", "native"), execution.paused_at is not None
    return {**picked(one.run, RUN), "backend": backend, "paused": is_paused, **picked(one, _WATCHED)}


@_command("recover", example="auto-recover --apply")
def recover_stalled(jobs: Jobs, apply: Apply = False) -> Done:
    """Restart crawls that are stalled, or of zimit and slow for long, where they stopped, with options that they lack.

    Restarts are limited per day; none if earlier ones were in vain, or while a deploy.lock pauses recovery. Run
    it from a timer, on the machine of the worker.
    """
    found = recover(jobs, apply=apply)
    cases, woken = found or ([], [])
    lines = [_DEPLOYING] if found is None else []
    lines += [_line(case, apply=apply) for case in cases]
    lines += [f"job {job_id}: its backoff is cut short, too few run" for job_id in woken]
    crawls = [{**watched_facts(case.watched), **picked(case, "action reason raised done")} for case in cases]
    facts = {"deploying": found is None, "woken": woken, "crawls": crawls}
    return Done(facts, lines or ["nothing to do"])


def _line(case: RecoveryCase, *, apply: bool) -> str:
    run = case.watched.run
    line = f"job {run.job.id} ({run.source.code}): {case.action.value}, {case.reason}"
    if case.raised:
        line += f", raising {', '.join(f'{name}={value}' for name, value in case.raised.items())}"
    if apply and case.action in RESTARTS and not case.done:
        line += "; its tool is not on this machine, or it has ended"
    return line


@_command("storage", example="storage-watchdog --apply")
def watch_storage(jobs: Jobs, apply: Apply = False) -> Done:
    """Check that the paths that jobs write to respond; one that is dead (errno 107, or it hangs) is freed.

    Its runs end as infra_error, tools stuck on it are requested to stop, and HOLDFAST_STORAGE_UNMOUNT_COMMAND and
    HOLDFAST_STORAGE_MOUNT_COMMAND are run, if they are set: at the second check, after two minutes, with 15 minutes
    between, twice an hour, six times a day, three times a day for a job. Run it from a timer; exit 1 if a path is
    dead.
    """
    found = StorageWatchdog(jobs).look(apply=apply)
    lines = [_DEPLOYING] if found.deploying else []
    for case in found.dead:
        lines.append(f"{case.describe()}: {case.reason} (jobs {', '.join(map(str, case.jobs))})")
        lines += [f"  {step.step}: {'done' if step.ok else 'FAILED'}: {step.said}" for step in case.steps]
    lines.append(f"{len(found.looked_at)} paths looked at, {len(found.dead)} dead")
    return Done(found, lines, found.is_well)


@_command(example="metrics-textfile --out /var/lib/node_exporter/holdfast.prom")
def metrics(
    jobs: Jobs,
    out: Annotated[Path | None, typer.Option(help="Write here, whole or not at all; else print it.")] = None,
) -> Done:
    """Write metrics of running crawls, of jobs and of the disk for a node exporter's textfile collector."""
    figures = read_figures(jobs)
    data = textfile(*figures) if out is None else write_textfile(out, *figures)
    samples = [sample for one in figures for family in one.collect() for sample in family.samples]
    report = [{"name": one.name, "labels": one.labels, "value": one.value} for one in samples]
    facts = {"path": out, "bytes": len(data), "figures": report}
    return Done(facts, data.decode().removesuffix("\n") if out is None else "")


@_command(example="watch alerts --json")
def alerts(
    session: Reading, every: Annotated[bool, typer.Option("--all", help="Also those that are resolved.")] = False
) -> Done:
    """Show current problems, as crawls and workers are judged twice a minute; exit 1 if there is one."""
    rows = list_alerts(session, is_firing=None if every else True, before=None, limit=_LISTED)
    found = [alert_record(row) for row in rows]
    lines = [
        (f"resolved {one.resolved_at:%Y-%m-%d %H:%M}" if one.resolved_at else "FIRING")
        + f"  {one.name} since {one.since:%Y-%m-%d %H:%M}: {one.message}"
        for one in found
    ]
    firing = sum(one.resolved_at is None for one in found)
    return Done({"alerts": found}, [*lines, f"{firing} alerts fire"], not firing)


@_command(example="watch series --hours 6 --step 900")
def series(
    jobs: Jobs,
    session: Reading,
    hours: Annotated[int, typer.Option(min=1, max=43_800, help="How far back.")] = DEFAULT_HOURS,
    step: Annotated[int | None, typer.Option(help=f"Seconds of a point: {', '.join(map(str, STEPS_S))}.")] = None,
    execution: Annotated[int | None, typer.Option(min=1, help="Only this execution.")] = None,
    source: OfSource = None,
) -> Done:
    """Show crawl figures over time: pages, failures, bytes, requests, retries and the queue of each step."""
    if step is not None and step not in STEPS_S:
        raise typer.BadParameter(f"expected one of: {', '.join(map(str, STEPS_S))}", param_hint="--step")
    source_id_of(session, source)
    found = read_series(session, jobs.clock, hours=hours, step_s=step, execution_id=execution, source=source)
    columns = (found.pages_crawled, found.pages_failed, found.bytes_downloaded, found.requests, found.retries)
    rows = zip(found.timestamps, *columns, found.queue, strict=True)
    head = ("from", "pages", "failed", "bytes", "requests", "retries", "queue")
    # Print only hours with events: most of a day is quiet.
    return Done(found, table(head, [(f"{at:%Y-%m-%d %H:%M}", *row) for at, *row in rows if any(row)]))


@_command("reconcile-options", example="reconcile-annual-tool-options --year 2026 --apply")
def reconcile(
    jobs: Jobs,
    year: Annotated[int, typer.Option(min=1970, max=2100, help="The campaign's year.")],
    sources: Annotated[list[str] | None, typer.Option(help="Only these codes; repeatable.")] = None,
    apply: Apply = False,
) -> Done:
    """Raise the tool options of a year's annual jobs to their minimums; a running job is only reported."""
    codes, check = read_codes(sources), check_backend(jobs.settings)
    rows: list[dict[str, Any]] = []
    with jobs.database.read() as session:
        for code in codes:
            find_source(session, code)
        found = maintenance.annual_jobs(session, year=year, sources=codes)
    for job, source in found:
        raised = below_minimum(effective_config(job, source).zimit.tool_options, annual=True)
        row: dict[str, Any] = {"job": job.id, "name": job.name, "source": source.code, "raised": raised}
        try:
            if raised:
                with jobs.database.write() as session:
                    patch_zimit(session, jobs.clock, job.id, {"tool_options": raised}, check=check, apply=apply)
        # Report a running job and leave it unchanged; still raise the others.
        except HoldfastError as exc:
            row["skipped"] = str(exc)
        rows.append(row)
    lines = []
    for row in rows:
        report = ", ".join(f"{name}={value}" for name, value in row["raised"].items()) or "as it should be"
        lines.append(f"job {row['job']} ({row['source']}): {row.get('skipped') or report}")
    return Done({"year": year, "jobs": rows}, [*lines, f"{len(rows)} annual jobs of {year}"])
