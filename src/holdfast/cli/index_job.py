"""`holdfast index-job`: a completed execution of a job, read anew. Ids stay; what is searchable stays so meanwhile."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Sequence
from contextlib import closing

import typer

from holdfast import config
from holdfast.cli.indexing import ProgressLine, as_object, describe, stoppable, take_in
from holdfast.cli.logs import configure_log
from holdfast.cli.meant import NewestOfJob, OneExecution, find_completed
from holdfast.cli.options import AsJson, Home
from holdfast.cli.tables import lines
from holdfast.cli.wording import counted
from holdfast.config import Settings
from holdfast.coordination.priority import step_back
from holdfast.db.engine import Database
from holdfast.errors import Conflict, NotFound
from holdfast.index.execution import IndexedExecution, NothingToIndex, index_execution
from holdfast.index.intake.importer import Importer
from holdfast.index.owning import open_indexer
from holdfast.jobs.imports import ImportWish
from holdfast.wiring import open_ground


def index_job(
    job_id: NewestOfJob = None, execution: OneExecution = None, json: AsJson = False, home: Home = None
) -> None:
    """Index all WARC files of a job's run again, with what lies in its folder and was not registered before.

    Acts at once: what it writes is derived, and can be made anew.
    Example: holdfast index-job --id 3
    """
    settings = config.load(home=home)
    configure_log(settings, as_json=False)
    step_back(settings.index.nice)
    with open_ground(settings) as ground, closing(Database(settings.database)) as database:
        meant = find_completed(database, job_id, execution)
        line = ProgressLine(ground.clock, quiet=json)
        opened = open_indexer(ground.hot, ground.clock, settings.home, on_progress=line.progress)
        with opened as indexer, stoppable(indexer):
            wish = ImportWish(source="", name=None, home=settings.home, config={})
            importer = Importer(database, ground.hot, ground.clock, indexer, wish)
            done = index_execution(database, importer, indexer, meant.only, clock=ground.clock)
        take_in(settings, ground.clock)
        line.clear()
    if json:
        print(jsonlib.dumps({"job": meant.job_id, **_facts(done)}))
    else:
        for one in done.files:
            typer.echo(lines(f"{one.path.rpartition('/')[2]}: {one.error or describe(one)}"))
        typer.echo(f"{meant.told()}: {counted(len(done.files), 'file')}, {counted(done.snapshots, 'snapshot')}")
        for error in done.errors:
            typer.echo(f"failed: {error}", err=True)
    if done.errors:
        raise typer.Exit(1)


def read_executions(settings: Settings, execution_ids: Sequence[int], *, quiet: bool) -> list[str]:
    """Read the files of executions that wait for it, one after the other; return what went wrong, one line each.

    Those that Ctrl-C leaves over wait for a worker, or for `holdfast index`.
    """
    if not execution_ids:
        return []
    step_back(settings.index.nice)
    errors = []
    with open_ground(settings) as ground, closing(Database(settings.database)) as database:
        line = ProgressLine(ground.clock, quiet=quiet)
        opened = open_indexer(ground.hot, ground.clock, settings.home, on_progress=line.progress)
        with opened as indexer, stoppable(indexer):
            wish = ImportWish(source="", name=None, home=settings.home, config={})
            for execution_id in execution_ids:
                importer = Importer(database, ground.hot, ground.clock, indexer, wish)
                try:
                    done = index_execution(database, importer, indexer, execution_id, clock=ground.clock)
                except (NotFound, NothingToIndex, Conflict) as exc:
                    errors.append(f"execution {execution_id}: {exc}")
                    continue
                if done.errors:
                    errors.append(f"execution {execution_id}: {done.errors[0]}")
        take_in(settings, ground.clock)
        line.clear()
    return errors


def _facts(done: IndexedExecution) -> dict[str, object]:
    return {
        "execution": done.execution_id, "source": done.source, "snapshots": done.snapshots, "taken_in": done.taken_in,
        "busy": done.busy, "errors": done.errors, "files": [as_object(one) for one in done.files],
    }  # fmt: skip
