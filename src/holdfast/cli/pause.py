"""`holdfast pause` and `holdfast resume`: a run under way waits, and goes on where it was."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from sqlalchemy.orm import Session

from holdfast import config
from holdfast.cli.formatting import dumps, duration
from holdfast.cli.parameters import AsJson, Home
from holdfast.clock import Clock
from holdfast.errors import NotFound
from holdfast.jobs.administration.run_pausing import (
    NotPausable,
    PausedRun,
    pause_run,
    resume_run,
    runs_under_way,
)
from holdfast.jobs.views.status import is_abandoned, read_status
from holdfast.wiring import open_runtime
from holdfast.wiring.jobs import open_jobs

Runs = Annotated[list[int] | None, typer.Argument(help="Executions' numbers; all that it can be done to if left out.")]
Deed = Callable[[Session, Clock, int], PausedRun]


def pause(execution: Runs = None, json: AsJson = False, home: Home = None) -> None:
    """Let crawls that run wait: pages under way are finished and kept, then nothing is asked until `holdfast resume`.

    They hear of it within a second, on whatever machine, and stay paused when a worker is started anew. Time limits
    stand still meanwhile; `holdfast stop` works as ever. To let the next runs of a job wait: holdfast job pause.
    Acts at once, also on all runs: nothing is lost by it.

    Example: holdfast pause 3
    """
    _each(pause_run, execution, are_paused=False, json=json, home=home)


def resume(execution: Runs = None, json: AsJson = False, home: Home = None) -> None:
    """Let paused crawls go on where they were. Acts at once: nothing is lost by it.

    A job's run that was stopped is named by its number: the job's next run goes on with what it left.

    Example: holdfast resume 3
    """
    _each(resume_run, execution, are_paused=True, json=json, home=home)


def _each(deed: Deed, wanted: list[int] | None, *, are_paused: bool, json: bool, home: Path | None) -> None:
    done, refused = [], []
    with open_jobs(config.load(home=home)) as jobs:
        with jobs.database.read() as session:
            numbers = wanted or runs_under_way(session, are_paused=are_paused)
        for number in numbers:
            try:
                with jobs.database.write() as session:
                    done.append(deed(session, jobs.clock, number))
            except (NotPausable, NotFound) as exc:
                # Of several each is tried: one that cannot wait, or is not there, must not keep the others from it.
                if len(numbers) == 1:
                    raise
                refused.append(str(exc))
    if not numbers:
        none = "no execution is paused" if are_paused else "no execution runs that is not paused already"
        raise NotFound(f"{none}; see them with: holdfast status")
    if json:
        print(dumps({"executions": [one._asdict() for one in done], "refused": refused}))
    idle = set() if json else _unheld(done, home)
    for one in () if json else done:
        print(_sentence(one, is_held=one.execution_id not in idle))
    for message in () if json else refused:
        print(message, file=sys.stderr)
    # Of all runs, those that cannot wait are left alone; what was named was to be done.
    if not done or (wanted and refused):
        raise typer.Exit(1)


def _unheld(done: list[PausedRun], home: Path | None) -> set[int]:
    """Return those of the runs that were let go on that nothing works on: handed back, or left by their processes."""
    resumed = [one.execution_id for one in done if one.is_changed and one.paused_at is None]
    if not resumed:
        return set()
    with open_runtime(config.load(home=home)) as runtime:
        return {
            number
            for number in resumed
            if read_status(runtime.raw_db, runtime.clock, number).state == "queued"
            or is_abandoned(runtime.raw_db, runtime.clock, number, folder=runtime.run_folder)
        }


def _sentence(one: PausedRun, *, is_held: bool) -> str:
    run = f"execution {one.execution_id}"
    if one.paused_at is not None:
        since = "" if one.is_changed else f" since {one.paused_at:%Y-%m-%d %H:%M} UTC by {one.paused_by}"
        return f"{run} is paused{since}; go on with: holdfast resume {one.execution_id}"
    if not one.is_changed:
        return f"{run} is not paused"
    if one.was_stopped:
        return f"{run} was stopped; the next run of its job goes on with it as soon as a worker is free"
    paused = f"after {duration(one.paused_seconds)}"
    if is_held:
        return f"{run} goes on {paused}"
    return f"{run} is paused no more, {paused}; it goes on as soon as a worker, or the same crawl command, takes it up"


app_command = pause
resume_command = resume
