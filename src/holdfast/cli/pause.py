"""`holdfast pause` and `holdfast resume`: pause a running execution, and resume it where it stopped."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.formatting import duration
from holdfast.cli.printing import Done, runnable
from holdfast.errors import NotFound
from holdfast.jobs.administration.run_pausing import NotPausable, PausedRun, pause_run, resume_run, runs_under_way
from holdfast.jobs.views.status import is_without_process
from holdfast.wiring import open_runtime
from holdfast.wiring.jobs import Jobs, open_jobs

Runs = Annotated[list[int] | None, typer.Argument(help="Executions' numbers; all that it can be done to if left out.")]


@runnable(opened=open_jobs, example="pause 3")
def pause(jobs: Jobs, execution: Runs = None) -> Done:
    """Pause running crawls: pages in progress are finished and kept, then nothing is fetched until `holdfast resume`.

    They react within a second, on whatever machine, and stay paused when a worker is restarted. Time limits
    stand still meanwhile; `holdfast stop` works as ever. To pause the next runs of a job: holdfast job pause.
    Acts at once, also on all runs: nothing is lost by it.
    """
    return _each(jobs, execution, are_paused=False)


@runnable(opened=open_jobs, example="resume 3")
def resume(jobs: Jobs, execution: Runs = None) -> Done:
    """Resume paused crawls where they were. Acts at once: nothing is lost by it.

    A job's run that was stopped is named by its number: the job's next run continues with what it left.
    """
    return _each(jobs, execution, are_paused=True)


def _each(jobs: Jobs, wanted: list[int] | None, *, are_paused: bool) -> Done:
    done, refused = [], []
    with jobs.database.read() as session:
        numbers = wanted or runs_under_way(session, are_paused=are_paused)
    for number in numbers:
        try:
            with jobs.database.write() as session:
                done.append((resume_run if are_paused else pause_run)(session, jobs.clock, number))
        except (NotPausable, NotFound) as exc:
            # An execution that is missing or cannot be paused must not stop the others.
            if len(numbers) == 1:
                raise
            refused.append(str(exc))
    if not numbers:
        none = "no execution is paused" if are_paused else "no execution runs that is not paused already"
        raise NotFound(f"{none}; see them with: holdfast status")
    idle = _unheld(jobs, done)
    lines = [_sentence(one, is_held=one.execution_id not in idle) for one in done]
    # Without numbers, skip runs that cannot be paused; with numbers, that is a failure.
    is_success = bool(done) and not (wanted and refused)
    return Done({"executions": done, "refused": refused}, lines, is_success, refused)


def _unheld(jobs: Jobs, done: list[PausedRun]) -> set[int]:
    """Return the resumed runs without a process: released by their workers, or abandoned."""
    resumed = [one.execution_id for one in done if one.is_changed and one.paused_at is None]
    if not resumed:
        return set()
    with open_runtime(jobs.settings) as runtime:
        return {
            number
            for number in resumed
            if is_without_process(runtime.raw_db, runtime.clock, number, folder=runtime.run_folder)
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
