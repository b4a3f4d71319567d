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
from holdfast.cli.contact import find_contact
from holdfast.cli.index_job import read_executions
from holdfast.cli.job_words import KINDS
from holdfast.cli.options import Apply, AsJson, Home
from holdfast.cli.wording import counted
from holdfast.coordination.owners import Owner
from holdfast.coordination.runfile import RunFile
from holdfast.errors import Unavailable
from holdfast.jobs.indexing import steps
from holdfast.jobs.schedule.queries import Silence, stale_held
from holdfast.wiring import open_ground
from holdfast.wiring.jobs import open_jobs
from holdfast.worker.census import dead_holders
from holdfast.worker.loop import Duty, Report, Roster, work
from holdfast.worker.roster import CHORES, RUNNERS
from holdfast.worker.stops import obeying_signals

_MOST = 10_000
_log = log.get()

app_command = typer.Typer(
    add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None, no_args_is_help=True,
    help="What runs jobs, queues them, and clears up after those that fell silent. Example: holdfast worker start",
)  # fmt: skip


@app_command.command()
def start(
    once: Annotated[bool, typer.Option("--once", help="Run what is due now, index and compare it, then end.")] = False,
    poll_interval: Annotated[
        float | None, typer.Option("--poll-interval", min=0.05, help="Seconds between two looks for work.")
    ] = None,
    concurrency: Annotated[int | None, typer.Option(min=1, max=64, help="Executions to run at once.")] = None,
    kinds: Annotated[
        list[str] | None, typer.Option("--kinds", help=f"Only jobs of these kinds ({', '.join(KINDS)}).")
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
    log.configure(settings.log_level, as_json=not sys.stderr.isatty())
    settings = config.load(home=home, contact=find_contact(settings, None))
    duty = Duty(
        once=once, poll_s=poll_interval if poll_interval is not None else settings.jobs.poll_s,
        concurrency=concurrency or settings.worker.concurrency, kinds=wanted, schedules=scheduler,
    )  # fmt: skip
    with obeying_signals() as stops:
        report = work(settings, duty, stops, Roster(RUNNERS, CHORES))
    print(jsonlib.dumps(_facts(report))) if json else _describe(report)
    if once and (report.low_disk or report.chore_errors):
        raise typer.Exit(1)


def _kinds(given: list[str]) -> tuple[str, ...] | None:
    kinds = [kind.strip() for one in given for kind in one.split(",") if kind.strip()]
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        raise typer.BadParameter(f"{unknown[0][:40]!r} is none of {', '.join(KINDS)}", param_hint="--kinds")
    return tuple(kinds) or None


def _facts(report: Report) -> dict[str, Any]:
    return {
        "executions": report.executions, "endings": dict(report.endings), "low_disk": report.low_disk,
        "chore_errors": report.chore_errors,
    }  # fmt: skip


def _describe(report: Report) -> None:
    endings = ", ".join(f"{count} {word}" for word, count in sorted(report.endings.items())) or "nothing was due"
    typer.echo(f"{counted(len(report.executions), 'run')}: {endings}")
    if report.low_disk:
        typer.echo("something waits that was not begun: the disk is too full; see: holdfast status", err=True)
    for name, error in report.chore_errors.items():
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
    with obeying_signals() as stops, open_ground(settings) as ground, open_jobs(settings) as jobs:
        jobs.scheduler.start(dead_owners=dead_holders(ground, jobs.database))
        owner = Owner(ground.hot, ground.clock, run=RunFile(ground.run_folder), kind="scheduler", execution_id=None)

        def beat() -> None:
            with ground.hot.write() as tx:
                owner.beat(tx)

        try:
            jobs.scheduler.run(stops, on_tick=beat)
        finally:
            with suppress(Unavailable):  # then the next start buries us
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
    """Index completed executions that were crawled outside a worker and have WARC files.

    Example: holdfast reconcile-completed-indexing --apply
    """
    settings = config.load(home=home)
    with open_jobs(settings) as jobs:
        found = steps.find_unindexed(jobs.database, _has_files, limit=limit)
        asked: list[int] = []
        for one in found if apply else ():
            with suppress(steps.NotIndexable), jobs.database.write() as session:  # unless it was asked for meanwhile
                steps.ask_again(session, one.execution_id, now=jobs.clock.now())
                asked.append(one.execution_id)
    errors = read_executions(settings, asked, quiet=json) if now else []
    if json:
        rows = [{"execution": one.execution_id, "source": one.source, "kind": one.kind, "files": one.files}
                for one in found]  # fmt: skip
        told = {
            "unindexed": rows,
            "asked": len(asked),
            "indexed": len(asked) - len(errors) if now else 0,
            "errors": errors,
            "applied": apply,
        }
        print(jsonlib.dumps(told))
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
